"""Runs an ONNX file of ffmodel with PyTorch, node by node, each as the ONNX standard defines it."""
import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def lstm(x, w, r, b, hidden, h=None, c=None):
    """Gates in the order input, output, forget, cell; one direction."""
    steps, batch, _ = x.shape
    h = x.new_zeros(batch, hidden) if h is None else h[0]
    c = x.new_zeros(batch, hidden) if c is None else c[0]
    wb, rb = b[0].chunk(2)
    out = []
    for t in range(steps):
        i, o, f, g = (x[t] @ w[0].T + wb + h @ r[0].T + rb).chunk(4, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        out.append(h)
    return torch.stack(out)[:, None], h[None], c[None]


def gather(data, index, axis):
    flat = torch.index_select(data, axis, index.reshape(-1))
    return flat.reshape(data.shape[:axis] + index.shape + data.shape[axis + 1:])


def sides(a):
    pads = a["pads"]
    assert pads[:2] == pads[2:], pads
    return pads[:2]


def reshape(x, shape):
    return x.reshape([x.shape[i] if d == 0 else int(d) for i, d in enumerate(shape)])


OPS = {
    "Add": lambda a, x, y: x + y,
    "Mul": lambda a, x, y: x * y,
    "Div": lambda a, x, y: x / y,
    "Relu": lambda a, x: F.relu(x),
    "Tanh": lambda a, x: torch.tanh(x),
    "Sigmoid": lambda a, x: torch.sigmoid(x),
    "Erf": lambda a, x: torch.erf(x),
    "Clip": lambda a, x, low, high: torch.clamp(x, low, high),
    "Softmax": lambda a, x: torch.softmax(x, a["axis"]),
    "MatMul": lambda a, x, y: x @ y,
    "Gemm": lambda a, x, w, b: F.linear(x, w, b),
    "Conv": lambda a, x, w, b=None: F.conv2d(x, w, b, a["strides"], sides(a), groups=a["group"]),
    "ConvTranspose": lambda a, x, w, b: F.conv_transpose2d(x, w, b, a["strides"], sides(a)),
    "MaxPool": lambda a, x: F.max_pool2d(x, a["kernel_shape"], a["strides"], sides(a)),
    "AveragePool": lambda a, x: F.avg_pool2d(x, a["kernel_shape"], a["strides"], sides(a)),
    "GlobalAveragePool": lambda a, x: x.mean((2, 3), keepdim=True),
    "BatchNormalization": lambda a, x, s, b, m, v: F.batch_norm(x, None, None, s, b, True, 0.1, a["epsilon"]),
    "LayerNormalization": lambda a, x, s, b: F.layer_norm(x, s.shape, s, b, a["epsilon"]),
    "ReduceMean": lambda a, x: x.mean(a["axes"], keepdim=bool(a["keepdims"])),
    "Concat": lambda a, *xs: torch.cat(xs, a["axis"]),
    "Flatten": lambda a, x: x.flatten(a["axis"]),
    "Reshape": lambda a, x, shape: reshape(x, shape),
    "Transpose": lambda a, x: x.permute(a["perm"]),
    "Split": lambda a, x, sizes: torch.split(x, sizes.tolist(), a["axis"]),
    "Squeeze": lambda a, x, axes: x.squeeze(int(axes[0])),
    "Gather": lambda a, x, index: gather(x, index, a["axis"]),
    "Shape": lambda a, x: torch.tensor(x.shape[a["start"]:a["end"]]),
    "Expand": lambda a, x, shape: x.expand(shape.tolist()),
    "LSTM": lambda a, x, w, r, b, _=None, h=None, c=None: lstm(x, w, r, b, a["hidden_size"], h, c),
}


def load(path):
    """The model and its float weights by name."""
    model = onnx.load(path)
    values = {t.name: torch.from_numpy(np.array(numpy_helper.to_array(t))) for t in model.graph.initializer}
    return model, values


def run(model, weights, inputs):
    """The model's outputs by name."""
    values = dict(weights, **inputs)
    for node in model.graph.node:
        out = OPS[node.op_type](attributes(node), *[values[i] if i else None for i in node.input])
        out = out if isinstance(out, tuple) else (out,)
        values.update(zip(node.output, out))
    return {o.name: values[o.name] for o in model.graph.output}
