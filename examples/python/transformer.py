"""A small transformer that learns a text character by character, and writes some of its own.

    python3 examples/python/transformer.py --steps 300
"""

import argparse
import functools
import math

import holdfast.core as mx

TEXT = ("the kelp holds on to the rock, and the rock holds on to the shore. the sea pulls, the kelp bends, and the "
        "holdfast holds. ") * 8


def parameters(symbols, width, layers, key):
    keys = iter(mx.random.split(key, 4 * layers + 2))

    def matrix(rows, columns):
        return mx.random.normal((rows, columns), key=next(keys)) / math.sqrt(rows)

    return {
        "embedding": mx.random.normal((symbols, width), key=next(keys)) * 0.1,
        "layers": [{"attention": matrix(width, 3 * width), "output": matrix(width, width), "up": matrix(width, 4 * width),
                    "down": matrix(4 * width, width), "norm1": mx.ones(width), "norm2": mx.ones(width)}
                   for _ in range(layers)],
        "norm": mx.ones(width),
        "head": matrix(width, symbols),
    }


def layer(p, x, heads):
    batch, length, width = x.shape
    size = width // heads
    q, k, v = (part.reshape(batch, length, heads, size).transpose(0, 2, 1, 3)
               for part in mx.split(mx.fast.rms_norm(x, p["norm1"], 1e-5) @ p["attention"], 3, axis=-1))
    turn = functools.partial(mx.fast.rope, dims=size, traditional=False, base=10000.0, scale=1.0, offset=0)
    mixed = mx.fast.scaled_dot_product_attention(turn(q), turn(k), v, scale=size**-0.5, mask="causal")
    x = x + mixed.transpose(0, 2, 1, 3).reshape(batch, length, width) @ p["output"]
    hidden = mx.fast.rms_norm(x, p["norm2"], 1e-5) @ p["up"]
    return x + (hidden * mx.sigmoid(hidden)) @ p["down"]


def logits(p, symbols, heads):
    x = p["embedding"][symbols]
    for each in p["layers"]:
        x = layer(each, x, heads)
    return mx.fast.rms_norm(x, p["norm"], 1e-5) @ p["head"]


def map_trees(f, first, *others):
    if isinstance(first, dict):
        return {name: map_trees(f, value, *(other[name] for other in others)) for name, value in first.items()}
    if isinstance(first, list):
        return [map_trees(f, *items) for items in zip(first, *others)]
    return f(first, *others)


def train(steps, width=32, layers=2, heads=4, length=32, batch=8, rate=3e-3, seed=0):
    """Losses of all steps, and a function that continues a text."""
    letters = sorted(set(TEXT))
    data = mx.array([letters.index(c) for c in TEXT])
    mx.random.seed(seed)
    p = parameters(len(letters), width, layers, mx.random.key(seed))
    zero = functools.partial(map_trees, mx.zeros_like)
    state = {"p": p, "mean": zero(p), "square": zero(p), "step": mx.array(0.0)}

    def loss(p, inputs, targets):
        return mx.fast.cross_entropy(logits(p, inputs, heads), targets).mean()

    @functools.partial(mx.compile, inputs=state, outputs=state)
    def step(inputs, targets):
        value, gradient = mx.value_and_grad(loss)(state["p"], inputs, targets)
        state["step"] = state["step"] + 1
        t = state["step"]
        state["mean"] = map_trees(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], gradient)
        state["square"] = map_trees(lambda s, g: 0.99 * s + 0.01 * g * g, state["square"], gradient)
        state["p"] = map_trees(
            lambda w, m, s: w - rate * (m / (1 - 0.9**t)) / (mx.sqrt(s / (1 - 0.99**t)) + 1e-8),
            state["p"], state["mean"], state["square"])
        return value

    losses = []
    for _ in range(steps):
        starts = mx.random.randint(0, data.size - length - 1, (batch, 1))
        places = starts + mx.arange(length)
        value = step(data[places], data[places + 1])
        mx.eval(value, state)
        losses.append(value.item())

    def write(start, count):
        symbols = [letters.index(c) for c in start]
        for _ in range(count):
            scores = logits(state["p"], mx.array([symbols[-length:]]), heads)[0, -1]
            symbols.append(mx.random.categorical(scores * 3).item())
        return "".join(letters[s] for s in symbols)

    return losses, write


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    losses, write = train(arguments.steps, seed=arguments.seed)
    for place in range(0, len(losses), max(1, len(losses) // 10)):
        print(f"step {place:4}: loss {losses[place]:.3f}")
    print(f"last: {losses[-1]:.3f}")
    print(write("the ", 60))


if __name__ == "__main__":
    main()
