#!/usr/bin/env python3
"""Times rows of `holdfast bench ops` in MLX, JAX and NumPy, whichever are installed.

Reads one JSON object a line from standard input and answers each with one:
  {"versions": true}                                        -> {"mlx": "0.32.4", ...}
  {"inputs": "...", "mlx": "...", "jax": "...", "numpy": "..."}  -> {"mlx": null or why it cannot run, ...}: one warm-up call
  {"seconds": 0.1}                                          -> {"mlx": [seconds of each call], ...}
The columns are those of rows.def.
"""

import importlib.metadata
import json
import os
import re
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np

try:
    import mlx.core as mx
    mx.set_default_device(mx.cpu)
    mx.set_cache_limit(16 << 30)  # its fair best: large results land in reused memory
except ImportError:
    mx = None
try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = jnp = None


def quantize(values, group=64, bits=4):
    """Weights, scales and biases in MLX's packed form; any values do for timing."""
    rows, columns = values.shape
    groups = values.reshape(rows, columns // group, group)
    low, high = groups.min(-1), groups.max(-1)
    scales = (high - low) / (2**bits - 1)
    codes = np.rint((groups - low[..., None]) / scales[..., None]).astype(np.uint32).reshape(rows, -1, 32 // bits)
    packed = (codes << (np.arange(32 // bits, dtype=np.uint32) * bits)).sum(-1, dtype=np.uint32)
    return [(packed, "uint32"), (scales, "bfloat16"), (low, "bfloat16")]


def make_inputs(text):
    """Pairs of a NumPy array (None: a random key) and the name of a dtype."""
    random = np.random.default_rng(1)
    inputs = []
    for kind, dims, bound in re.findall(r"(\w+)\(([\d,]*)\)(?:<(\d+))?", text):
        shape = tuple(int(part) for part in dims.split(",") if part)
        if kind == "key":
            inputs.append((None, "key"))
        elif kind == "int32":
            inputs.append((random.integers(0, int(bound), shape).astype(np.int32), "int32"))
        elif kind == "definite":
            a = random.standard_normal((shape[0], shape[0])).astype(np.float32)
            inputs.append((a @ a.T + shape[0] * np.eye(shape[0], dtype=np.float32), "float32"))
        elif kind == "positive":
            inputs.append((random.uniform(0.1, 1, shape).astype(np.float32), "float32"))
        elif kind == "sorted":
            inputs.append((np.sort(random.standard_normal(shape).astype(np.float32)), "float32"))
        elif kind == "quantized":
            inputs += quantize(random.standard_normal(shape).astype(np.float32))
        elif kind == "complex64":
            a = random.standard_normal(shape) + 1j * random.standard_normal(shape)
            inputs.append((a.astype(np.complex64), "complex64"))
        else:
            inputs.append((random.standard_normal(shape, dtype=np.float32), kind))
    return inputs


def with_mlx(expression, inputs):
    def convert(a, dtype):
        return mx.random.key(1) if a is None else mx.array(a).astype(getattr(mx, dtype))
    arrays = [convert(*pair) for pair in inputs]
    mx.eval(arrays)
    function = eval("lambda a: " + expression, {"m": mx})
    return lambda: mx.eval(function(arrays))


def with_jax(expression, inputs):
    def convert(a, dtype):
        return jax.random.key(1) if a is None else jnp.asarray(a).astype(dtype)
    arrays = [convert(*pair) for pair in inputs]
    function = jax.jit(eval("lambda a: " + expression, {"m": jnp, "jax": jax}))
    return lambda: jax.block_until_ready(function(arrays))


def with_numpy(expression, inputs):
    arrays = [a.astype(dtype) for a, dtype in inputs]
    function = eval("lambda a: " + expression, {"m": np})
    return lambda: function(arrays)


PEERS = {"numpy": (with_numpy, "numpy")}
if mx:
    PEERS = {"mlx": (with_mlx, "mlx"), **PEERS}
if jax:
    PEERS["jax"] = (with_jax, "jax")


def sample(work, seconds):
    times = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter_ns()
        work()
        times.append((time.perf_counter_ns() - start) / 1e9)
    return times


def main():
    works = {}
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what packages print is not an answer
    for line in sys.stdin:
        request = json.loads(line)
        if "versions" in request:
            answer = {name: importlib.metadata.version(package) for name, (_, package) in PEERS.items()}
        elif "inputs" in request:
            works.clear()
            answer, inputs = {}, make_inputs(request["inputs"])
            for name, (make, _) in PEERS.items():
                if not request[name]:
                    continue
                try:
                    work = make(request[name], inputs)
                    work()
                    works[name], answer[name] = work, None
                except Exception as error:  # the row says why, and the others go on
                    answer[name] = f"{type(error).__name__}: {error}"[:200]
        else:
            answer = {name: sample(work, request["seconds"]) for name, work in works.items()}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
