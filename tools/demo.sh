#!/usr/bin/env bash
# The whole of ff in one go: a model, a search for the fastest way to train it on two cores, one epoch of training on
# real images by two ranks, and the predicted step time beside the measured one.
#
#     tools/demo.sh
#
# Installs what is missing, builds into build/release and writes into build/demo. Exit status 0 if all of this holds:
# test accuracy of 0.80 or more after one epoch, the plan found is no more than 5 % slower than data parallelism, and
# no predicted step time is off by more than 30 %.
set -euo pipefail
cd "$(dirname "$0")/.."

ranks=2
batch=64
short_steps=100  # of the runs that are there to be timed
turns=8
least_accuracy=0.80
most_slowdown=0.05
most_error=0.30

out=build/demo
bin=build/release/bin
data=/usr/share/datasets/fashion-mnist
# Open MPI refuses root unless told otherwise (4.1 reads OMPI_*, 5.0 also PRTE_*).
if ((EUID == 0)); then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

say() { printf '\n== %s\n' "$*"; }
show() { printf '$ %s\n' "$*"; "$@"; }

# The first number that the report FILE gives for KEY.
number() {  # number KEY FILE
  local value
  value=$(tr -d '\n' <"$2" | grep -oE "\"$1\"[[:space:]]*:[[:space:]]*-?[0-9][0-9.eE+-]*" | head -n 1 | sed 's/.*:[[:space:]]*//') || true
  if [[ -z $value ]]; then
    echo "demo: $2 has no $1" >&2
    exit 1
  fi
  printf '%s\n' "$value"
}

# holds CONDITION: arithmetic with fractions, by awk.
holds() { awk "BEGIN { exit !($1) }"; }
smaller() { awk -v a="$1" -v b="$2" 'BEGIN { print (a + 0 < b + 0) ? a : b }'; }

# How mpirun starts the ranks: each on a core of its own, or, with fewer cores than ranks, sharing them politely.
cores=$(lscpu -p=core,socket | grep -v '^#' | sort -u | wc -l)
if (($(nproc) < cores)); then cores=$(nproc); fi
if ((cores >= ranks)); then
  launch=(mpirun -n "$ranks" --bind-to core)
else
  launch=(mpirun -n "$ranks" --oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
  export OMP_WAIT_POLICY=passive
fi

compile() {  # compile PLAN OPTION...
  local plan=$1
  shift
  show "$bin/ffcompile" "$out/fashion-cnn.onnx" --machine "cpu-$ranks" --loss softmax-cross-entropy \
    --optimizer momentum "$@" -o "$out/$plan.soap"
}

train() {  # train PLAN REPORT OPTION...
  local plan=$1 report=$2
  shift 2
  show "${launch[@]}" "$bin/ffrun" "$out/$plan.soap" \
    --data "image=$data/train-images-idx3-ubyte.gz" --data "labels=$data/train-labels-idx1-ubyte.gz" \
    --normalize image=255 --report "$out/$report.json" "$@"
}

say "Packages"
tools/install-deps.sh

say "Build"
tests=()
if [[ ! -e build/release/CMakeCache.txt ]]; then tests=(-DFF_TESTS=OFF); fi
cmake --preset release ${tests[@]+"${tests[@]}"} >/dev/null
cmake --build --preset release --target ffmodel ffcompile ffrun ffplan-dump
mkdir -p "$out"

say "A model: a small convolutional network for 28x28 images, written as ONNX"
show "$bin/ffmodel" fashion-cnn --batch "$batch" -o "$out/fashion-cnn.onnx"

say "Search for the fastest plan, and compile data parallelism to compare with"
compile fashion-cnn --report "$out/search.json"
compile data-parallel --search data-parallel --report "$out/data-parallel-search.json"

say "What the plan does"
show "$bin/ffplan-dump" "$out/fashion-cnn.soap"

say "One epoch on $ranks ranks, then the test images"
train fashion-cnn run --epochs 1 \
  --eval-data "image=$data/t10k-images-idx3-ubyte.gz" --eval-data "labels=$data/t10k-labels-idx1-ubyte.gz"

say "Both plans for $short_steps steps, in turns"
for ((turn = 1; turn <= turns; turn++)); do
  train fashion-cnn "run-$turn" --steps "$short_steps"
  train data-parallel "data-parallel-$turn" --steps "$short_steps"
done

# The least of the medians: what else the machine does, and where a process finds its memory, only ever adds.
measured() {  # measured REPORT-STEM
  local least turn
  least=$(number step_seconds_median "$out/$1-1.json")
  for ((turn = 2; turn <= turns; turn++)); do least=$(smaller "$least" "$(number step_seconds_median "$out/$1-$turn.json")"); done
  printf '%s\n' "$least"
}

found_predicted=$(number predicted_step_seconds "$out/run.json")
found_measured=$(measured run)
parallel_predicted=$(number predicted_step_seconds "$out/data-parallel-1.json")
parallel_measured=$(measured data-parallel)
accuracy=$(number accuracy "$out/run.json")

row() {  # row NAME PREDICTED MEASURED
  awk -v name="$1" -v p="$2" -v m="$3" \
    'BEGIN { printf "%-16s %12.3f ms %12.3f ms %+8.1f %%\n", name, p * 1e3, m * 1e3, (p / m - 1) * 100 }'
}

say "Result"
printf '%-16s %15s %15s %10s\n' "step time" predicted measured error
row "plan found" "$found_predicted" "$found_measured"
row "data parallelism" "$parallel_predicted" "$parallel_measured"
if cmp -s "$out/fashion-cnn.soap" "$out/data-parallel.soap"; then
  echo "the search found nothing better than data parallelism: the two plans are the same"
fi
awk -v a="$accuracy" -v f="$found_measured" -v d="$parallel_measured" \
  'BEGIN { printf "test accuracy after one epoch: %.4f\nplan found, against data parallelism: %.2f times as fast\n", a, d / f }'

status=0
complain() { echo "demo: $*" >&2; status=1; }
off() { holds "($1 / $2 - 1) > $most_error || ($1 / $2 - 1) < -$most_error"; }
if holds "$accuracy < $least_accuracy"; then complain "test accuracy is $accuracy, less than $least_accuracy"; fi
if holds "$found_measured > (1 + $most_slowdown) * $parallel_measured"; then
  complain "the plan found takes $found_measured s a step, data parallelism $parallel_measured s"
fi
if off "$found_predicted" "$found_measured"; then
  complain "the plan found: predicted $found_predicted s a step, measured $found_measured s"
fi
if off "$parallel_predicted" "$parallel_measured"; then
  complain "data parallelism: predicted $parallel_predicted s a step, measured $parallel_measured s"
fi
if ((status == 0)); then echo "demo: done"; fi
exit "$status"
