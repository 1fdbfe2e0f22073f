#!/usr/bin/python3 -B
"""Makes the goldens of op_gradients_test.cc: what PyTorch's functions and its autograd give for every differentiable op of the op
table, in double precision. Needs Debian's python3-torch.

    test/golden/make_op_goldens.py [--out FILE]        # writes test/golden/data/ops.bin

To add an op: a `case` in one of the functions below (or in a new one, listed in FAMILIES): the op's type and attributes as the op
table has them, its inputs by name, and a function of those inputs that calls PyTorch. Floats have gradients, unless `Fixed`; an
input is absent if None. The function gives the first output, at which the gradient arrives, or a tuple of outputs (None: is not
compared). An op that PyTorch lacks is composed of others: autograd still finds the gradient, by other rules than the op table's.

    case("Gelu", {"tanh": 1}, {"x": randn(2, 3)}, lambda x: F.gelu(x, approximate="tanh"))

"""
import argparse
import itertools
import pathlib

import torch
from torch.nn import functional as F

from op_golden_file import OUT, Fixed, case, integers, positive, randn, rounded, values

DTYPE = {"f64": 0, "f32": 1}  # of compiler/base/dtype.h


def arithmetic():
    shapes = [((2, 3), (2, 3)), ((2, 1, 3), (4, 1)), ((), (3, 2)), ((3, 2, 2, 2), (2, 1, 1))]
    for op, function in {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div, "Pow": torch.pow,
                         "Max": torch.maximum, "Min": torch.minimum}.items():
        for a, b in shapes:
            case(op, {}, {"a": positive(*a), "b": positive(*b)}, function)
        if op in ("Max", "Min"):  # with ties
            case(op, {}, {"a": integers(3, 4, 4).double(), "b": integers(3, 4).double()}, function)
    case("Add", {"relu": 1}, {"a": randn(3, 4), "b": randn(3, 1)}, lambda a, b: torch.relu(a + b))
    case("Div", {}, {"a": randn(3, 4), "b": -positive(3, 4)}, torch.div)
    case("Pow", {}, {"a": values(0, -2, -1.5, 3, 0, 2, -3), "b": Fixed(values(2, 3, 2, -2, 1, 0, -1))}, torch.pow)
    case("Pow", {}, {"a": values(0, 0, 2, 3, 1), "b": values(2, 1, 0, -2, 5)}, torch.pow)
    x = randn(2, 3, 2)
    x[0, 0, 0] = x[1, 2, 1] = 0
    for slope in (3, 1), (1, 1), (3, 2):  # one a channel, one, one an element
        case("PRelu", {}, {"x": x, "slope": positive(*slope)}, lambda x, slope: torch.where(x > 0, x, slope * x))
    case("PRelu", {}, {"x": x, "slope": positive(3, 1)}, lambda x, slope: F.prelu(x, slope.flatten()))


def functions():
    edges = values(0, -0.5, 0.5, -3, 3, -1, 1, -30, 30)
    x = torch.cat([randn(16) * 2, edges])
    anywhere = {
        "Abs": torch.abs, "Asinh": torch.asinh, "Atan": torch.atan, "Ceil": torch.ceil, "Erf": torch.erf, "Floor": torch.floor,
        "Gelu": F.gelu, "HardSwish": F.hardswish, "Identity": lambda x: x * 1, "Mish": F.mish, "Neg": torch.neg, "Relu": F.relu,
        "Round": torch.round, "Sigmoid": torch.sigmoid, "Sign": torch.sign, "Sin": torch.sin, "Cos": torch.cos,
        "Softplus": lambda x: F.softplus(x, threshold=100), "Softsign": F.softsign, "Square": torch.square, "Tanh": torch.tanh,
    }
    for op, function in anywhere.items():
        case(op, {}, {"x": x}, function)
    for op, function in {"Cosh": torch.cosh, "Exp": torch.exp, "Sinh": torch.sinh, "Tan": torch.tan}.items():
        case(op, {}, {"x": randn(3, 4)}, function)
    for op, function in {"Sqrt": torch.sqrt, "Log": torch.log, "Reciprocal": torch.reciprocal}.items():
        case(op, {}, {"x": positive(3, 4) * 4}, function)
    for op, function in {"Asin": torch.asin, "Acos": torch.acos, "Atanh": torch.atanh}.items():
        case(op, {}, {"x": rounded(torch.rand(3, 4, dtype=torch.float64) * 1.8 - 0.9)}, function)
    case("Acosh", {}, {"x": positive(3, 4) + 0.75}, torch.acosh)
    case("Gelu", {"tanh": 1}, {"x": x}, lambda x: F.gelu(x, approximate="tanh"))
    case("Swish", {"alpha": 1.0}, {"x": x}, F.silu)
    case("Swish", {"alpha": 1.75}, {"x": x}, lambda x: x * torch.sigmoid(1.75 * x))
    case("LeakyRelu", {"alpha": 0.25}, {"x": x}, lambda x: F.leaky_relu(x, 0.25))
    case("Clip", {"min": -0.5, "max": 1.0}, {"x": x}, lambda x: torch.clamp(x, -0.5, 1))
    case("Clip", {"min": 0.0, "max": 6.0}, {"x": x}, lambda x: torch.clamp(x, 0, 6))
    case("Elu", {"alpha": 1.0}, {"x": x}, F.elu)
    case("Elu", {"alpha": 0.75}, {"x": x}, lambda x: F.elu(x, 0.75))
    case("Celu", {"alpha": 0.75}, {"x": x}, lambda x: F.celu(x, 0.75))
    case("Selu", {"alpha": 1.6732632423543772, "gamma": 1.0507009873554805}, {"x": x}, F.selu)
    case("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5}, {"x": randn(20) * 3},  # F.hardsigmoid's gradient has a sixth of single precision
         lambda x: F.hardtanh(x / 6 + 0.5, 0, 1))
    case("HardSigmoid", {"alpha": 0.25, "beta": 0.25}, {"x": x}, lambda x: F.hardtanh(0.25 * x + 0.25, 0, 1))
    case("ThresholdedRelu", {"alpha": 0.5}, {"x": x}, lambda x: F.threshold(x, 0.5, 0))
    case("Shrink", {"alpha": 0.5, "beta": 0.5}, {"x": x}, lambda x: F.softshrink(x, 0.5))
    case("Shrink", {"alpha": 0.5, "beta": 0.0}, {"x": x}, lambda x: F.hardshrink(x, 0.5))
    case("Cast", {"to": DTYPE["f64"]}, {"x": randn(3, 4)}, lambda x: x * 1)
    case("Cast", {"to": DTYPE["f32"]}, {"x": randn(3, 4)}, lambda x: x.float())
    for c, a, b in ((3, 4), (3, 4), (3, 4)), ((3, 1), (4,), (2, 3, 4)), ((2, 3), (), (3,)):
        case("Where", {}, {"c": integers(2, *c).bool(), "a": randn(*a), "b": randn(*b)}, torch.where)


def prod(x, axes):
    for axis in axes:
        x = torch.prod(x, axis, keepdim=True)
    return x


def reductions():
    for axes in [0], [1, 3], [0, 1, 2, 3], [3]:
        case("ReduceSum", {"axes": axes, "scale": 0.25}, {"x": randn(2, 3, 2, 3)}, lambda x: x.sum(axes, keepdim=True) * 0.25)
        case("ReduceMax", {"axes": axes}, {"x": integers(4, 2, 3, 2, 3).double()}, lambda x: torch.amax(x, axes, keepdim=True))
        case("ReduceProd", {"axes": axes}, {"x": positive(2, 3, 2, 3)}, lambda x: prod(x, axes))
    case("ReduceProd", {"axes": [1]}, {"x": values(0, 2, -3, 0, 5, 0, -1, 2, 2).reshape(3, 3)}, lambda x: prod(x, [1]))
    for op, function in {"Softmax": F.softmax, "LogSoftmax": F.log_softmax}.items():
        for axis in 0, 1, -1:
            case(op, {"axis": axis}, {"x": randn(3, 4, 2) * 3}, lambda x: function(x, axis))


def rms(x, inner, scale):
    y = x * torch.rsqrt(x.square().mean(tuple(range(x.ndim - len(inner), x.ndim)), keepdim=True) + 1e-3)
    return y if scale is None else y * scale


def normalizations():
    for axis, inner in (2, (4,)), (1, (3, 4)):
        for affine in True, False:
            scale, bias = (randn(*inner), randn(*inner)) if affine else (None, None)
            attributes = {"axis": axis, "epsilon": 1e-3}
            case("LayerNorm", attributes, {"x": randn(2, 3, 4), "scale": scale, "bias": bias},
                 lambda x, scale, bias: F.layer_norm(x, inner, scale, bias, 1e-3))
            case("RMSNorm", attributes, {"x": randn(2, 3, 4), "scale": scale}, lambda x, scale: rms(x, inner, scale))
    for shape, relu in itertools.product([(2, 3, 2, 3), (6, 3), (2, 2, 3)], (0, 1)):
        c = shape[1]
        after = torch.relu if relu else lambda y: y
        def training(x, scale, bias):
            axes = [a for a in range(x.ndim) if a != 1]
            y = F.batch_norm(x, None, None, scale, bias, True, 0, 1e-3)
            return after(y), x.mean(axes), x.var(axes, unbiased=False)
        attributes, inputs = {"epsilon": 1e-3, "relu": relu}, {"x": randn(*shape), "scale": randn(c), "bias": randn(c)}
        case("BatchNorm", attributes, inputs, training)
        case("BatchNormInference", attributes, {**inputs, "mean": Fixed(randn(c)), "var": Fixed(positive(c))},
             lambda x, scale, bias, mean, var: after(F.batch_norm(x, mean, var, scale, bias, False, 0, 1e-3)))
    for shape, groups, relu in itertools.product([(4, 3, 2, 3)], (2, 4), (0, 1)):
        c = shape[1]
        after = torch.relu if relu else lambda y: y
        def grouped(x, scale, bias):
            parts = x.chunk(groups)
            y = torch.cat([F.batch_norm(part, None, None, scale, bias, True, 0, 1e-3) for part in parts])
            return after(y), torch.stack([p.mean((0, 2, 3)) for p in parts]), torch.stack([p.var((0, 2, 3), unbiased=False) for p in parts])
        case("BatchNorm", {"epsilon": 1e-3, "relu": relu, "groups": groups},
             {"x": randn(*shape), "scale": randn(c), "bias": randn(c)}, grouped)
    for channels, size in (7, 3), (5, 5), (3, 5), (4, 1), (6, 2), (5, 4):
        # An even size has one channel more before than behind in PyTorch, behind than before in ONNX.
        flip = [1] if size % 2 == 0 else []
        case("LRN", {"size": size, "alpha": 0.7, "beta": 0.75, "bias": 1.5}, {"x": randn(1, channels, 2, 2)},
             lambda x: F.local_response_norm(x.flip(flip), size, 0.7, 0.75, 1.5).flip(flip))


def spatial_pads(pads):
    """ONNX's order (all begins, all ends) to that of F.pad (the last axis first)."""
    half = len(pads) // 2
    return [p for a in reversed(range(half)) for p in (pads[a], pads[half + a])]


def convolutions():
    def conv(x, w, bias=True, relu=0, **attributes):
        n = len(x) - 2
        function = [F.conv1d, F.conv2d, F.conv3d][n - 1]
        def run(x, w, b):
            y = function(F.pad(x, spatial_pads(attributes.get("pads", [0] * 2 * n))), w, b, attributes.get("strides", 1), 0,
                         attributes.get("dilations", 1), attributes.get("group", 1))
            return torch.relu(y) if relu else y
        if relu:
            attributes["relu"] = 1
        case("Conv", attributes, {"x": randn(*x), "w": randn(*w), "b": randn(w[0]) if bias else None}, run)
    conv((2, 2, 4, 4), (2, 2, 3, 3), pads=[1, 1, 1, 1])
    conv((1, 2, 5, 4), (2, 2, 3, 2), strides=[2, 1], pads=[0, 1, 2, 0])
    conv((1, 2, 6, 5), (2, 2, 2, 2), dilations=[2, 3])
    conv((2, 4, 4, 3), (6, 2, 2, 2), group=2)
    conv((2, 3, 4, 4), (3, 1, 3, 3), group=3, strides=[2, 2], pads=[1, 1, 1, 1])
    conv((2, 2, 4, 4), (3, 2, 1, 1), strides=[2, 2], bias=False)
    conv((2, 2, 7), (3, 2, 3), strides=[2])
    conv((1, 2, 3, 3, 3), (2, 2, 2, 2, 2), pads=[0, 1, 0, 0, 0, 0])
    conv((1, 2, 4, 4), (3, 2, 2, 2), relu=1, pads=[1, 0, 0, 0])

    def transposed(x, w, output_padding=0, **attributes):
        n = len(x) - 2
        function = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][n - 1]
        run = lambda x, w: function(x, w, None, attributes.get("strides", 1), attributes.get("pads", [0] * n)[:n], output_padding,
                                    attributes.get("group", 1), attributes.get("dilations", 1))
        x, w = randn(*x), randn(*w)
        case("ConvTranspose", {**attributes, "output_shape": list(run(x, w).shape[2:])}, {"x": x, "w": w}, run)
    transposed((2, 2, 3, 3), (2, 3, 3, 3))
    transposed((1, 2, 3, 2), (2, 2, 3, 2), strides=[2, 1], pads=[1, 0, 1, 0])
    transposed((2, 2, 3, 2), (2, 2, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1], output_padding=1)
    transposed((1, 1, 3, 3), (1, 2, 2, 2), dilations=[2, 3])
    transposed((1, 4, 3, 2), (4, 1, 2, 2), group=2)
    transposed((2, 2, 4), (2, 3, 3), strides=[2])
    transposed((1, 2, 2, 2, 2), (2, 2, 2, 2, 2), strides=[1, 2, 1])


def pools():
    def pool(x, kernel, ties=False, **attributes):
        n = len(x) - 2
        attributes["kernel_shape"] = kernel
        maximum = [F.max_pool1d, F.max_pool2d, F.max_pool3d][n - 1]
        average = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][n - 1]
        strides, pads = attributes.get("strides", [1] * n), attributes.get("pads", [0] * n)[:n]
        ceil = bool(attributes.get("ceil_mode", 0))
        image = integers(3, *x).double() if ties else randn(*x)
        case("MaxPool", attributes, {"x": image},
             lambda x: maximum(x, kernel, strides, pads, attributes.get("dilations", 1), ceil_mode=ceil))
        for with_pads in () if "dilations" in attributes else (0, 1):
            case("AveragePool", {**attributes, "count_include_pad": with_pads}, {"x": image},
                 lambda x: average(x, kernel, strides, pads, ceil, bool(with_pads)))
    pool((2, 2, 4, 4), [2, 2], strides=[2, 2])
    pool((1, 2, 4, 5), [3, 3], pads=[1, 1, 1, 1])
    pool((1, 2, 4, 5), [3, 3], ties=True, pads=[1, 1, 1, 1])
    pool((1, 2, 6, 5), [3, 3], strides=[2, 2], ceil_mode=1)
    pool((1, 1, 6, 4), [3, 2], strides=[2, 3], ceil_mode=1, pads=[1, 1, 1, 1])
    pool((1, 2, 5, 4), [2, 2], dilations=[3, 2])
    pool((2, 2, 7), [3], strides=[2])
    pool((1, 1, 3, 4, 3), [2, 2, 2], strides=[1, 2, 1])
    for p in 1, 2, 3:
        case("LpPool", {"kernel_shape": [2, 2], "strides": [2, 2], "p": p}, {"x": positive(1, 2, 4, 4)},
             lambda x: F.lp_pool2d(x, p, 2, 2))
        case("LpPool", {"kernel_shape": [3], "strides": [2], "p": p}, {"x": positive(2, 2, 7)}, lambda x: F.lp_pool1d(x, p, 3, 2))
        case("LpPool", {"kernel_shape": [2, 2], "strides": [2, 2], "p": p}, {"x": randn(1, 2, 4, 4)},  # lp_pool2d takes no |x|
             lambda x: F.avg_pool2d(x.abs() ** p, 2, divisor_override=1) ** (1 / p))
    case("GlobalAveragePool", {}, {"x": randn(2, 3, 3, 4)}, lambda x: F.adaptive_avg_pool2d(x, 1))
    case("GlobalAveragePool", {}, {"x": randn(2, 2, 5)}, lambda x: F.adaptive_avg_pool1d(x, 1))


def resizes():
    names = {("linear", 1): "linear", ("linear", 2): "bilinear", ("linear", 3): "trilinear", ("cubic", 2): "bicubic"}
    def resize(mode, x, sizes, corners=False):
        n = len(sizes)
        shift = 0.0 if mode == "nearest" or corners else 0.5
        attributes = {"sizes": sizes, "mode": mode, "rounding": "floor", "result_shift": shift, "shifts": [shift] * n,
                      "from": [float(v - corners) for v in x[2:]], "to": [float(v - corners) for v in sizes],
                      "coefficient": -0.75, "exclude_outside": 0}
        case("Resize", attributes, {"x": randn(*x)},
             lambda x: F.interpolate(x, sizes, mode=names.get((mode, n), mode), align_corners=None if mode == "nearest" else corners))
    resize("nearest", (2, 2, 2, 3), [4, 6])
    resize("nearest", (1, 2, 5, 4), [2, 7])
    resize("nearest", (2, 2, 3), [8])
    for corners in False, True:
        resize("linear", (2, 2, 2, 3), [4, 5], corners)
        resize("linear", (1, 2, 4, 3), [2, 3], corners)
        resize("linear", (2, 2, 3), [7], corners)
        resize("linear", (1, 2, 2, 2, 3), [3, 2, 2], corners)
        resize("cubic", (1, 2, 4, 3), [5, 7], corners)


def products():
    def matmul(a, b, ta, tb, relu=0, biased=True):
        def run(a, b, bias):
            y = torch.matmul(a.mT if ta else a, b.mT if tb else b)
            y = y if bias is None else y + bias
            return torch.relu(y) if relu else y
        bias = randn(b[-1]) if biased else None
        a, b = randn(*a), randn(*b)
        a, b = a.mT.contiguous() if ta else a, b.mT.contiguous() if tb else b
        case("MatMul", {"trans_a": ta, "trans_b": tb, "relu": relu}, {"a": a, "b": b, "bias": bias}, run)
    for ta, tb in itertools.product((0, 1), (0, 1)):
        matmul((3, 4), (4, 5), ta, tb)
        matmul((2, 3, 2), (2, 4), ta, tb)
        matmul((2, 1, 2, 3), (3, 3, 2), ta, tb)
        matmul((3, 4), (4, 3), ta, tb, relu=1)
        matmul((2, 3), (3, 2), ta, tb, biased=False)


def shapes():
    for pads, value, x in ([0, 0, 1, 2, 0, 0, 3, 0], 0.5, (2, 2, 2, 3)), ([1, -1, 0, 2], -1.0, (3, 4)), ([-2, 0, 4, -1], 0.0, (5, 3)):
        case("Pad", {"pads": pads, "value": value}, {"x": randn(*x)}, lambda x: F.pad(x, spatial_pads(pads), value=value))
    case("Slice", {"starts": [0, 1, 2], "ends": [2, 4, 7], "steps": [1, 1, 2]}, {"x": randn(2, 5, 8)}, lambda x: x[:, 1:4, 2:7:2])
    case("Slice", {"starts": [1, 0], "ends": [6, 7], "steps": [3, 2]}, {"x": randn(6, 7)}, lambda x: x[1:6:3, ::2])
    case("Concat", {"axis": 1}, {"a": randn(2, 2, 2), "b": randn(2, 1, 2), "c": randn(2, 4, 2)}, lambda *x: torch.cat(x, 1))
    case("Concat", {"axis": 0}, {"a": randn(1, 3), "b": randn(3, 3)}, lambda *x: torch.cat(x, 0))
    for x, y in ((2, 3, 2, 2), [2, 12]), ((2, 2, 3, 2), [4, 1, 6]), ((4, 3), [6, 2]):
        case("Reshape", {"shape": y}, {"x": randn(*x)}, lambda x: x.reshape(y))
    for x, perm in ((2, 3, 4), [2, 0, 1]), ((2, 3, 2, 2), [0, 2, 3, 1]):
        case("Transpose", {"perm": perm}, {"x": randn(*x)}, lambda x: x.permute(perm))
    for x, y in ((4, 1), [3, 4, 2]), ((1, 4), [3, 4]), ((), [4]):
        case("Expand", {"shape": y}, {"x": randn(*x)}, lambda x: x.expand(y))
    for k in -2, 0, 1:
        case("Trilu", {"upper": 1, "k": k}, {"x": randn(2, 4, 5)}, lambda x: torch.triu(x, k))
        case("Trilu", {"upper": 0, "k": k}, {"x": randn(2, 4, 5)}, lambda x: torch.tril(x, k))


def indices():
    case("Gather", {"axis": 0}, {"x": randn(4, 3), "i": integers(4, 3, 2)}, lambda x, i: F.embedding(i, x))
    case("Gather", {"axis": 1}, {"x": randn(2, 4, 2), "i": integers(4, 5)}, lambda x, i: torch.index_select(x, 1, i))
    case("Gather", {"axis": 1}, {"x": randn(2, 4), "i": integers(4, 3).int()}, lambda x, i: torch.index_select(x, 1, i))
    case("Gather", {"axis": 2}, {"x": randn(2, 2, 3), "i": torch.tensor(1)}, lambda x, i: torch.select(x, 2, 1))
    case("GatherElements", {"axis": 1}, {"x": randn(3, 4), "i": integers(4, 3, 3)}, lambda x, i: torch.gather(x, 1, i))
    case("GatherElements", {"axis": 0}, {"x": randn(3, 2, 2), "i": integers(3, 4, 2, 2)}, lambda x, i: torch.gather(x, 0, i))
    case("GatherElements", {"axis": 1}, {"x": randn(4, 3), "i": integers(3, 2, 2)}, lambda x, i: torch.gather(x, 1, i))
    case("GatherND", {}, {"x": randn(3, 3, 2), "i": integers(3, 4, 2)}, lambda x, i: x[i[:, 0], i[:, 1]])
    case("GatherND", {"batch_dims": 1}, {"x": randn(2, 3, 2), "i": integers(3, 2, 3, 1)},
         lambda x, i: x[torch.arange(2)[:, None], i[:, :, 0]])
    for i in integers(4, 3, 3), integers(4, 2, 3):
        case("ScatterElements", {"axis": 1, "reduction": "add"}, {"x": randn(3, 4), "i": i, "u": randn(*i.shape)},
             lambda x, i, u: torch.scatter_add(x, 1, i, u))
    case("ScatterElements", {"axis": 1, "reduction": "none"}, {"x": randn(3, 4), "i": torch.tensor([[0, 3], [2, 1]]), "u": randn(2, 2)},
         lambda x, i, u: torch.scatter(x, 1, i, u))
    case("ScatterElements", {"axis": 0, "reduction": "none"}, {"x": randn(3, 4), "i": integers(3, 1, 4), "u": randn(1, 4)},
         lambda x, i, u: torch.scatter(x, 0, i, u))
    case("ScatterND", {"reduction": "add"}, {"x": randn(3, 3, 2), "i": integers(3, 5, 2), "u": randn(5, 2)},
         lambda x, i, u: torch.index_put(x, (i[:, 0], i[:, 1]), u, accumulate=True))
    case("ScatterND", {"reduction": "none"}, {"x": randn(4, 3), "i": torch.tensor([[2], [0]]), "u": randn(2, 3)},
         lambda x, i, u: torch.index_put(x, (i[:, 0],), u))
    for reverse in 0, 1:
        flip = [1] if reverse else []
        case("CumSum", {"axis": 1, "exclusive": 0, "reverse": reverse}, {"x": randn(3, 4, 2)},
             lambda x: torch.cumsum(x.flip(flip), 1).flip(flip))
        case("CumSum", {"axis": 1, "exclusive": 1, "reverse": reverse}, {"x": randn(3, 4, 2)},
             lambda x: torch.cumsum(F.pad(x.flip(flip), [0, 0, 1, -1]), 1).flip(flip))
    for largest in 0, 1:
        case("TopK", {"axis": 1, "k": 2, "largest": largest}, {"x": randn(3, 4, 2)},
             lambda x: tuple(torch.topk(x, 2, 1, bool(largest))))


def likelihood(x, labels, weights, smoothing, ignored):
    """nll_loss with label smoothing, which PyTorch has in cross_entropy alone: its formula, of log-probabilities."""
    kept = labels != ignored
    w = torch.ones(x.shape[1], dtype=x.dtype) if weights is None else weights
    own = -torch.gather(x, 1, labels.unsqueeze(1)).squeeze(1) * w[labels]
    every = -(x * w.reshape(1, -1, *[1] * (x.ndim - 2))).sum(1)
    return ((1 - smoothing) * own + smoothing / x.shape[1] * every)[kept].sum() / w[labels[kept]].sum()


def losses():
    for shape, weighted, smoothing in itertools.product([(6, 4), (3, 4, 2)], (False, True), (0.0, 0.125)):
        labels = integers(4, shape[0], *shape[2:])
        labels.view(-1)[0], ignored = 2, 2
        weights = positive(4) if weighted else None
        count = sum(1.0 if weights is None else weights[v].item() for v in labels.flatten().tolist() if v != ignored)
        attributes = {"axis": 1, "scale": 1.0, "label_smoothing": smoothing, "ignore_index": ignored}
        # The class weights, and what the loss is divided by (LossCount's result).
        rest = {"labels": labels, "weights": None if weights is None else Fixed(weights),
                "count": Fixed(torch.tensor(count, dtype=torch.float64))}
        case("SoftmaxCrossEntropy", attributes, {"x": randn(*shape) * 2, **rest}, lambda x, labels, weights, _:
             F.cross_entropy(x, labels, weights, ignore_index=ignored, label_smoothing=smoothing))
        def negative_log_likelihood(x, labels, weights, _):
            if smoothing == 0:
                return F.nll_loss(x, labels, weights, ignore_index=ignored)
            return likelihood(x, labels, weights, smoothing, ignored)
        case("NegativeLogLikelihood", attributes, {"x": rounded(F.log_softmax(randn(*shape), 1)), **rest}, negative_log_likelihood)
    # Without a count the scale is that of the mean, and every label counts.
    for op, function in {"SoftmaxCrossEntropy": F.cross_entropy, "NegativeLogLikelihood": F.nll_loss}.items():
        case(op, {"axis": 1, "scale": 1 / 6}, {"x": randn(6, 4), "labels": integers(4, 6)}, function)
    x = torch.cat([randn(2, 4) * 3, values(40, -40, 0, 1).reshape(1, 4)])
    case("MeanSquaredError", {"scale": 1 / 12}, {"x": x, "target": Fixed(randn(3, 4))}, F.mse_loss)
    target = Fixed(rounded(torch.rand(3, 4, dtype=torch.float64)))
    case("BinaryCrossEntropy", {"scale": 1 / 12}, {"x": x, "target": target}, F.binary_cross_entropy_with_logits)


def recurrent():
    time, batch, inputs, hidden = 4, 2, 3, 2
    # PyTorch's order of the gates, by ONNX's.
    order = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}

    def run(op, activation, directions, reverse):
        def gates(t):
            return torch.cat([t.chunk(len(order[op]))[k] for k in order[op]])

        def forward(x, w, r, bias, _, h0, c0=None, p=None):
            weights = []
            for d in range(directions):
                both = [torch.zeros(len(order[op]) * hidden, dtype=x.dtype)] * 2 if bias is None else bias[d].chunk(2)
                weights += [gates(w[d]), gates(r[d]), gates(both[0]), gates(both[1])]
            x = x.flip(0) if reverse else x
            zeros = torch.zeros(directions, batch, hidden, dtype=x.dtype)
            state = zeros if h0 is None else h0
            if op == "LSTM":
                state = (state, zeros if c0 is None else c0)
            function = {"LSTM": torch._VF.lstm, "GRU": torch._VF.gru, "Tanh": torch._VF.rnn_tanh, "Relu": torch._VF.rnn_relu}
            y = function[activation if op == "RNN" else op](x, state, weights, True, 1, 0.0, True, directions == 2, False)[0]
            y = y.flip(0) if reverse else y
            return y.view(time, batch, directions, hidden).transpose(1, 2)
        return forward

    for op, n in ("LSTM", 4), ("GRU", 3), ("RNN", 1):
        for direction in "forward", "reverse", "bidirectional":
            for activation in ("Tanh", "Relu") if op == "RNN" else ("",):
                attributes = {"direction": direction}
                if op == "GRU":
                    attributes["linear_before_reset"] = 1
                if op == "RNN":
                    attributes["activation"] = activation
                d = 2 if direction == "bidirectional" else 1
                for given in True, False:
                    tensors = {"x": randn(time, batch, inputs), "w": randn(d, n * hidden, inputs), "r": randn(d, n * hidden, hidden),
                               "bias": randn(d, 2 * n * hidden) if given else None, "lengths": None,
                               "h0": randn(d, batch, hidden) if given else None}
                    if op == "LSTM":
                        tensors |= {"c0": randn(d, batch, hidden) if given else None, "p": None}
                    case(op, attributes, tensors, run(op, activation, d, direction == "reverse"))


FAMILIES = [arithmetic, functions, reductions, normalizations, convolutions, pools, resizes, products, shapes, indices, losses,
            recurrent]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent / "data" / "ops.bin")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for seed, family in enumerate(FAMILIES):
        torch.manual_seed(seed)  # a new case moves the values of its family alone
        family()
    arguments.out.write_bytes(OUT)
    print(f"{arguments.out}: {len(OUT)} bytes")


if __name__ == "__main__":
    main()
