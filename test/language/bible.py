#!/usr/bin/python3
"""Language models of the King James text, byte by byte, beside PyTorch: what bible.sh runs. Needs Debian's python3-torch, python3-onnx
and bible-kjv.

    bible.py prepare lstm FOLDER          # model.onnx, x.npy and y.npy of all steps, PyTorch's perplexity after them
    bible.py compare lstm FOLDER          # that of FOLDER/trained.onnx beside it; status 1 if it is off by more than 2 %

The text is cut in order into sequences; every step has the next ones, the last tenth of the text is held out.
"""
import json
import math
import pathlib
import subprocess
import sys

import numpy
import onnx
import torch
from onnx import numpy_helper
from torch import nn
from torch.nn import functional

BATCH, LENGTH, STEPS, RATE = 32, 64, 400, 1e-3
WIDTH, HEADS = 128, 4


class Lstm(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, num_layers=2, batch_first=True)
        self.head = nn.Linear(WIDTH, vocabulary)

    def forward(self, x):
        return self.head(self.lstm(self.embedding(x))[0])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, mask):
        q, k, v = [t.view(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(WIDTH, -1)]
        scores = q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5 + mask
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WIDTH)
        self.position = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        self.blocks = nn.ModuleList([Block() for _ in range(4)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, vocabulary)
        self.register_buffer("mask", torch.triu(torch.full((LENGTH, LENGTH), -1e9), 1))

    def forward(self, x):
        x = self.embedding(x) + self.position
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(self.norm(x))


MODELS = {"lstm": Lstm, "transformer": Transformer}


def text():
    """The text without verse numbers, as indices of its bytes, and how many different ones there are."""
    lines = subprocess.run(["bible", "-f", "Gen1:1-Rev22:21"], capture_output=True, check=True).stdout.splitlines()
    letters = numpy.frombuffer(b"\n".join(line.split(b" ", 1)[1] for line in lines), numpy.uint8)
    known, indices = numpy.unique(letters, return_inverse=True)
    return indices.astype(numpy.int64), len(known)


def sequences(indices):
    count = (len(indices) - 1) // LENGTH
    cut = lambda start: indices[start:start + count * LENGTH].reshape(count, LENGTH)
    return cut(0), cut(1)


def perplexity(model, x, y):
    model.eval()
    with torch.no_grad():
        losses = [loss(model, x[i:i + BATCH], y[i:i + BATCH]).item() for i in range(0, 40 * BATCH, BATCH)]
    return math.exp(sum(losses) / len(losses))


def loss(model, x, y):
    return functional.cross_entropy(model(torch.from_numpy(x)).transpose(1, 2), torch.from_numpy(y))


def prepare(name, folder):
    indices, vocabulary = text()
    held_out = len(indices) * 9 // 10
    x, y = sequences(indices[:held_out])
    # Steps see places all over the text.
    order = numpy.random.RandomState(1).permutation(len(x))[:STEPS * BATCH]
    x, y = x[order], y[order]
    numpy.save(folder / "x.npy", x)
    numpy.save(folder / "y.npy", y)
    torch.manual_seed(1)
    model = MODELS[name](vocabulary)
    torch.onnx.export(model, torch.from_numpy(x[:BATCH]), str(folder / "model.onnx"), opset_version=17,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, input_names=["x"],
                      output_names=["scores"])
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    model.train()
    for step in range(STEPS):
        optimizer.zero_grad()
        value = loss(model, x[step * BATCH:(step + 1) * BATCH], y[step * BATCH:(step + 1) * BATCH])
        value.backward()
        optimizer.step()
    print(f"{name}: PyTorch's loss {value.item():.4f} after {STEPS} steps")
    (folder / "pytorch.json").write_text(json.dumps({"perplexity": perplexity(model, *sequences(indices[held_out:]))}))


def compare(name, folder):
    indices, vocabulary = text()
    model = MODELS[name](vocabulary)
    trained = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in onnx.load(str(folder / "trained.onnx")).graph.initializer}
    state = model.state_dict()
    missing = [key for key in state if key not in trained and key != "mask"]
    if missing:
        sys.exit(f"{name}: the trained model lacks {missing}")
    model.load_state_dict({key: trained.get(key, state[key]).reshape(state[key].shape) for key in state})
    ours = perplexity(model, *sequences(indices[len(indices) * 9 // 10:]))
    theirs = json.loads((folder / "pytorch.json").read_text())["perplexity"]
    print(f"{name}: perplexity {ours:.3f} on what is held out, PyTorch's {theirs:.3f} ({100 * (ours / theirs - 1):+.2f} %)")
    sys.exit(abs(ours / theirs - 1) > 0.02)


if __name__ == "__main__":
    {"prepare": prepare, "compare": compare}[sys.argv[1]](sys.argv[2], pathlib.Path(sys.argv[3]))
