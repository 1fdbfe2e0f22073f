#!/usr/bin/python3
"""One rank, one thread: the training step of ffrun beside PyTorch's, alternating in one run. Needs python3-torch, python3-torchvision.

    test/bench/single_device.py BUILD_DIR [MODEL ...]      # alexnet resnet50 vgg16, batch 16

PyTorch runs SGD with momentum on f32 tensors in its faster memory format (channels last or not, both tried). Each figure is the least
median of the rounds.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)
os.environ["OMP_NUM_THREADS"] = "1"

import torch  # noqa: E402
import torchvision  # noqa: E402

BATCH, ROUNDS, STEPS = 16, 2, 4
torch.set_num_threads(1)


def net_of(name):
    net = getattr(torchvision.models, name)()
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return net.train()


def pytorch_step(name, memory_format):
    net = net_of(name).to(memory_format=memory_format)
    images = torch.randn(BATCH, 3, 224, 224).to(memory_format=memory_format)
    labels = torch.randint(0, 1000, (BATCH,))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    times = []
    for _ in range(STEPS + 1):
        start = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(images), labels).backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def ff_step(build, folder, name):
    report = folder / "run.json"
    subprocess.run([build / "bin/ffrun", folder / f"{name}.soap", "--synthetic", "--steps", str(STEPS + 1), "--report", report,
                    "--quiet"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return json.loads(report.read_text())["step_seconds_median"]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    print(f"PyTorch {torch.__version__}, batch {BATCH}, one thread, least median of {ROUNDS} rounds of {STEPS} steps")
    print(f"{'model':12} {'PyTorch':>10} {'ff':>10} {'ff/PyTorch':>11}")
    ratios = []
    for name in sys.argv[2:] or ["alexnet", "resnet50", "vgg16"]:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            torch.onnx.export(net_of(name), torch.randn(BATCH, 3, 224, 224), str(folder / f"{name}.onnx"), opset_version=17,
                              training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                              input_names=["image"], output_names=["logits"])
            subprocess.run([build / "bin/ffcompile", folder / f"{name}.onnx", "--machine", "cpu-1", "--cost", "roofline",
                            "--loss", "softmax-cross-entropy", "--search", "data-parallel", "--no-reference"], check=True,
                           stdout=subprocess.DEVNULL)
            theirs, ours = [], []
            for _ in range(ROUNDS):
                theirs += [pytorch_step(name, torch.channels_last), pytorch_step(name, torch.contiguous_format)]
                ours.append(ff_step(build, folder, name))
        ratios.append(min(ours) / min(theirs))
        print(f"{name:12} {min(theirs) * 1e3:8.0f}ms {min(ours) * 1e3:8.0f}ms {ratios[-1]:11.2f}", flush=True)
    print(f"geometric mean of the ratios: {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
