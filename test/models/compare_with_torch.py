#!/usr/bin/env python3
"""Compares what ffmodel's networks compute with PyTorch's own modules, given the same weights and inputs.

usage: compare_with_torch.py FFMODEL. Exit status 77 (skipped) without the modules onnx, torch and torchvision.
"""
import os
import subprocess
import sys
import tempfile

try:
    import torch
    import torchvision.models as vision
    from torch import nn

    import onnx_in_torch
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

SMALL = ["--layers", "2", "--hidden", "32", "--heads", "4", "--sequence", "7", "--vocabulary", "50"]
RECURRENT = ["--hidden", "24", "--sequence", "5", "--vocabulary", "50"]


def tokens(length, vocabulary=50):
    return torch.randint(vocabulary, (2, length))


def image(size, channels=3):
    return torch.randn(2, channels, size, size)


def fill(module, weights):
    """A module's parameters from the file's weights of the same names; BatchNorm's counters stay."""
    state = {name: weights[name] for name in module.state_dict() if not name.endswith("num_batches_tracked")}
    module.load_state_dict(state, strict=False)
    return module.train()


def vit(w):
    w = dict(w)
    for name in list(w):  # the file has the weights of layers over tokens as [in, out]
        if name.endswith("weight") and any(part in name for part in (".in_proj.", ".out_proj.", ".mlp.")):
            w[name] = w[name].T
        if ".in_proj." in name:
            w[name.replace("in_proj.", "in_proj_")] = w[name]
    w["encoder.pos_embedding"] = w["encoder.pos_embedding"][None]
    return fill(vision.VisionTransformer(224, 16, 2, 4, 64, 256), w)


def set_linear(layer, w, name):
    layer.weight.data, layer.bias.data = w[name + ".weight"].T, w[name + ".bias"]


def set_norm(layer, w, name):
    layer.weight.data, layer.bias.data = w[name + ".weight"], w[name + ".bias"]


def encoder_layer(w, hidden, heads, first, names, eps):
    """PyTorch's own transformer layer; `names` of query, key, value (or all at once), output, two layers, norms."""
    layer = nn.TransformerEncoderLayer(hidden, heads, 4 * hidden, 0.0, "gelu", eps, True, first)
    qkv = names["in"]
    layer.self_attn.in_proj_weight.data = torch.cat([w[n + ".weight"].T for n in qkv])
    layer.self_attn.in_proj_bias.data = torch.cat([w[n + ".bias"] for n in qkv])
    set_linear(layer.self_attn.out_proj, w, names["out"])
    set_linear(layer.linear1, w, names["fc"])
    set_linear(layer.linear2, w, names["proj"])
    set_norm(layer.norm1, w, names["norm1"])
    set_norm(layer.norm2, w, names["norm2"])
    return layer.train()


def norm(x, w, name, eps):
    return nn.functional.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], eps)


def gpt2(w, inputs):
    ids = inputs["input_ids"]
    x = w["transformer.wte.weight"][ids] + w["transformer.wpe.weight"]
    mask = torch.triu(torch.full((ids.shape[1], ids.shape[1]), float("-inf")), 1)
    for i in range(2):
        n = "transformer.h.%d." % i
        x = encoder_layer(w, 32, 4, True, {"in": [n + "attn.c_attn"], "out": n + "attn.c_proj", "fc": n + "mlp.c_fc",
                                           "proj": n + "mlp.c_proj", "norm1": n + "ln_1", "norm2": n + "ln_2"},
                          1e-5)(x, mask)
    return {"logits": norm(x, w, "transformer.ln_f", 1e-5) @ w["transformer.wte.weight"].T}


def bert(w, inputs):
    e = "bert.embeddings."
    table = w[e + "word_embeddings.weight"]
    x = table[inputs["input_ids"]] + w[e + "token_type_embeddings.weight"][inputs["token_type_ids"]]
    x = norm(x + w[e + "position_embeddings.weight"], w, e + "LayerNorm", 1e-12)
    for i in range(2):
        n = "bert.encoder.layer.%d." % i
        x = encoder_layer(w, 32, 4, False, {
            "in": [n + "attention.self." + part for part in ("query", "key", "value")],
            "out": n + "attention.output.dense", "fc": n + "intermediate.dense", "proj": n + "output.dense",
            "norm1": n + "attention.output.LayerNorm", "norm2": n + "output.LayerNorm"}, 1e-12)(x)
    h = "cls.predictions."
    x = nn.functional.gelu(x @ w[h + "transform.dense.weight"] + w[h + "transform.dense.bias"])
    return {"logits": norm(x, w, h + "transform.LayerNorm", 1e-12) @ table.T + w[h + "bias"]}


def torch_lstm(w, name, size, layers):
    module = nn.LSTM(size, 24, layers, batch_first=True)
    for k in range(layers):
        def gates(value):  # the file's input, output, forget, cell are PyTorch's input, forget, cell, output
            i, o, f, c = value.chunk(4)
            return torch.cat([i, f, c, o])
        b_ih, b_hh = w["%s.l%d.B" % (name, k)][0].chunk(2)
        parts = {"weight_ih": w["%s.l%d.W" % (name, k)][0], "weight_hh": w["%s.l%d.R" % (name, k)][0],
                 "bias_ih": b_ih, "bias_hh": b_hh}
        for part, value in parts.items():
            getattr(module, "%s_l%d" % (part, k)).data = gates(value)
    return module


def rnntc(w, inputs):
    _, (h, _) = torch_lstm(w, "lstm", 1024, 4)(w["embedding.weight"][inputs["tokens"]])
    return {"logits": h[-1] @ w["classifier.weight"].T + w["classifier.bias"]}


def rnnlm(w, inputs):
    y, _ = torch_lstm(w, "lstm", 1024, 2)(w["embedding.weight"][inputs["tokens"]])
    return {"logits": y @ w["decoder.weight"] + w["decoder.bias"]}


def nmt(w, inputs):
    e, state = torch_lstm(w, "encoder.lstm", 1024, 2)(w["encoder.embedding.weight"][inputs["source"]])
    d, _ = torch_lstm(w, "decoder.lstm", 1024, 2)(w["decoder.embedding.weight"][inputs["target"]], state)
    scores = torch.einsum("bth,hk,bsk->bts", d, w["attention.score.weight"], e)
    context = torch.einsum("bts,bsh->bth", scores.softmax(2), e)
    x = torch.tanh(torch.cat([context, d], 2) @ w["attention.combine.weight"])
    return {"logits": x @ w["generator.weight"] + w["generator.bias"]}


def dlrm(w, inputs):
    linear = nn.functional.linear
    x = inputs["dense"]
    for i in range(2):
        x = linear(x, w["bottom.%d.weight" % i], w["bottom.%d.bias" % i]).relu()
    vectors = torch.stack([x] + [w["embeddings.%d.weight" % t][inputs["categories"][:, t]] for t in range(3)], 1)
    dots = torch.bmm(vectors, vectors.transpose(1, 2))
    row, column = torch.tril_indices(4, 4, -1)
    x = torch.cat([x, dots[:, row, column]], 1)
    for i in range(3):
        x = linear(x, w["top.%d.weight" % i], w["top.%d.bias" % i]).relu()
    return {"probability": linear(x, w["top.3.weight"], w["top.3.bias"]).sigmoid()}


def mixer(w, inputs):
    gelu = nn.functional.gelu
    patch = nn.functional.unfold(inputs["image"], 16, stride=16).transpose(1, 2)
    x = patch @ w["stem.weight"].flatten(1).T + w["stem.bias"]

    def mlp(y, name):
        y = gelu(y @ w[name + ".fc1.weight"] + w[name + ".fc1.bias"])
        return y @ w[name + ".fc2.weight"] + w[name + ".fc2.bias"]

    for i in range(2):
        n = "blocks.%d." % i
        y = norm(x, w, n + "norm1", 1e-6).transpose(1, 2)
        x = x + mlp(y, n + "mlp_tokens").transpose(1, 2)
        x = x + mlp(norm(x, w, n + "norm2", 1e-6), n + "mlp_channels")
    return {"logits": norm(x, w, "norm", 1e-6).mean(1) @ w["head.weight"].T + w["head.bias"]}


def unet(w, inputs):
    def conv(x, name, pad=1):
        return nn.functional.conv2d(x, w[name + ".weight"], w[name + ".bias"], padding=pad)

    def double(x, name):
        return conv(conv(x, name + ".conv1").relu(), name + ".conv2").relu()

    across = [double(inputs["image"], "down0")]
    for level in range(1, 5):
        across.append(double(nn.functional.max_pool2d(across[-1], 2), "down%d" % level))
    x = across.pop()
    for level in (3, 2, 1, 0):
        n = "up%d" % level
        x = nn.functional.conv_transpose2d(x, w[n + ".conv.weight"], w[n + ".conv.bias"], stride=2)
        x = double(torch.cat([across.pop(), x], 1), n)
    return {"logits": conv(x, "out", 0)}


def of_vision(make):
    def compute(w, inputs):
        out = make(w)(inputs["image"])
        return {"logits": out.logits, "aux_logits": out.aux_logits} if hasattr(out, "aux_logits") else {"logits": out}
    return compute


def inception(w):
    return fill(vision.inception_v3(init_weights=False, aux_logits=True, transform_input=False, dropout=0.0), w)


CASES = {
    "resnext50": ([], lambda: {"image": image(224)}, of_vision(lambda w: fill(vision.resnext50_32x4d(), w))),
    "densenet121": ([], lambda: {"image": image(224)}, of_vision(lambda w: fill(vision.densenet121(), w))),
    "inception-v3-aux": ([], lambda: {"image": image(299)}, of_vision(inception)),
    "vit-b16": (["--layers", "2", "--hidden", "64", "--heads", "4"], lambda: {"image": image(224)},
                of_vision(vit)),
    "mixer-b16": (["--layers", "2", "--hidden", "64"], lambda: {"image": image(224)}, mixer),
    "unet": (["--image", "32"], lambda: {"image": image(32, 1)}, unet),
    "gpt2-small": (SMALL, lambda: {"input_ids": tokens(7)}, gpt2),
    "bert-base": (SMALL, lambda: {"input_ids": tokens(7), "token_type_ids": tokens(7, 2)}, bert),
    "rnntc": (RECURRENT, lambda: {"tokens": tokens(5)}, rnntc),
    "rnnlm": (RECURRENT, lambda: {"tokens": tokens(5)}, rnnlm),
    "nmt": (RECURRENT, lambda: {"source": tokens(5), "target": tokens(5)}, nmt),
    "dlrm": (["--tables", "3", "--vocabulary", "50"],
             lambda: {"dense": torch.randn(2, 512), "categories": tokens(3)}, dlrm),
}


def main(ffmodel):
    torch.manual_seed(1)
    for name, (options, make_inputs, reference) in CASES.items():
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            path = os.path.join(folder, name + ".onnx")
            subprocess.run([ffmodel, name, "-o", path] + options, check=True, stderr=subprocess.DEVNULL)
            model, weights = onnx_in_torch.load(path)
            for name_of, value in weights.items():  # biases and scales that begin as 0 and 1 would hide a mistake
                if value.dtype == torch.float32 and value.dim() == 1:
                    weights[name_of] = value + 0.1 * torch.randn_like(value)
            inputs = make_inputs()
            got = onnx_in_torch.run(model, weights, inputs)
            wanted = reference(weights, inputs)
        assert list(got) == list(wanted), (name, list(got), list(wanted))
        for output in wanted:
            scale = wanted[output].std().item()
            worst = (got[output] - wanted[output]).abs().max().item() / scale
            print("%s %s: %.1e of a standard deviation of %.1e" % (name, output, worst, scale))
            assert got[output].shape == wanted[output].shape and scale > 0 and worst < 1e-3, name


main(sys.argv[1])
