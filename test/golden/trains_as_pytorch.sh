#!/usr/bin/env bash
# Networks of make_goldens.py trained on 1 and 2 ranks: the loss of each step, the update of each weight and running statistic beside
# PyTorch's, as in pytorch_test.cc. A network's first step is checked with it where make_goldens.py has that too. Needs python3-torch and
# python3-onnx, for torchvision's networks python3-torchvision, some minutes and up to 10 GB of memory (vgg16).
#
#     test/golden/trains_as_pytorch.sh BUILD_DIR NAME ...
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
shift
# Debian's PyTorch is the system's Python's.
python=(/usr/bin/python3 -B -W ignore)
if ! "${python[@]}" -c 'import torch, torchvision, onnx' 2>/dev/null; then
  echo "skipped: no python3-torch, python3-torchvision and python3-onnx here: tools/install-deps.sh --dev"
  exit 77
fi
FF_GOLDENS=$(mktemp -d)
export FF_GOLDENS
trap 'rm -rf "$FF_GOLDENS"' EXIT
failed=()
for name in $("${python[@]}" "$here/golden_nets.py" "$@"); do
  "${python[@]}" "$here/make_goldens.py" --out "$FF_GOLDENS" --ffmodel "$build/bin/ffmodel" "$name"
  "$build/test/golden/test_pytorch" "what FF_GOLDENS holds trains as in PyTorch" || failed+=("$name")
  rm -f "$FF_GOLDENS"/*
done
if ((${#failed[@]})); then echo "FAILED: ${failed[*]}"; exit 1; fi
