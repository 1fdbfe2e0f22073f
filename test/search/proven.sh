#!/usr/bin/env bash
# The paper's check of its search, on two devices: of LeNet-5 and of a language model of two unrolled steps, the
# Metropolis search finds the strategy that branch and bound proves to be the best. Seconds.
#
#     test/search/proven.sh BIN_DIR
set -euo pipefail
bin=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
status=0

report() {  # report SEARCH MODEL MACHINE [OPTION...]: SEARCH.json
  "$bin/ffcompile" "$2" --batch 64 --machine "$3" --loss softmax-cross-entropy --cost roofline --space soap --search "$1" \
    --report "$1.json" --emit strategy "${@:4}" >/dev/null 2>&1
}
top() { grep -m1 -oE "^  \"$2\": [0-9.e+-]+" "$1.json" | sed 's/.* //'; }  # top SEARCH NAME: a number of the report

same() {  # same MODEL MACHINE [OPTION...]
  report exhaustive "$1" "$2" --budget 60 "${@:3}"
  report mcmc "$1" "$2" --proposals 20000 "${@:3}"
  local proven found gap
  proven=$(top exhaustive predicted_step_seconds) found=$(top mcmc predicted_step_seconds)
  gap=$(top exhaustive optimality_gap)
  echo "$1 on $2: proven $proven s (gap $gap), found $found s"
  if [[ $proven != "$found" || $gap != 0.0 ]]; then
    echo "FAILED"
    status=1
  fi
}

"$bin/ffmodel" lenet5 --light -o lenet5.onnx >/dev/null
"$bin/ffmodel" rnnlm --sequence 2 --hidden 256 --vocabulary 1000 --light -o rnnlm.onnx >/dev/null
same lenet5.onnx cpu-2
same lenet5.onnx ethernet-4:devices=2
same rnnlm.onnx ethernet-4:devices=2 --class-axis -1
exit "$status"
