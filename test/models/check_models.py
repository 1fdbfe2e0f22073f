#!/usr/bin/env python3
"""Writes every model with ffmodel and has ONNX's checker and strict shape inference accept it.

usage: check_models.py FFMODEL. Exit status 77 (skipped) without the onnx module.
"""
import os
import subprocess
import sys
import tempfile

try:
    import onnx
    import onnx.checker
    import onnx.shape_inference
except ImportError:
    print("skipped: Python has no module onnx")
    sys.exit(77)

ffmodel = sys.argv[1]
names = [line.split()[0] for line in subprocess.check_output([ffmodel, "--list"], text=True).splitlines()]
assert len(names) >= 25, names
with tempfile.TemporaryDirectory() as folder:
    for name in names:
        path = os.path.join(folder, name + ".onnx")
        light = [] if name in ("fashion-cnn", "lenet5", "mlp", "residual-bn", "resnet18", "mobilenet-v2") else ["--light"]
        subprocess.run([ffmodel, name, "-o", path] + light, check=True)
        onnx.checker.check_model(path)
        onnx.shape_inference.infer_shapes(onnx.load(path), check_type=True, strict_mode=True, data_prop=True)
        print(name, "ok")

bad = subprocess.run([ffmodel, "resnet5", "-o", "x.onnx"], capture_output=True, text=True)
assert bad.returncode == 2, bad
assert "there is no model 'resnet5'" in bad.stderr and "did you mean 'resnet50'?" in bad.stderr, bad.stderr
bad = subprocess.run([ffmodel, "resnet50", "--heads", "3", "-o", "x.onnx"], capture_output=True, text=True)
assert bad.returncode == 2 and "--heads: resnet50 has no such size" in bad.stderr, bad.stderr
bad = subprocess.run([ffmodel, "rnnlm", "--heads", "3", "-o", "x.onnx"], capture_output=True, text=True)
assert bad.returncode == 2 and "it takes --layers, --hidden, --sequence, --vocabulary" in bad.stderr, bad.stderr
bad = subprocess.run([ffmodel, "mlp", "--bach", "3"], capture_output=True, text=True)
assert bad.returncode == 2 and "did you mean '--batch'?" in bad.stderr, bad
