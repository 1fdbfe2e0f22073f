#!/usr/bin/env bash
# The commands one after the other, as a user calls them: compile, look, train on two ranks, verify against one device, save.
#
#     test/e2e/pipeline.sh BUILD_DIR
set -uo pipefail
bin=$1/bin
golden=$(cd "$(dirname "${BASH_SOURCE[0]}")/../golden/data" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMP_WAIT_POLICY=passive
run=(mpirun -n 2 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
failures=0

check() {  # check WHAT COMMAND...
  local what=$1
  shift
  if timeout 120 "$@" >output 2>&1 </dev/null; then
    printf 'ok: %s\n' "$what"
  else
    printf 'FAILED: %s\n  %s\n' "$what" "$*"
    cat output
    failures=$((failures + 1))
  fi
}

says() { grep -qF -- "$1" output || { printf 'FAILED: no "%s" in:\n' "$1"; cat output; failures=$((failures + 1)); }; }

compile=("$bin/ffcompile" --loss softmax-cross-entropy --cost roofline --proposals 200 --seed 3)
for model in residual-bn mlp; do
  "$bin/ffmodel" $model --batch 7 -o $model.onnx >/dev/null 2>&1 || exit 1
  check "$model: a dry run lists what is trained" "${compile[@]}" $model.onnx --dry-run
  says "trained parameters"
  check "$model: compiles for two ranks" "${compile[@]}" $model.onnx --machine cpu-2 --report $model.json
  says "times faster than data parallelism"
  check "$model: compiles again" "${compile[@]}" $model.onnx --machine cpu-2 -o again.soap
  check "$model: the same inputs and seed give the same bytes" cmp $model.soap again.soap
  check "$model: the plan is shown" "$bin/ffplan-dump" $model.soap
  says "parameters"
  check "$model: two ranks compute what one device computes" "${run[@]}" "$bin/ffrun" $model.soap --synthetic --steps 3 --verify --save trained.onnx
  says "what one device computes"
  check "$model: a strategy comes back" bash -c "'$bin/ffplan-dump' $model.soap --strategy >strategy.txt"
  check "$model: and compiles to the same programs" "${compile[@]}" $model.onnx --machine cpu-2 --strategy strategy.txt -o fixed.soap
  check "$model: the trained model compiles" "${compile[@]}" trained.onnx --machine cpu-1
done

# An embedding, tied to the output's matrix: as found, and with its vocabulary cut in two, whose parts add up.
words=$golden/words.onnx
check "words: compiles for two ranks" "${compile[@]}" "$words" --batch 6 --machine cpu-2 -o words.soap
check "words: two ranks compute what one device computes" "${run[@]}" "$bin/ffrun" words.soap --model "$words" --synthetic --steps 3 --verify
check "words: a strategy" bash -c "'$bin/ffcompile' '$words' --batch 6 --loss softmax-cross-entropy --cost roofline --machine cpu-2 --search data-parallel --emit strategy |
  sed '/tokens.Gather/s/dim: \"i0\"/dim: \"v\"/' >cut.txt && grep -q 'tokens.Gather.*dim: \"v\"' cut.txt"
check "words: compiles with the vocabulary cut" "${compile[@]}" "$words" --batch 6 --machine cpu-2 --strategy cut.txt -o cut.soap
check "words: two ranks that share the vocabulary compute what one device computes" "${run[@]}" "$bin/ffrun" cut.soap --model "$words" --synthetic --steps 3 --verify --save words-trained.onnx
check "words: the trained model has one matrix for both ends" "${compile[@]}" words-trained.onnx --batch 6 --dry-run
says "trained parameters (246 elements)"

# A model with losses of its own.
segments=$golden/segments.onnx
check "segments: compiles for two ranks" "$bin/ffcompile" "$segments" --loss graph --cost roofline --proposals 200 --seed 3 --machine cpu-2 -o segments.soap
check "segments: two ranks compute what one device computes" "${run[@]}" "$bin/ffrun" segments.soap --model "$segments" --synthetic --steps 3 --verify

# Running statistics are state, not trained; a width that three devices do not divide still gives a plan.
"${compile[@]}" residual-bn.onnx --dry-run >output 2>&1
sed -n '/^trained/,/^[fs]/p' output | grep -q running && { echo "FAILED: running statistics are trained"; failures=$((failures + 1)); }
check "three devices" "${compile[@]}" mlp.onnx --machine cpu-4:devices=3 -o three.soap
check "every rank trains" mpirun -n 3 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "$bin/ffrun" three.soap --synthetic --steps 2 --verify

((failures == 0)) && echo "pipeline: all as expected"
exit $((failures != 0))
