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


def slices(kwargs):
    """The slice that start, stop and strides name, as NumPy writes it."""
    names = zip(kwargs["start"], kwargs["stop"], kwargs["strides"])
    return tuple(slice(a, None if b < 0 and step < 0 else b, step) for a, b, step in names)


def slice_update(combine):
    def call(a, update, **kwargs):
        out = a.copy()
        out[slices(kwargs)] = combine(out[slices(kwargs)], update).astype(a.dtype)
        return out
    return on_numpy(call)


def pick(a, index, axes, sizes):
    """The place of a slice: index[k] along axes[k], the rest from 0."""
    at = [0] * a.ndim
    for axis, i in zip(axes, index):
        at[axis] = int(i) + (a.shape[axis] if i < 0 else 0)
    return tuple(slice(first, first + size) for first, size in zip(at, sizes))


def gather(a, *indices, axes, slice_sizes):
    places = np.broadcast_arrays(*indices)
    out = np.zeros(places[0].shape + tuple(slice_sizes), a.dtype)
    for at in np.ndindex(places[0].shape):
        out[at] = a[pick(a, [i[at] for i in places], axes, slice_sizes)]
    return out


def scatter(combine):
    def call(a, *rest, axes):
        out, updates = a.copy(), rest[-1]
        places = np.broadcast_arrays(*rest[:-1]) if len(rest) > 1 else []
        shape = places[0].shape if places else ()
        for at in np.ndindex(shape):
            where = pick(a, [i[at] for i in places], axes, updates.shape[len(shape):])
            out[where] = combine(out[where], updates[at]).astype(a.dtype)
        return out
    return on_numpy(call)


def along_axis(a, indices, values, axis):
    out = a.copy()
    shape = a.shape[:axis] + (indices.shape[axis],) + a.shape[axis + 1:]
    indices, values = np.broadcast_to(indices, shape), np.broadcast_to(values, shape)
    for at in np.ndindex(shape):
        place = at[:axis] + (indices[at],) + at[axis + 1:]
        out[place] += values[at]
    return out


def masked_scatter(a, mask, source):
    out = a.copy()
    mask = np.broadcast_to(mask.reshape(mask.shape + (1,) * (a.ndim - mask.ndim)), a.shape)
    count = int(mask.sum())
    out[mask] = source.reshape(-1)[:count] if source.size > 1 else source
    return out


def replace(old, new):
    return np.broadcast_to(new, old.shape)


COMBINE = {"": replace, "_add": np.add, "_prod": np.multiply, "_max": np.maximum, "_min": np.minimum}


# Ops that Python calls in another way. Each takes (inputs, arguments).
REFERENCES = {
    "median": lambda x, k: mx.median(x[0], axis=k["axis"], keepdims=k.get("keepdims", False)),
    # What a partition promises: the element at `kth`, and the same elements. Sorted sides are compared.
    "partition": lambda x, k: mx.sort(x[0], axis=k["axis"]),
    "argpartition": lambda x, k: mx.argsort(x[0], axis=k["axis"]),
    "topk": lambda x, k: mx.sort(mx.topk(x[0], k["k"], axis=k["axis"]), axis=k["axis"]),
    "rint": lambda x, k: mx.round(x[0]),
    **{f"slice_update{name}": slice_update(combine) for name, combine in COMBINE.items()},
    **{f"scatter{name}": scatter(combine) for name, combine in COMBINE.items()},
    "gather": on_numpy(gather),
    "scatter_add_axis": on_numpy(along_axis),
    "masked_scatter": on_numpy(masked_scatter),
    "slice": on_numpy(lambda a, **k: a[slices(k)]),
    "arange": lambda x, k: mx.arange(k["start"], k["stop"], k["step"]),
    "full": lambda x, k: mx.full(k["shape"], x[0]),
    "full_like": lambda x, k: mx.full(x[0].shape, x[1], dtype=x[0].dtype),
    "copy": lambda x, k: x[0],
    "positive": lambda x, k: x[0],
    "astype": lambda x, k: x[0].astype(k["dtype"]),
    "view": lambda x, k: x[0].view(k["dtype"]),
    "meshgrid": direct(mx.meshgrid),
    "depends": lambda x, k: x[:1],
    "number_of_elements": lambda x, k: mx.array(np.prod([x[0].shape[i] for i in k["axes"]]) ** (-1.0 if k["inverted"] else 1.0), dtype=mx.float32),
    "broadcast_arrays": lambda x, k: mx.broadcast_arrays(*x),
    "unstack": lambda x, k: [mx.squeeze(part, k["axis"]) for part in mx.split(x[0], x[0].shape[k["axis"]], k["axis"])],
    "concatenate": lambda x, k: mx.concatenate(x, **k),
    "stack": lambda x, k: mx.stack(x, **k),
    "pad": lambda x, k: mx.pad(x[0], list(zip(k["low"], k["high"])), mode=k.get("mode", "constant"), constant_values=1),
    "identity": lambda x, k: mx.identity(k["n"], k["dtype"]),
    "flip": lambda x, k: mx.flip(x[0], k["axis"]),
    "count_nonzero": lambda x, k: mx.sum(x[0] != 0, axis=k["axis"], keepdims=k.get("keepdims", False)),
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
        values = random.integers(0, 2, shape).astype(bool)
        return mx.array(np.sort(values) if kind == "s" else values)
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
