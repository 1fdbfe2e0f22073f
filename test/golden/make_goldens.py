#!/usr/bin/python3
"""Makes the goldens of pytorch_test.cc: networks exported by PyTorch or written by ffmodel, a batch, and what some steps of SGD with
momentum do to their weights and running statistics in double and in single precision. Needs Debian's python3-torch and python3-onnx, the
large ones python3-torchvision.

    test/golden/make_goldens.py [--out FOLDER] [--ffmodel PROGRAM] [NAME ...]    # writes NAME.onnx and NAME.bin, into test/golden/data

The small networks (lenet, residual, hourglass, words, segments) are committed; the others are made by trains_as_pytorch.sh.

NAME.bin, little-endian, a list being its int64 length and then its elements, a text a list of bytes:
int64 steps, float64 learning rate, momentum, int64 axis of the classes, samples in a batch (0: the file has its own); a list of texts,
the losses as ffcompile takes them; a list of inputs, each its name, int64 1 if it is of whole numbers, and a list of float32 or int64; a list
of float64, the loss of each step in double precision, and another, the error of single precision's; then for every weight: its name, a list
of float64, its update in double precision (its value after the steps less before), float64 norm of (single less double precision's update).
Errors are the largest of several runs.
"""
import argparse
import pathlib
import struct
import subprocess

import onnx
import torch
from onnx import numpy_helper
from torch import nn

from golden_nets import DOT, NETS, NO_CLASS, SMALL, OfFile, Segments

MOMENTUM = 0.9
# How single precision is computed: memory format, and whether by oneDNN. Each rounds otherwise, and the largest of their errors is
# that of single precision. (A ReLU or a maximum that rounding decides changes much; in one run it may go right by chance.)
WAYS = [(memory_format, onednn) for memory_format in (torch.contiguous_format, torch.channels_last) for onednn in (True, False)]


def values(net):
    """Weights and running statistics, in double precision."""
    return {k: v.detach().double().clone() for k, v in net.state_dict().items() if not k.endswith("num_batches_tracked")}


def of_population(net, inputs, before, after, steps):
    """Running variances are of samples in PyTorch, of the population in ONNX: what each step adds, by (n - 1) / n."""
    counts = {}
    hooks = [m.register_forward_pre_hook(lambda _, x, k=k: counts.__setitem__(k, x[0].numel() // x[0].shape[1]))
             for k, m in net.named_modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if hooks:
        with torch.no_grad():
            net(*inputs)
    for hook in hooks:
        hook.remove()
    for name, n in counts.items():
        key = name + ".running_var"
        kept = 0.9 ** steps * before[key]
        after[key] = kept + (after[key] - kept) * (n - 1) / n


def loss_of(net, case, inputs, labels):
    """The sum of the case's losses: KIND[:OUTPUT][*WEIGHT] of each output, in their order."""
    if case.losses == ("graph",):
        return net(*inputs, labels)
    outputs = net(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    weights = [float(loss.partition("*")[2] or 1) for loss in case.losses]
    return sum(weight * nn.functional.cross_entropy(scores.movedim(case.class_axis, 1), labels)
               for weight, scores in zip(weights, outputs, strict=True))


def train(net, case, inputs, labels):
    """Each weight's update, and the loss of every step."""
    before = values(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=case.rate, momentum=MOMENTUM)
    losses = []
    for _ in range(case.steps):
        optimizer.zero_grad()
        loss = loss_of(net, case, inputs, labels)
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    print("  losses", [round(v, 4) for v in losses], flush=True)
    assert case.steps == 1 or losses[-1] <= 0.8 * losses[0], "the loss falls by less than a fifth"
    after = values(net)
    del optimizer
    if not isinstance(net, Segments):
        of_population(net, inputs, before, after, case.steps)
    return {name: after[name].sub_(before.pop(name)) for name in list(after)}, torch.tensor(losses, dtype=torch.float64)


def batch(case):
    inputs = [torch.randn(shape) if tokens is None else torch.randint(0, tokens, shape) for shape, tokens in case.inputs.values()]
    shape, classes = case.labels
    labels = torch.randint(0, classes, shape)
    if case.losses == ("graph",):
        labels[torch.rand(labels.shape) < 0.2] = NO_CLASS
    return inputs, labels


def export(net, case, inputs, labels, path):
    """The network's file, and the weights that it begins with."""
    state = {k: v.clone() for k, v in net.state_dict().items()}
    own_loss = case.losses == ("graph",)
    outputs = [loss.partition("*")[0].partition(":")[2] or "logits" for loss in case.losses]
    torch.onnx.export(net, (*inputs, labels) if own_loss else tuple(inputs), str(path), opset_version=17,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      input_names=[*case.inputs, *(["labels"] if own_loss else [])], output_names=["loss"] if own_loss else outputs,
                      dynamic_axes={"image": {0: "batch"}} if not inputs[0].is_floating_point() else None)
    # An export in training mode moves the running statistics before it writes them.
    return state | {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in onnx.load(str(path)).graph.initializer
                    if t.name in state and "running_" in t.name}


def as_format(tensor, memory_format):
    return tensor.to(memory_format=memory_format) if tensor.ndim == 4 else tensor


def in_double(case, net, state, inputs, labels):
    net = net.double()
    net.load_state_dict({k: v.double() if v.is_floating_point() else v for k, v in state.items()})
    return train(net, case, [x.double() if x.is_floating_point() else x for x in inputs], labels)


def in_single(case, net, state, inputs, labels, way):
    memory_format, onednn = way
    net.load_state_dict(state)
    order = torch.randperm(len(labels))
    with torch.backends.mkldnn.flags(enabled=onednn):
        net = net.to(memory_format=memory_format) if inputs[0].ndim == 4 else net
        return train(net, case, [as_format(x[order], memory_format) for x in inputs], labels[order])


def listed(array):
    return struct.pack("<q", array.numel()) + array.numpy().tobytes()


def text(string):
    return struct.pack("<q", len(string)) + string.encode()


def header(case, inputs, labels):
    samples = 0 if case.losses == ("graph",) else len(labels)
    out = struct.pack("<qddqq", case.steps, case.rate, MOMENTUM, case.class_axis, samples)
    out += struct.pack("<q", len(case.losses)) + b"".join(map(text, case.losses))
    named = dict(zip(case.inputs, inputs, strict=True))
    several = len(case.losses) > 1  # then each has labels of its own
    named |= {"labels." + loss.partition("*")[0].partition(":")[2] if several else "labels": labels for loss in case.losses}
    out += struct.pack("<q", len(named))
    for name, tensor in named.items():
        whole = not tensor.is_floating_point()
        out += text(name) + struct.pack("<q", whole) + listed(tensor if whole else tensor.float())
    return out


def write(path, case, inputs, labels, double, errors):
    updates, losses = double
    with open(path, "wb") as out:
        out.write(header(case, inputs, labels) + listed(losses) + listed(errors["losses"]))
        for key, update in updates.items():
            out.write(text(key.replace(DOT, ".")) + listed(update) + struct.pack("<d", errors[key]))
    blind = sum(2 * errors[key] >= 0.1 * update.norm().item() > 0 for key, update in updates.items())
    print(f"  an update that is wrong by a tenth would pass for {blind} of {len(updates)}", flush=True)


def make(name, folder, ffmodel):
    torch.manual_seed(7)
    case = NETS[name]
    path = folder / f"{name}.onnx"
    written = case.options is not None
    if written:
        subprocess.run([ffmodel, name, "-o", path, *case.options], check=True, stdout=subprocess.DEVNULL)
    new = (lambda: OfFile(path)) if written else case.new
    net = new().train()
    inputs, labels = batch(case)
    state = net.state_dict() if written else export(net, case, inputs, labels, path)
    state = {k: v.clone() for k, v in state.items()}
    double = in_double(case, new().train(), state, inputs, labels)
    errors = {"losses": torch.zeros(case.steps, dtype=torch.float64)} | dict.fromkeys(double[0], 0.0)
    for way in (WAYS if inputs[0].ndim == 4 else WAYS[:1] * 4) * case.orders:
        updates, losses = in_single(case, net, state, inputs, labels, way)
        errors["losses"] = torch.maximum(errors["losses"], (losses - double[1]).abs())
        for key, update in updates.items():
            errors[key] = max(errors[key], (update - double[0][key]).norm().item())
    write(folder / f"{name}.bin", case, inputs, labels, double, errors)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent / "data")
    parser.add_argument("--ffmodel", default="ffmodel", help="the program, for the networks that it writes")
    parser.add_argument("names", nargs="*", default=SMALL, metavar="NAME", help=f"of {', '.join(NETS)}")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.names:
        print(name, flush=True)
        make(name, arguments.out, arguments.ffmodel)


if __name__ == "__main__":
    main()
