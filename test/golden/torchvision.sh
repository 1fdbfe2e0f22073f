#!/usr/bin/env bash
# torchvision's AlexNet and ResNet-50, as exported in training mode, trained on 1 and 2 ranks (five steps, and ResNet-50's first): the update
# of each weight and running statistic beside PyTorch's, as in pytorch_test.cc. Needs python3-torchvision; some minutes and 3 GB of memory.
#
#     test/golden/torchvision.sh TEST_PROGRAM [NAME ...]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(readlink -f "$1")
shift
if (($# == 0)); then set -- alexnet resnet50 resnet50-first-step; fi
# Debian's PyTorch is the system's Python's.
if ! /usr/bin/python3 -c 'import torchvision, onnx' 2>/dev/null; then
  echo "skipped: no python3-torchvision and python3-onnx here: tools/install-deps.sh --dev"
  exit 77
fi
FF_GOLDENS=$(mktemp -d)
export FF_GOLDENS
trap 'rm -rf "$FF_GOLDENS"' EXIT
for name in "$@"; do
  /usr/bin/python3 -W ignore "$here/make_goldens.py" --out "$FF_GOLDENS" "$name"
  case $name in
    alexnet) "$program" "AlexNet trains as in PyTorch" ;;
    resnet50) "$program" "ResNet-50 trains as in PyTorch" ;;
    resnet50-first-step) "$program" "ResNet-50's first step is that of PyTorch" ;;
    *) echo "no test of $name" >&2; exit 2 ;;
  esac
  rm -f "$FF_GOLDENS"/*
done
