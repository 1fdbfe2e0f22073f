#!/usr/bin/env bash
# AlexNet on three simulated clusters: what the search is worth where each weight is synchronised through one server
# (as the SOAP paper's runtime does), where all-reduce does it, and on slow Ethernet. A minute and a half.
#
#     test/search/alexnet_plans.sh BIN_DIR
set -euo pipefail
bin=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

compile() {  # compile MODEL MACHINE SECONDS: NAME.soap and what ffcompile says of it
  "$bin/ffcompile" "$1.onnx" --machine "$2" --space soap --cost roofline --loss softmax-cross-entropy --budget "$3" \
    --no-reference -o "$2.soap" 2>/dev/null | tail -n 1
}
faster() { grep -oE '[0-9.]+ times faster' <<<"$1" | sed 's/ .*//'; }
status=0
expect() {  # expect CONDITION WHAT
  if awk "BEGIN { exit !($1) }"; then echo "ok: $2: $1"; else echo "FAILED: $2: $1"; status=1; fi
}

"$bin/ffmodel" alexnet --batch 16384 -o big.onnx >/dev/null    # 256 on each of 64
"$bin/ffmodel" alexnet --batch 64 -o small.onnx >/dev/null     # 16 on each of 4

line=$(compile big k80-16x4-paper 30)
echo "$line"
expect "$(faster "$line") >= 2" "k80-16x4-paper, times faster than data parallelism"
dump=$("$bin/ffplan-dump" k80-16x4-paper.soap)
convolutions=$(grep -cE ' Conv +n:64\(S\) ' <<<"$dump" || true)
expect "$convolutions == 5" "convolutions split by sample alone"
matrices=$(grep -cE ' MatMul .*(n:[0-9]+\(P\)|idle: )' <<<"$dump" || true)
expect "$matrices == 3" "matrix products split by parameter, or on fewer devices"
expect "$(grep -cE 'classifier.1 +MatMul .*n:[0-9]+\(P\)' <<<"$dump" || true) == 1" "the largest one split by parameter"

line=$(compile big k80-16x4 20)
echo "$line"
expect "$(faster "$line") <= 1.1" "k80-16x4, times faster than data parallelism"

line=$(compile small ethernet-4 20)
echo "$line"
expect "$(faster "$line") >= 3" "ethernet-4, times faster than data parallelism"
exit "$status"
