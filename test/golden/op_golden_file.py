"""The file of make_op_goldens.py: draws inputs, calls PyTorch and autograd, and writes a case.

ops.bin, little-endian, is cases until the end. A string is int32 length and bytes; numbers (of any type) are int32 count and
float64s. A case: string type; int32 attributes, each a string name, a byte kind (i integer, r real, s string, I integers, R
reals) and string or numbers; int32 inputs, each a string name, string type (empty: absent), numbers shape, values, gradient
(none: not asked for); numbers dy; int32 outputs, each numbers (none: not compared).
"""
import struct

import torch

TYPES = {torch.float64: "f64", torch.int64: "i64", torch.int32: "i32", torch.bool: "bool"}
OUT = bytearray()  # the file so far


class Fixed:
    """A float input whose gradient is not asked for."""

    def __init__(self, value):
        self.value = value


def rounded(x):
    """Single precision has the same inputs."""
    return x.float().double()


def randn(*shape):
    return rounded(torch.randn(shape, dtype=torch.float64))


def positive(*shape):
    """In [0.5, 1.5)."""
    return rounded(0.5 + torch.rand(shape, dtype=torch.float64))


def values(*given):
    return rounded(torch.tensor(given, dtype=torch.float64))


def integers(limit, *shape):
    return torch.randint(0, limit, shape)


def put_string(text):
    OUT.extend(struct.pack("<i", len(text)) + text.encode())


def put_numbers(numbers):
    if isinstance(numbers, torch.Tensor):
        numbers = numbers.detach().double().flatten().tolist()
    OUT.extend(struct.pack(f"<i{len(numbers)}d", len(numbers), *numbers))


def put_attribute(name, value):
    put_string(name)
    several = isinstance(value, (list, tuple))
    kind = "s" if isinstance(value, str) else "r" if any(isinstance(v, float) for v in (value if several else [value])) else "i"
    OUT.extend((kind.upper() if several else kind).encode())
    if kind == "s":
        put_string(value)
    else:
        put_numbers([float(v) for v in (value if several else [value])])


def case(op, attributes, inputs, function):
    leaves = {}
    for name, x in inputs.items():
        if isinstance(x, torch.Tensor) and x.is_floating_point():
            leaves[name] = x.clone().requires_grad_()
    arguments = [leaves.get(name, x.value if isinstance(x, Fixed) else x) for name, x in inputs.items()]
    outputs = function(*arguments)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    dy = randn(*outputs[0].shape)
    dx = dict(zip(leaves, torch.autograd.grad(outputs[0], list(leaves.values()), dy.to(outputs[0].dtype), allow_unused=True)))
    put_string(op)
    OUT.extend(struct.pack("<i", len(attributes)))
    for name, value in attributes.items():
        put_attribute(name, value)
    OUT.extend(struct.pack("<i", len(inputs)))
    for (name, _), x in zip(inputs.items(), arguments):
        put_string(name)
        put_string("" if x is None else TYPES[x.dtype])
        if x is None:
            continue
        put_numbers(list(x.shape))
        put_numbers(x)
        gradient = dx.get(name)
        put_numbers(torch.zeros_like(x) if name in leaves and gradient is None else [] if gradient is None else gradient)
        assert gradient is None or gradient.isfinite().all(), (op, attributes, name)
    put_numbers(dy)
    OUT.extend(struct.pack("<i", len(outputs)))
    for y in outputs:
        put_numbers([] if y is None else y)
