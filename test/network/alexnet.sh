#!/usr/bin/env bash
# Two hosts on 1 Gbit/s (network namespaces of this machine; needs root), AlexNet at batch 32: the plan that the search finds beside data
# parallelism, predicted and measured.
#
#     test/network/alexnet.sh BUILD_DIR [STEPS]
#
# Exit status 0 if the found plan is measured at least 3 times faster, and the predicted ratio is within 20 % of the measured one.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "$1/bin" && pwd)
steps=${2:-12}
if ((EUID != 0)); then echo "skipped: network namespaces need root" >&2; exit 77; fi
work=$(mktemp -d)
trap '"$here/netns.sh" down >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
cd "$work"

"$bin/ffmodel" alexnet --batch 32 -o alexnet.onnx >/dev/null
compile=("$bin/ffcompile" alexnet.onnx --machine ethernet-4:nodes=2 --loss softmax-cross-entropy --no-reference)
"${compile[@]}" --budget 60 -o found.soap 2>/dev/null
"${compile[@]}" --search data-parallel -o data-parallel.soap 2>/dev/null

"$here/netns.sh" up 2 1gbit
number() { grep -oE "\"$1\": [0-9.e+-]+" "$2" | head -n 1 | sed 's/.*: //'; }
for plan in found data-parallel; do
  OMP_NUM_THREADS=1 "$here/netns.sh" mpirun 2 "$bin/ffrun" "$work/$plan.soap" --synthetic --steps "$steps" --quiet --report "$work/$plan.json" >/dev/null
  printf '%-14s predicted %8.1f ms   measured %8.1f ms\n' "$plan" \
    "$(awk -v x="$(number predicted_step_seconds $plan.json)" 'BEGIN {print x * 1e3}')" \
    "$(awk -v x="$(number step_seconds_median $plan.json)" 'BEGIN {print x * 1e3}')"
done
awk -v fp="$(number predicted_step_seconds found.json)" -v fm="$(number step_seconds_median found.json)" \
  -v dp="$(number predicted_step_seconds data-parallel.json)" -v dm="$(number step_seconds_median data-parallel.json)" 'BEGIN {
    measured = dm / fm; predicted = dp / fp
    printf "found plan: %.2f times faster measured, %.2f predicted\n", measured, predicted
    exit !(measured >= 3 && predicted / measured < 1.2 && predicted / measured > 0.8)
  }'
