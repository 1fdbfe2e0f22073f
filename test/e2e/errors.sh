#!/usr/bin/env bash
# What the commands say to bad input: exact messages and exit statuses.
#
#     test/e2e/errors.sh BUILD_DIR
set -uo pipefail
bin=$1/bin
words=$(cd "$(dirname "${BASH_SOURCE[0]}")/../golden/data" && pwd)/words.onnx
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
failures=0

# expect STATUS "PART OF THE MESSAGE" COMMAND...: nothing may be left behind but what is told.
expect() {
  local status=$1 message=$2
  shift 2
  local output got
  output=$(timeout 60 "$@" 2>&1 </dev/null)
  got=$?
  if [[ $got -ne $status || $output != *"$message"* ]]; then
    printf 'FAILED: %s\n  expected status %s and: %s\n  got status %s and: %s\n' "$*" "$status" "$message" "$got" "$output"
    failures=$((failures + 1))
  else
    printf 'ok: %s\n' "$message"
  fi
}

"$bin/ffmodel" mlp --batch 8 -o mlp.onnx >/dev/null 2>&1 || exit 1
"$bin/ffmodel" mlp -o free.onnx >/dev/null 2>&1 || exit 1
compile=("$bin/ffcompile" --loss softmax-cross-entropy --cost roofline)

# Models.
echo "this is no model" >text.onnx
expect 2 "text.onnx" "${compile[@]}" text.onnx
head -c 1000 mlp.onnx >short.onnx
expect 2 "short.onnx" "${compile[@]}" short.onnx
expect 2 "missing.onnx" "${compile[@]}" missing.onnx
expect 2 "has no size" "${compile[@]}" free.onnx
expect 2 "--batch 32" "${compile[@]}" free.onnx
expect 2 "no loss to train with" "$bin/ffcompile" mlp.onnx --cost roofline
expect 2 "no loss 'softmax'" "$bin/ffcompile" mlp.onnx --loss softmax --cost roofline
expect 2 "the model has no output 'nothing'" "$bin/ffcompile" mlp.onnx --loss softmax-cross-entropy:nothing --cost roofline

# Machines and options.
expect 2 "cpu-3" "${compile[@]}" mlp.onnx --machine cpu-3
expect 2 "--serch" "${compile[@]}" mlp.onnx --serch mcmc
expect 2 "--search" "${compile[@]}" mlp.onnx --serch mcmc
expect 2 "is not a number of bytes" "${compile[@]}" mlp.onnx --machine cpu-2 --memory-limit lots
expect 2 "memory" "${compile[@]}" mlp.onnx --machine cpu-2 --memory-limit 1KiB --proposals 10
expect 2 "--emit" "${compile[@]}" mlp.onnx --emit task-graph
expect 2 "no CUDA kernels" "${compile[@]}" mlp.onnx --device cuda
[[ -e mlp.soap ]] && { echo "FAILED: a refused compile left a plan"; failures=$((failures + 1)); }

# Plans.
"${compile[@]}" mlp.onnx --machine cpu-2 --proposals 20 >/dev/null 2>&1 || { echo "FAILED: compile"; exit 1; }
"${compile[@]}" mlp.onnx --machine cpu-1 --proposals 0 -o one.soap >/dev/null 2>&1 || { echo "FAILED: compile"; exit 1; }
expect 2 "mpirun -n 2" "$bin/ffrun" mlp.soap --synthetic
expect 2 "plan needs 2" env OMPI_COMM_WORLD_SIZE= SLURM_NTASKS=2 "$bin/ffrun" mlp.soap --synthetic
printf 'no plan at all, really' >text.soap
expect 2 "text.soap" "$bin/ffrun" text.soap --synthetic
expect 2 "text.soap" "$bin/ffplan-dump" text.soap
cp one.soap flipped.soap
printf '\xff' | dd of=flipped.soap bs=1 seek=$(($(stat -c %s flipped.soap) / 2)) conv=notrunc status=none
expect 2 "flipped.soap" "$bin/ffrun" flipped.soap --synthetic --model mlp.onnx
cp one.soap version.soap
printf '\x02' | dd of=version.soap bs=1 seek=8 conv=notrunc status=none
expect 2 "plan format 2" "$bin/ffrun" version.soap --synthetic
cp mlp.onnx keep.onnx
printf 'x' | dd of=mlp.onnx bs=1 seek=100000 conv=notrunc status=none
expect 2 "compile" "$bin/ffrun" one.soap --synthetic --steps 1
cp keep.onnx mlp.onnx

# Data.
printf 'not a data file' >bad.npy
expect 2 "bad.npy" "$bin/ffrun" one.soap --data image=bad.npy --data labels=bad.npy
expect 2 "nothing.npy" "$bin/ffrun" one.soap --data image=nothing.npy --data labels=bad.npy
expect 2 "image" "$bin/ffrun" one.soap --steps 1

# An index that the embedding has no row for: 11 rows, sample 2 asks for row 12. An npy file of 6 samples, from its header on.
npy() {  # npy SHAPE NUMBER...: int64, little-endian
  local header="{'descr': '<i8', 'fortran_order': False, 'shape': ($1), }"
  shift
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header"
  for number in "$@"; do printf "\\x$(printf %02x "$number")\0\0\0\0\0\0\0"; done
}
npy '6, 4' 0 1 2 3 4 5 6 7 8 9 10 12 1 1 1 1 2 2 2 2 3 3 3 3 >tokens.npy
npy '6,' 0 1 2 3 4 5 >labels.npy
"${compile[@]}" "$words" --batch 6 --machine cpu-1 --proposals 0 -o words.soap >/dev/null 2>&1 || { echo "FAILED: compile"; exit 1; }
expect 2 "index 12 of sample 2 is outside [-11, 11)" "$bin/ffrun" words.soap --model "$words" --data image=tokens.npy --data labels=labels.npy --steps 1
npy '6,' 0 1 2 3 4 11 >labels.npy
expect 2 "label 11 of sample 5 is outside [0, 11)" "$bin/ffrun" words.soap --model "$words" --synthetic --data labels=labels.npy --steps 1

# A budget of nothing still gives a plan.
expect 0 "predicted step" "${compile[@]}" mlp.onnx --machine cpu-2 --proposals 0 -o zero.soap
expect 0 "loss" "$bin/ffrun" one.soap --synthetic --steps 2

((failures == 0)) && echo "errors: all as expected"
exit $((failures != 0))
