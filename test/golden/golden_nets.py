"""The networks of make_goldens.py: small ones written for it, torchvision's, and those that ffmodel writes.

A case is a network, what a batch of it is, and how it is trained: NETS["lenet"]. A name with a dash, as resnet50-first-step, is another
case of the network before it.

    golden_nets.py resnet50 nmt       # prints the names of their cases: resnet50 resnet50-first-step nmt
"""
import pathlib
import sys
import typing

import torch
from torch import nn

NO_CLASS = 255
VOCABULARY = 11


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


class OfFile(nn.Module):
    """A network of an ONNX file, node by node (test/models/onnx_in_torch.py); its float initializers are the parameters."""

    def __init__(self, path):
        super().__init__()
        sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "models"))
        import onnx_in_torch  # pylint: disable=import-outside-toplevel
        self.run = onnx_in_torch.run
        self.model, values = onnx_in_torch.load(str(path))
        self.inputs = [i.name for i in self.model.graph.input]
        self.others = {k: v for k, v in values.items() if not v.is_floating_point()}
        for name, value in values.items():
            if value.is_floating_point():
                self.register_parameter(spelled(name), nn.Parameter(value))

    def forward(self, *inputs):
        weights = {name.replace(DOT, "."): value for name, value in self.named_parameters()}
        return self.run(self.model, weights | self.others, dict(zip(self.inputs, inputs)))["logits"]


DOT = "/"  # in a parameter's name in place of a dot, which PyTorch does not take


def spelled(name):
    return name.replace(".", DOT)


def torchvision_net(name, **options):
    import torchvision  # pylint: disable=import-outside-toplevel
    net = getattr(torchvision.models, name)(**options)
    for module in net.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    if name.startswith("vit"):  # begins as zeros, which no gradient passes
        nn.init.normal_(net.heads.head.weight, std=0.02)
    return net


class Case(typing.NamedTuple):
    new: typing.Callable  # () -> module; (FILE) -> module of one that ffmodel writes
    inputs: dict  # name -> shape of a batch, and how many tokens there are (None: normal numbers)
    labels: tuple  # shape, and the classes that occur
    rate: float  # such that the loss falls by a fifth
    steps: int = 5
    losses: tuple = ("softmax-cross-entropy",)  # as ffcompile takes them; graph: the network's own
    class_axis: int = 1
    orders: int = 1  # of the samples, in which single precision computes in each of its ways
    options: tuple = None  # of ffmodel; None: exported by PyTorch


def images(new, shape, classes, rate, steps=5, **more):
    return Case(new, {"image": (shape, None)}, (shape[:1], classes), rate, steps, **more)


def vision(name, shape, rate, steps=5, orders=1, **options):
    return images(lambda: torchvision_net(name, **options), shape, 4, rate, steps, orders=orders)


def written(options, inputs, labels, rate, class_axis, steps=5):
    return Case(OfFile, inputs, labels, rate, steps, class_axis=class_axis, options=tuple(options.split()))


WORDS = ((4, 5), 50)
RECURRENT = "--hidden 24 --sequence 5 --vocabulary 50"
NETS = {
    "lenet": images(LeNet, (6, 1, 12, 12), 10, 0.2),
    "residual": images(Residual, (6, 3, 9, 9), 5, 0.045),
    "hourglass": images(Hourglass, (6, 1, 8, 6), 6, 0.3),
    "words": Case(Words, {"image": ((6, 4), VOCABULARY)}, ((6,), VOCABULARY), 0.02),
    "segments": Case(Segments, {"image": ((6, 2, 5, 4), None)}, ((6, 5, 4), 4), 0.2, losses=("graph",)),

    # In deep networks with batch normalisation five steps turn single precision's rounding into changes as large as the update
    # itself (MobileNet's losses part in the third digit after three, at any rate), and then nearly any update would do: their first
    # step is there too. Scales in MobileNet before a depthwise convolution and its batch normalisation have no gradient but for
    # rounding: for these, 34 of its 262 weights, the first step says nothing either.
    "alexnet": vision("alexnet", (8, 3, 224, 224), 0.05),
    "resnet50": vision("resnet50", (8, 3, 128, 128), 0.002),
    "resnet50-first-step": vision("resnet50", (16, 3, 64, 64), 0.05, 1),
    "resnet101": vision("resnet101", (8, 3, 64, 64), 0.002),
    "resnet101-first-step": vision("resnet101", (16, 3, 64, 64), 0.05, 1),
    "mobilenet_v2": vision("mobilenet_v2", (16, 3, 64, 64), 0.003, orders=4),
    "mobilenet_v2-first-step": vision("mobilenet_v2", (16, 3, 64, 64), 0.05, 1),
    "densenet121": vision("densenet121", (8, 3, 64, 64), 0.002),
    "densenet121-first-step": vision("densenet121", (8, 3, 64, 64), 0.02, 1),
    "inception_v3": vision("inception_v3", (8, 3, 96, 96), 0.002, init_weights=False, aux_logits=False),
    "inception_v3-aux-first-step": Case(
        lambda: torchvision_net("inception_v3", init_weights=False, aux_logits=True), {"image": ((4, 3, 299, 299), None)},
        ((4,), 4), 0.05, 1, losses=("softmax-cross-entropy:logits", "softmax-cross-entropy:aux_logits*0.4")),
    "vit_b_16": vision("vit_b_16", (4, 3, 64, 64), 0.002, image_size=64),
    "vgg16": vision("vgg16", (2, 3, 224, 224), 0.02),

    "rnntc": written(RECURRENT, {"tokens": WORDS}, ((4,), 2), 2, 1, steps=8),
    "rnnlm": written(RECURRENT, {"tokens": WORDS}, WORDS, 2, -1),
    "nmt": written(RECURRENT, {"source": WORDS, "target": WORDS}, WORDS, 3, -1),
    "unet": written("--image 32", {"image": ((4, 1, 32, 32), None)}, ((4, 32, 32), 2), 0.02, 1),
}
SMALL = ["lenet", "residual", "hourglass", "words", "segments"]


def main():
    """Prints the names of the networks that were asked for, and of their first steps."""
    for asked in sys.argv[1:]:
        if asked not in NETS:
            sys.exit(f"there is no network '{asked}': one of {', '.join(NETS)}")
        print(*[name for name in NETS if name == asked or name.startswith(asked + "-")])


if __name__ == "__main__":
    main()
