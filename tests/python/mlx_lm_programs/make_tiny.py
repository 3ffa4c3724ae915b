"""A folder with a tiny model that mlx-lm loads, which has learned its texts by heart: make_tiny.py FOLDER."""

import json
import os
import sys

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.utils import tree_flatten
from mlx_lm.models import llama
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from texts import TEXTS
from transformers import PreTrainedTokenizerFast


def main(folder):
    mx.random.seed(0)
    os.makedirs(folder, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=384, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet))
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    wrapped.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    wrapped.save_pretrained(folder)
    settings = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2,
                "rms_norm_eps": 1e-5, "vocab_size": 384, "tie_word_embeddings": True, "eos_token_id": 1, "bos_token_id": 0}
    with open(os.path.join(folder, "config.json"), "w") as out:
        json.dump(settings, out)

    model = llama.Model(llama.ModelArgs.from_dict(settings))
    rows = [tokenizer.encode(text).ids + [1] for text in TEXTS]
    longest = max(map(len, rows))
    tokens = mx.array([row + [1] * (longest - len(row)) for row in rows])

    def loss(model):
        return nn.losses.cross_entropy(model(tokens[:, :-1]), tokens[:, 1:], reduction="mean")

    step, optimizer = nn.value_and_grad(model, loss), optim.Adam(3e-3)
    for _ in range(150):
        value, gradients = step(model)
        optimizer.update(model, gradients)
        mx.eval(model.parameters(), optimizer.state)
    assert value.item() < 0.3, value
    mx.save_safetensors(os.path.join(folder, "model.safetensors"), dict(tree_flatten(model.parameters())), metadata={"format": "mlx"})


if __name__ == "__main__":
    main(sys.argv[1])
