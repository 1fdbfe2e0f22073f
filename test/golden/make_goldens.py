#!/usr/bin/python3
"""Makes the goldens of pytorch_test.cc: networks exported by PyTorch, a batch, and what some steps of SGD with momentum do to
their weights and running statistics in double and in single precision. Needs Debian's python3-torch and python3-onnx, the large ones python3-torchvision.

    test/golden/make_goldens.py [--out FOLDER] [NAME ...]        # writes NAME.onnx and NAME.bin, into test/golden/data

The small networks (lenet, residual, hourglass, words, segments) are committed; torchvision's alexnet and resnet50 are made by torchvision.sh.

NAME.bin, little-endian: int64 steps, float64 learning rate, momentum; the images (tokens, too) as float32 and the labels as int64, each after
their int64 number of elements; then for every weight: int64 length and the bytes of its name, int64 number of elements, float64
update in double precision (its value after the steps less before), float64 norm of (single less double precision's update), the
largest of several runs.
"""
import argparse
import pathlib
import struct

import onnx
import torch
from onnx import numpy_helper
from torch import nn

MOMENTUM = 0.9
# How single precision is computed: memory format, and whether by oneDNN. Each rounds otherwise, and the largest of their errors is
# that of single precision. (A ReLU or a maximum that rounding decides changes much; in one run it may go right by chance.)
WAYS = [(memory_format, onednn) for memory_format in (torch.contiguous_format, torch.channels_last) for onednn in (True, False)]


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 5)
        self.conv2 = nn.Conv2d(4, 8, 3, padding=1)
        self.fc1 = nn.Linear(8 * 2 * 2, 24)
        self.fc2 = nn.Linear(24, 10)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = torch.nn.functional.avg_pool2d(torch.tanh(self.conv2(x)), 2)
        return self.fc2(torch.relu(self.fc1(torch.flatten(x, 1))))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn0 = nn.BatchNorm2d(8)
        self.conv1 = nn.Conv2d(8, 8, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(8)
        self.down = nn.Conv2d(8, 8, 1, stride=2, bias=False)
        self.bnd = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        x = torch.relu(self.bn0(self.stem(x)))
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        x = torch.relu(y + self.bnd(self.down(x)))
        return self.fc(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1))


class Hourglass(nn.Module):
    """Images that shrink and grow again, by all the ways that they grow in."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.deep = nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.each = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.up1 = nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1)
        self.up2 = nn.ConvTranspose2d(8, 4, 2, stride=2, groups=2)
        self.conv2 = nn.Conv2d(16, 4, 3)
        self.fc = nn.Linear(5 * 7, 6)

    def forward(self, x):
        wide = torch.tanh(self.conv1(x))
        deep = torch.tanh(self.each(torch.relu(self.deep(wide))))
        resize = nn.functional.interpolate
        linear = resize(deep[:, :4], scale_factor=2, mode="bilinear", align_corners=False)
        near = resize(deep[:, 4:], scale_factor=2, mode="nearest")
        x = torch.cat([self.up1(deep) + linear, self.up2(deep), near, wide], 1)
        x = self.conv2(nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"))
        x = nn.functional.pixel_shuffle(torch.relu(x), 2)
        x = resize(x, size=(9, 7), mode="bilinear", align_corners=True)
        return self.fc(torch.flatten(resize(x, size=(5, 7), mode="bicubic", align_corners=False), 1))


class Words(nn.Module):
    """A classifier of texts: an embedding of tokens, whose matrix also gives the scores of the words (tied), and one of places."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, 6)
        self.places = nn.Embedding(5, 6)
        self.hidden = nn.Linear(4 * 6, 6)

    def forward(self, x):
        places = torch.arange(x.shape[1]).unsqueeze(0).expand(x.shape[0], -1)
        y = self.tokens(x) + self.places(places)
        return torch.matmul(torch.tanh(self.hidden(torch.flatten(y, 1))), self.tokens.weight.t())


class Segments(nn.Module):
    """A classifier of pixels with its own loss: rare classes weigh more, pixels without a class do not count, and the lower
    rows of the image count once more."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 6, 3, padding=1)
        self.conv2 = nn.Conv2d(6, 4, 1)
        self.register_buffer("class_weights", torch.tensor([0.5, 1.0, 2.0, 0.75]), persistent=False)

    def forward(self, x, labels):
        scores = self.conv2(torch.tanh(self.conv1(x)))
        options = {"weight": self.class_weights, "ignore_index": NO_CLASS}
        whole = nn.functional.cross_entropy(scores, labels, **options)
        pixels = nn.functional.nll_loss(torch.log_softmax(scores, 1), labels, reduction="none", **options)
        return whole + 0.5 * pixels[:, 2:].mean()


NO_CLASS = 255
VOCABULARY = 11


def torchvision_net(name):
    import torchvision  # pylint: disable=import-outside-toplevel
    net = getattr(torchvision.models, name)()
    for module in net.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return net


# The network, the shape of a batch, the classes that occur in it, the learning rate (such that the loss falls by a fifth), steps.
# In ResNet-50 five steps turn single precision's rounding into changes as large as the update itself, and then any update would
# do: its first step is there too.
NETS = {
    "lenet": (LeNet, (6, 1, 12, 12), 10, 0.2, 5),
    "residual": (Residual, (6, 3, 9, 9), 5, 0.045, 5),
    "hourglass": (Hourglass, (6, 1, 8, 6), 6, 0.3, 5),
    "words": (Words, (6, 4), VOCABULARY, 0.02, 5),
    "segments": (Segments, (6, 2, 5, 4), 4, 0.2, 5),
    "alexnet": (lambda: torchvision_net("alexnet"), (8, 3, 224, 224), 4, 0.05, 5),
    "resnet50": (lambda: torchvision_net("resnet50"), (8, 3, 128, 128), 4, 0.002, 5),
    "resnet50-first-step": (lambda: torchvision_net("resnet50"), (16, 3, 64, 64), 4, 0.05, 1),
}
SMALL = ["lenet", "residual", "hourglass", "words", "segments"]


def values(net):
    """Weights and running statistics, in double precision."""
    return {k: v.detach().double().clone() for k, v in net.state_dict().items() if not k.endswith("num_batches_tracked")}


def of_population(net, images, before, after, steps):
    """Running variances are of samples in PyTorch, of the population in ONNX: what each step adds, by (n - 1) / n."""
    counts = {}
    hooks = [m.register_forward_pre_hook(lambda _, x, k=k: counts.__setitem__(k, x[0].numel() // x[0].shape[1]))
             for k, m in net.named_modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    with torch.no_grad():
        net.eval()(images)
    for hook in hooks:
        hook.remove()
    net.train()
    for name, n in counts.items():
        key = name + ".running_var"
        kept = 0.9 ** steps * before[key]
        after[key] = kept + (after[key] - kept) * (n - 1) / n


def train(net, images, labels, rate, steps):
    before = values(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=MOMENTUM)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = net(images, labels) if isinstance(net, Segments) else nn.functional.cross_entropy(net(images), labels)
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    print("  losses", [round(v, 4) for v in losses], flush=True)
    assert steps == 1 or losses[-1] <= 0.8 * losses[0], "the loss falls by less than a fifth"
    after = values(net)
    if not isinstance(net, Segments):
        of_population(net, images, before, after, steps)
    return {name: after[name] - before[name] for name in after}


def make(name, folder):
    torch.manual_seed(7)
    new_net, shape, classes, rate, steps = NETS[name]
    net = new_net()
    images = torch.randint(0, VOCABULARY, shape) if name == "words" else torch.randn(shape)
    segments = name == "segments"
    labels = torch.randint(0, classes, (shape[0], *shape[2:]) if segments else (shape[0],))
    if segments:
        labels[torch.rand(labels.shape) < 0.2] = NO_CLASS
    net.train()
    state = {k: v.clone() for k, v in net.state_dict().items()}
    torch.onnx.export(net, (images, labels) if segments else images, str(folder / f"{name}.onnx"), opset_version=17,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      input_names=["image", "labels"] if segments else ["image"], output_names=["loss" if segments else "logits"],
                      dynamic_axes={"image": {0: "batch"}} if name == "words" else None)
    # An export in training mode moves the running statistics before it writes them.
    state |= {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in onnx.load(str(folder / f"{name}.onnx")).graph.initializer
              if t.name in state and "running_" in t.name}
    singles = []
    for memory_format, onednn in WAYS if images.ndim == 4 else WAYS[:1] * 4:
        net.load_state_dict(state)
        order = torch.randperm(shape[0])
        with torch.backends.mkldnn.flags(enabled=onednn):
            singles.append(train(net.to(memory_format=memory_format), images[order].to(memory_format=memory_format), labels[order], rate, steps))
    double_net = new_net().double()
    double_net.load_state_dict({k: v.double() if v.is_floating_point() else v for k, v in state.items()})
    double_net.train()
    double = train(double_net, images.double() if images.is_floating_point() else images, labels, rate, steps)
    with open(folder / f"{name}.bin", "wb") as out:
        out.write(struct.pack("<qdd", steps, rate, MOMENTUM))
        out.write(struct.pack("<q", images.numel()) + images.float().numpy().tobytes())
        out.write(struct.pack("<q", labels.numel()) + labels.numpy().tobytes())
        blind = 0
        for key, update in double.items():
            error = max((single[key] - update).norm().item() for single in singles)
            blind += 2 * error >= 0.1 * update.norm().item() and update.norm().item() > 0
            out.write(struct.pack("<q", len(key)) + key.encode())
            out.write(struct.pack("<q", update.numel()) + update.numpy().tobytes() + struct.pack("<d", error))
    print(f"  an update that is wrong by a tenth would pass for {blind} of {len(double)}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent / "data")
    parser.add_argument("names", nargs="*", default=SMALL, metavar="NAME", help=f"of {', '.join(NETS)}")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.names:
        print(name, flush=True)
        make(name, arguments.out)


if __name__ == "__main__":
    main()
