"""mlx.nn, mlx.optimizers and mlx.utils, as they are installed, on top of this package: the same program gives the same numbers with MLX's own core."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from test_package import ENVIRONMENT

PROGRAM = '''
import json, os, sys, tempfile
from functools import partial

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.utils import tree_flatten, tree_map, tree_unflatten

mx.set_default_device(mx.cpu)
mx.random.seed(3)
shown = {"ours": mx.array.__module__.startswith("holdfast")}


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = nn.MultiHeadAttention(width, 2)
        self.norms = [nn.LayerNorm(width), nn.RMSNorm(width)]
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width, bias=False)
        self.dropout = nn.Dropout(0.0)

    def __call__(self, x, mask):
        y = self.norms[0](x)
        x = x + self.attention(y, y, y, mask)
        return x + self.dropout(self.down(nn.gelu(self.up(self.norms[1](x)))))


class Model(nn.Module):
    def __init__(self, tokens, width, blocks):
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.positions = nn.SinusoidalPositionalEncoding(width)
        self.blocks = [Block(width) for _ in range(blocks)]
        self.out = nn.Linear(width, tokens)

    def __call__(self, x):
        mask = nn.MultiHeadAttention.create_additive_causal_mask(x.shape[1])
        y = self.embedding(x) + self.positions(mx.arange(x.shape[1]))
        for block in self.blocks:
            y = block(y, mask)
        return self.out(y)


model = Model(11, 64, 2)
mx.eval(model.parameters())
shown["parameters"] = sum(value.size for _, value in tree_flatten(model.parameters()))
x = mx.array([[(3 * i + j) % 11 for i in range(8)] for j in range(4)])


def loss_of(model, x):
    return nn.losses.cross_entropy(model(x[:, :-1]), x[:, 1:], reduction="mean")


for name, optimizer in (("adamw", optim.AdamW(optim.cosine_decay(3e-3, 20))), ("sgd", optim.SGD(0.05, momentum=0.9)),
                        ("lion", optim.Lion(1e-4))):
    step = nn.value_and_grad(model, loss_of)
    losses = []
    for _ in range(4):
        loss, gradients = step(model, x)
        gradients, norm = optim.clip_grad_norm(gradients, 1.0)
        optimizer.update(model, gradients)
        mx.eval(model.parameters(), optimizer.state)
        losses.append(loss.item())
    shown[name] = losses

state = [model.state, optimizer.state]


@partial(mx.compile, inputs=state, outputs=state)
def compiled(x):
    loss, gradients = nn.value_and_grad(model, loss_of)(model, x)
    optimizer.update(model, gradients)
    return loss


shown["compiled"] = [compiled(x).item() for _ in range(3)]
model.freeze()
model.blocks[0].up.unfreeze()
shown["trainable"] = sorted(name for name, _ in tree_flatten(model.trainable_parameters()))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "weights.safetensors")
    model.save_weights(path)
    other = Model(11, 64, 2)
    other.load_weights(path)
    shown["loaded"] = mx.array_equal(model(x), other(x)).item()
nn.quantize(other, group_size=32, bits=8)
shown["quantized"] = [type(other.out).__name__, mx.abs(other(x) - model(x)).max().item() < 0.2]
convolutions = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm(4), nn.relu, nn.MaxPool2d(2, 2), nn.Upsample(2), nn.GroupNorm(2, 4))
shown["convolutions"] = [mx.abs(convolutions(mx.ones((2, 8, 8, 3)) * mx.arange(8)[:, None])).sum().item()]
recurrent = nn.LSTM(4, 5)
shown["recurrent"] = [mx.abs(part).sum().item() for part in recurrent(mx.ones((2, 3, 4)))]
doubled = tree_map(lambda p: 2 * p, model.parameters())
shown["tree"] = len(tree_flatten(tree_unflatten(tree_flatten(doubled))))
print(json.dumps(shown))
'''


def folder_of_mlx():
    spec = importlib.util.find_spec("mlx")
    places = list(spec.submodule_search_locations) if spec else []
    return next((os.path.dirname(place) for place in places if os.path.exists(os.path.join(place, "nn"))), None)


def close(a, b):
    if isinstance(a, list):
        return len(a) == len(b) and all(map(close, a, b))
    return abs(a - b) <= 2e-3 * max(1, abs(b)) if isinstance(a, float) else a == b


@pytest.mark.skipif(folder_of_mlx() is None, reason="mlx is not installed")
def test_the_python_parts_of_mlx(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join([ENVIRONMENT["PYTHONPATH"], folder_of_mlx()])}

    def run(*words):
        result = subprocess.run([sys.executable, *words, str(program)], env=environment, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    ours, theirs = run("-m", "holdfast.mlx"), run()
    assert ours.pop("ours") and not theirs.pop("ours")
    assert ours["adamw"][-1] < ours["adamw"][0] and ours["loaded"] and ours["quantized"] == ["QuantizedLinear", True]
    different = {name: (value, theirs[name]) for name, value in ours.items() if not close(value, theirs[name])}
    assert not different
