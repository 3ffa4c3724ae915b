#!/usr/bin/env python3
"""Writes inputs and the results that MLX gives for them, for every row of the op registry.

  make_cases.py OUTPUT [NAME ...]     all rows, or those named; exit status 77 when mlx is not installed

Rows come from registry/ops.def and include/holdfast/elementwise.def. A row's op is called in Python under the same name, with the
sample's inputs by position and its arguments by name; where that is not how Python calls it, REFERENCES has a line. Ops that MLX
keeps from Python have a NumPy reference there. What MLX refuses is not written.

The file: for each case, lines of text with the payload of each array in hexadecimal, read by peers_test.cpp:
  case NAME DTYPE | SAMPLE
  input DTYPE SHAPE HEX
  output DTYPE SHAPE HEX
"""

import pathlib
import re
import sys

try:
    import mlx.core as mx
    import numpy as np
except ImportError:
    print("mlx or numpy is not installed", file=sys.stderr)
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
          "float16", "float32", "float64", "bfloat16", "complex64"]
MX = {name: getattr(mx, name if name != "bool" else "bool_") for name in DTYPES}
NAME = {value: name for name, value in MX.items()}


def on_numpy(function):
    """A reference on NumPy arrays; the result has the dtype of the first input."""
    def call(inputs, kwargs):
        dtype = inputs[0].dtype
        arrays = [np.array(x.astype(mx.float32) if x.dtype == mx.bfloat16 else x) for x in inputs]
        return mx.array(np.ascontiguousarray(function(*arrays, **kwargs))).astype(dtype)
    return call


def direct(function):
    return lambda inputs, kwargs: function(*inputs, **kwargs)


def with_key(name):
    """A distribution: the key is the last input, and named."""
    return lambda inputs, kwargs: getattr(mx.random, name)(*inputs[:-1], key=inputs[-1], **kwargs)


# Ops that Python calls in another way. Each takes (inputs, arguments).
REFERENCES = {
    "median": lambda x, k: mx.median(x[0], axis=k["axis"], keepdims=k.get("keepdims", False)),
    # What a partition promises: the element at `kth`, and the same elements. Sorted sides are compared.
    "partition": lambda x, k: mx.sort(x[0], axis=k["axis"]),
    "argpartition": lambda x, k: mx.argsort(x[0], axis=k["axis"]),
    "topk": lambda x, k: mx.sort(mx.topk(x[0], k["k"], axis=k["axis"]), axis=k["axis"]),
    "rint": lambda x, k: mx.round(x[0]),
    "random.uniform": lambda x, k: mx.random.uniform(0, 1, key=x[0], **k),
    **{f"random.{name}": with_key(name) for name in ("normal", "randint", "bernoulli", "truncated_normal", "gumbel", "categorical",
                                                     "laplace", "permutation")},
}


def rows():
    """(name, accepted, samples) of every row."""
    table = (ROOT / "registry/ops.def").read_text()
    table = re.sub(r"^\s*//.*$", "", table, flags=re.M)
    for match in re.finditer(r'^OP\(\s*"([\w.]+)",\s*(\w+),\s*((?:"[^"]*"\s*)+),', table, flags=re.M):
        yield match[1], match[2], "".join(re.findall(r'"([^"]*)"', match[3]))
    table = (ROOT / "include/holdfast/elementwise.def").read_text()
    defines = dict(re.findall(r'#define (HOLDFAST_\w+_SAMPLES) "([^"]*)"', (ROOT / "registry/registry.cpp").read_text()))
    for kind, name in re.findall(r"^(UNARY|BINARY|TERNARY)\((\w+), \w+,", table, flags=re.M):
        samples = defines.get(f"HOLDFAST_{kind}_SAMPLES", "")
        yield name, "asked", samples


def value_of(text):
    if text in ("true", "false"):
        return text == "true"
    if text in MX:
        return MX[text]
    if re.fullmatch(r"[\[(].*[\])]", text):
        return [int(part) for part in re.findall(r"-?\d+", text)]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def make_input(text, dtype, random):
    match = re.fullmatch(r"(\w+)\(([\d,]*)\)(?:<(\d+))?", text)
    kind, bound = match[1], int(match[3] or 0)
    shape = tuple(int(part) for part in match[2].split(",") if part)
    if kind == "key":
        return mx.random.key(int(random.integers(1 << 40)))
    if kind == "k":
        return mx.array(random.integers(-bound, bound, shape).astype(np.int32))
    dtype = {"b": "bool", "f": "float32"}.get(kind, dtype)
    if dtype == "bool":
        return mx.array(random.integers(0, 2, shape).astype(bool))
    is_float = dtype.startswith(("float", "bfloat", "complex"))
    reach, scale = (48, 16.0) if is_float else (9, 1)
    low = 1 if kind == "p" or dtype.startswith("uint") else -reach
    values = random.integers(low, reach + 1, shape) / scale
    if dtype == "complex64":
        values = values + 1j * (random.integers(-reach, reach + 1, shape) / scale)
        values = values.astype(np.complex64)
    if kind == "s":
        values = np.sort(values)
    if dtype == "float64":
        return mx.array(np.asarray(values), dtype=mx.float64)
    return mx.array(np.asarray(values)).astype(MX[dtype]) if dtype != "complex64" else mx.array(np.asarray(values))


def line_of(label, a):
    raw = a.view(mx.uint16) if a.dtype == mx.bfloat16 else a
    payload = np.ascontiguousarray(np.array(raw)).tobytes()
    shape = ",".join(str(dim) for dim in a.shape)
    return f"{label} {NAME[a.dtype]} ({shape}) {payload.hex() or '-'}\n"


def resolve(name):
    if name in REFERENCES:
        return REFERENCES[name]
    place = mx
    for part in name.split("."):
        place = getattr(place, part, None)
    return direct(place) if place is not None else None


def main():
    mx.set_default_device(mx.cpu)
    wanted = set(sys.argv[2:])
    unknown = []
    with open(sys.argv[1], "w") as out:
        for name, _, samples in rows():
            if wanted and name not in wanted:
                continue
            function = resolve(name)
            if function is None:
                unknown.append(name)
                continue
            for sample in filter(None, (part.strip() for part in samples.split(";"))):
                inputs_text, _, arguments = sample.partition("|")
                kwargs = dict(part.split("=", 1) for part in arguments.split())
                kwargs = {key: value_of(text) for key, text in kwargs.items()}
                has_dtype = re.search(r"\b[aps]\(", inputs_text)
                for dtype in DTYPES if has_dtype else ["float32"]:
                    random = np.random.default_rng(abs(hash_of(name + sample + dtype)))
                    inputs = [make_input(text, dtype, random) for text in inputs_text.split()]
                    try:
                        result = function(inputs, kwargs)
                        results = list(result) if isinstance(result, (list, tuple)) else [result]
                        mx.eval(results)
                    except (ValueError, RuntimeError, IndexError, TypeError, OverflowError):
                        continue
                    out.write(f"case {name} {dtype} | {sample}\n")
                    out.writelines(line_of("input", a) for a in inputs)
                    out.writelines(line_of("output", a) for a in results)
    if unknown:
        print("no such function in mlx, and no reference: " + " ".join(unknown), file=sys.stderr)
        return 1
    return 0


def hash_of(text):
    value = 0
    for character in text:
        value = (value * 1000003 + ord(character)) % (1 << 61)
    return value


if __name__ == "__main__":
    sys.exit(main())
