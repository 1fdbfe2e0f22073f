#!/usr/bin/env bash
# Trains a language model of the King James text on two ranks and holds its perplexity to PyTorch's: within 2 %.
#
#   test/language/bible.sh build/release transformer|lstm
#
# Status 77: what it needs is not installed (Debian's bible-kjv, python3-torch, python3-onnx).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "$1/bin" && pwd)
name=$2
python=/usr/bin/python3
if ! command -v bible >/dev/null || ! $python -c 'import torch, onnx' 2>/dev/null; then
  echo "bible.sh needs the packages bible-kjv, python3-torch and python3-onnx"
  exit 77
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
$python -W ignore "$here/bible.py" prepare "$name" "$work"
cd "$work"
"$bin/ffcompile" model.onnx -o plan.soap --machine cpu-2 --loss softmax-cross-entropy --class-axis -1 \
  --optimizer adam --no-reference
mpirun -n 2 --oversubscribe --bind-to none "$bin/ffrun" plan.soap --model model.onnx --data x=x.npy \
  --data labels=y.npy --steps 400 --lr 1e-3 --save trained.onnx
$python -W ignore "$here/bible.py" compare "$name" "$work"
