"""mlx-lm on this package alone: tiny models of eleven architectures learn, and generate with a cache, alone and in batches, what they give without one.
In an interpreter that has mlx-lm and no mlx: this one, or HOLDFAST_MLX_LM_PYTHON (scripts/check_mlx_lm.py makes one)."""

import json
import os
import subprocess
import sys

import pytest

import holdfast.core as mx

PYTHON = os.environ.get("HOLDFAST_MLX_LM_PYTHON", sys.executable)
FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(mx.__file__))))
WITHOUT_MLX = "import holdfast_as_mlx; holdfast_as_mlx.hook(); "

SIZES = {"hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100}
NORM = {"rms_norm_eps": 1e-5}
MODELS = {
    # gemma2 with fewer heads of keys than of queries generates no batches in mlx-lm: its mask lacks a dimension.
    "llama": NORM, "qwen2": NORM, "qwen3": {**NORM, "head_dim": 16, "max_position_embeddings": 512, "rope_theta": 1e4, "tie_word_embeddings": True},
    "gemma2": {**NORM, "head_dim": 16, "num_key_value_heads": 4}, "phi3": NORM, "mixtral": {**NORM, "num_local_experts": 4, "num_experts_per_tok": 2}, "starcoder2": {}, "olmo2": NORM,
    "cohere": {}, "gpt_neox": {"max_position_embeddings": 128, "layer_norm_eps": 1e-5, "rotary_emb_base": 10000, "rotary_pct": 0.25},
    "gpt2": {"n_ctx": 128, "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 128, "layer_norm_epsilon": 1e-5},
}

PROGRAM = WITHOUT_MLX + """
import importlib, json, sys
import mlx.core as mx, mlx.nn as nn, mlx.optimizers as optim
from mlx_lm.generate import batch_generate, generate_step

assert mx.__spec__.name == "holdfast.core" and nn.__spec__.name == "holdfast.nn"
settings = json.loads(sys.argv[1])
module = importlib.import_module("mlx_lm.models." + settings["model_type"])
mx.random.seed(0)
model = module.Model(module.ModelArgs.from_dict(settings))
tokens = mx.random.randint(0, 100, (2, 12))
generated = [int(token) for token, _ in generate_step(mx.array([1, 2, 3]), model, max_tokens=6)]
whole = [1, 2, 3]
for _ in generated:
    whole.append(int(mx.argmax(model(mx.array([whole]))[0, -1])))
assert whole[3:] == generated, (whole, generated)


class Words:
    # What generation asks a tokenizer for.
    eos_token_ids = []
    decode = staticmethod(lambda tokens: " ".join(map(str, tokens)))


# Prompts of several lengths at once: each gets what it gets alone.
prompts = [[1, 2, 3], [4, 5], [6, 7, 8, 9, 10]]
together = batch_generate(model, Words(), prompts, max_tokens=5).texts
alone = [Words.decode(int(token) for token, _ in generate_step(mx.array(prompt), model, max_tokens=5)) for prompt in prompts]
assert together == alone, (together, alone)


def loss(model, x):
    return nn.losses.cross_entropy(model(x[:, :-1]), x[:, 1:], reduction="mean")


step, optimizer, losses = nn.value_and_grad(model, loss), optim.AdamW(1e-2), []
for _ in range(6):
    value, gradients = step(model, tokens)
    gradients, _ = optim.clip_grad_norm(gradients, 1.0)
    optimizer.update(model, gradients)
    mx.eval(model.parameters(), optimizer.state)
    losses.append(value.item())
assert losses[-1] < losses[0] - 0.2, losses
before = model(tokens)
nn.quantize(model, group_size=32, bits=8)
assert mx.abs(model(tokens) - before).mean().item() < 0.2
"""


def run(*words):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run([PYTHON, "-c", *words], env={**environment, "PYTHONPATH": FOLDER}, capture_output=True, text=True)


@pytest.fixture(scope="module")
def mlx_lm():
    if run(WITHOUT_MLX + "import mlx_lm").returncode != 0:
        pytest.skip("mlx-lm is not installed")


@pytest.mark.parametrize("name", MODELS)
def test_a_tiny_model(mlx_lm, name):
    result = run(PROGRAM, json.dumps({"model_type": name, **SIZES, **MODELS[name]}))
    assert result.returncode == 0, result.stderr[-3000:]
