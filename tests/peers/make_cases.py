#!/usr/bin/env python3
"""Writes inputs and the results that MLX gives for them, for every row of the op registry.

  make_cases.py ROWS OUTPUT [NAME ...]   all rows, or those named; exit status 77 when mlx is not installed

ROWS has a line for each row of the registry, its name and its samples with a tab between. A row's op is called in Python under the
same name, with the sample's inputs by position and its arguments by name; where that is not how Python calls it, REFERENCES has a
line. Ops that MLX keeps from Python have a NumPy reference there.

The output: for each case, lines of text with the payload of each array in hexadecimal, read by peers_test.cpp:
  case NAME DTYPE | SAMPLE
  input DTYPE SHAPE HEX
  output DTYPE SHAPE HEX          or, where MLX throws:    raises KIND MESSAGE
"""

import re
import sys

try:
    import mlx.core as mx
    import numpy as np
except ImportError:
    print("mlx or numpy is not installed", file=sys.stderr)
    sys.exit(77)

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
    call.is_numpy = True  # what it throws says nothing of MLX
    return call


def direct(function):
    return lambda inputs, kwargs: function(*inputs, **kwargs)


def with_key(name):
    """A distribution: the key is the last input, and named."""
    return lambda inputs, kwargs: getattr(mx.random, name)(*inputs[:-1], key=inputs[-1], **kwargs)


def slices(a, kwargs):
    """The slice that start, stop and strides name, as NumPy writes it: a stop before the first element is None there."""
    names = zip(kwargs["start"], kwargs["stop"], kwargs["strides"], a.shape)
    return tuple(slice(first, None if step < 0 and last < -size else last, step) for first, last, step, size in names)


def slice_update(combine):
    def call(a, update, **kwargs):
        out = a.copy()
        place = slices(a, kwargs)
        out[place] = combine(out[place], update).astype(a.dtype)
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


def tuples(kwargs):
    return {key: tuple(value) if isinstance(value, list) else value for key, value in kwargs.items()}


def convolution(name):
    return lambda x, k: getattr(mx, name)(*x, **tuples(k))


def conv_general(x, k):
    padding = (k.pop("padding_lo"), k.pop("padding_hi"))
    return mx.conv_general(*x, padding=padding, **k)


def of_triangle(function):
    """Calls it with the triangle that it reads; the other one holds numbers too."""
    return lambda x, k: function((mx.triu if k["upper"] else mx.tril)(x[0]), *x[1:], **k)


def svd(x, k):
    u, s, vt = mx.linalg.svd(x[0])
    count = s.shape[-1]
    return [s, (u[..., :count] * s[..., None, :]) @ vt[..., :count, :], s]


def eig(x, k):
    values, vectors = mx.linalg.eig(x[0])
    return [mx.sort(values, axis=-1), x[0].astype(mx.complex64) @ vectors - vectors * values[..., None, :]]


def eigh(x, k):
    values, vectors = mx.linalg.eigh(x[0], **k)
    return [values, (vectors * values[..., None, :]) @ mx.conj(mx.swapaxes(vectors, -1, -2))]


def qr(x, k):
    q, r = mx.linalg.qr(x[0])
    return [q @ r, mx.abs(r)]


def norm(x, k):
    k = dict(k)
    if k.get("ord") in ("inf", "-inf"):
        k["ord"] = float(k["ord"])
    return mx.linalg.norm(x[0], **k)


def fourier(name):
    return lambda x, k: getattr(mx.fft, name)(x[0], **{key: None if value == "none" else value for key, value in k.items()})


def attention(x, k):
    mask, sinks = k.get("mask"), None
    if mask == "array":
        mask = x[3]
    elif len(x) > 3:
        sinks = x[3]
    return mx.fast.scaled_dot_product_attention(*x[:3], scale=k["scale"], mask=mask, sinks=sinks)


def in_float32(function):
    """MLX adds (or multiplies) half types up in the half type; what is computed in float32 is rounded here."""
    def call(x, k):
        dtype = x[0].dtype
        if dtype not in (mx.float16, mx.bfloat16):
            return function(*x, **k)
        return function(*(a.astype(mx.float32) if a.dtype == dtype else a for a in x), **k).astype(dtype)
    return call


def qqmm(x, k):
    """MLX has no kernel for it on the CPU: both operands are rounded to the format, then multiplied."""
    dtype, mode = x[0].dtype, k["mode"]
    if dtype not in (mx.float16, mx.bfloat16, mx.float32):
        raise ValueError("[qqmm] dtype")
    rounded = [mx.dequantize(*mx.quantize(a, mode=mode), mode=mode, dtype=mx.float32) for a in x[:2]]
    w = mx.swapaxes(rounded[1], -1, -2)
    product = mx.gather_mm(rounded[0], w, *x[2:]) if len(x) > 2 else rounded[0] @ w
    return product.astype(dtype)


def random_bits(key, shape, width):
    """Threefry-2x32 with JAX's counters, for an even number of words; Python has no random.bits."""
    if width not in (1, 2, 4):
        raise ValueError("[bits] width")
    size = int(np.prod(shape)) * width // 4
    keys = [np.uint32(key[0]), np.uint32(key[1]), np.uint32(key[0] ^ key[1] ^ 0x1BD11BDA)]
    a, b = np.arange(size // 2, dtype=np.uint32) + keys[0], np.arange(size // 2, size, dtype=np.uint32) + keys[1]
    for turn in range(5):
        for bits in ((13, 15, 26, 6), (17, 29, 16, 24))[turn % 2]:
            a = a + b
            b = (b << np.uint32(bits) | b >> np.uint32(32 - bits)) ^ a
        a = a + keys[(turn + 1) % 3]
        b = b + keys[(turn + 2) % 3] + np.uint32(turn + 1)
    return np.concatenate([a, b]).view({1: np.uint8, 2: np.uint16, 4: np.uint32}[width]).reshape(shape)


def seeded(x, k):
    mx.random.seed(k["seed"])
    return mx.random.randint(0, 1000, (8,))


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
    "slice": on_numpy(lambda a, **k: a[slices(a, k)]),
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
                                                     "laplace", "permutation", "multivariate_normal")},
    "random.seed": seeded,
    "random.bits": lambda x, k: mx.array(random_bits(np.array(x[0]), **k)),
    "block_masked_mm": lambda x, k: mx.block_masked_mm(x[0], x[1], k["block_size"], *x[2:]),
    "segmented_mm": lambda x, k: mx.segmented_mm(x[0], x[1], mx.sort(x[2], axis=-1) if x[2].ndim > 1 else x[2]),
    "tensordot": lambda x, k: mx.tensordot(*x, k.get("axes", [k.get("axes_a"), k.get("axes_b")])),
    "einsum": lambda x, k: mx.einsum(k["subscripts"], *x),
    "einsum_path": lambda x, k: mx.array([i for step in mx.einsum_path(k["subscripts"], *x)[0] for i in step]),
    "conv_general": conv_general,
    **{name: convolution(name) for name in ("conv2d", "conv3d", "conv_transpose2d", "conv_transpose3d")},
    "dequantize.floats": direct(mx.dequantize),
    "cumprod": in_float32(mx.cumprod),
    "quantized_matmul": in_float32(mx.quantized_matmul),
    "quantized_matmul.floats": in_float32(mx.quantized_matmul),
    "gather_qmm": in_float32(mx.gather_qmm),
    "qqmm": qqmm,
    "gather_qqmm": qqmm,
    "fast.rms_norm": lambda x, k: mx.fast.rms_norm(*(x + [None])[:2], **k),
    "fast.layer_norm": lambda x, k: mx.fast.layer_norm(*(x + [None, None])[:3], **k),
    "fast.rope.frequencies": lambda x, k: mx.fast.rope(x[0], base=None, freqs=x[1].astype(mx.float32), **k),
    "fast.rope.offsets": lambda x, k: mx.fast.rope(x[0], offset=x[1].astype(mx.int32), **k),
    "fast.scaled_dot_product_attention": attention,
    "linalg.norm": norm,
    "linalg.norm.singular": norm,
    "linalg.qr": qr,
    "linalg.svd": svd,
    "linalg.eig": eig,
    "linalg.eigh": eigh,
    "linalg.eigvals": lambda x, k: mx.sort(mx.linalg.eigvals(x[0]), axis=-1),
    "linalg.tri_inv": of_triangle(mx.linalg.tri_inv),
    "linalg.solve_triangular": of_triangle(mx.linalg.solve_triangular),
    "linalg.cholesky_inv": lambda x, k: mx.linalg.cholesky_inv(mx.linalg.cholesky(x[0], **k), **k),
}


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
    if kind == "n":
        return mx.array(random.integers(0, bound, shape).astype(np.uint32))
    if kind == "e":
        return mx.array(random.integers(bound - 12, bound, shape).astype(np.uint8))
    if kind == "u":
        return mx.array(random.integers(0, 1 << 32, shape).astype(np.uint32))
    if kind == "w":
        return mx.array(random.integers(0, 256, shape).astype(np.uint8))
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
    if kind == "y":
        values = values + np.conj(np.swapaxes(values, -1, -2))
    if kind in "my":
        values = values + np.diag(np.arange(shape[-1]) + 7 * shape[-1])
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


# What pybind makes of the exceptions of C++.
KINDS = {ValueError: "invalid_argument", IndexError: "out_of_range", RuntimeError: "runtime_error"}


def write_case(out, name, function, sample, dtype):
    text = re.sub(r"^\w+:", "", sample)
    inputs_text, _, arguments = text.partition("|")
    kwargs = dict(part.split("=", 1) for part in arguments.split())
    kwargs = {key: value_of(value) for key, value in kwargs.items()}
    random = np.random.default_rng(abs(hash_of(name + sample + dtype)))
    inputs = [make_input(part, dtype, random) for part in inputs_text.split()]
    lines = [f"case {name} {dtype} | {sample}\n"] + [line_of("input", a) for a in inputs]
    try:
        result = function(inputs, kwargs)
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        mx.eval(results)
        lines += [line_of("output", a) for a in results]
    except tuple(KINDS) as error:
        if getattr(function, "is_numpy", False):
            return
        message = str(error).splitlines()[0]
        lines.append(f"raises {KINDS[type(error)] if type(error) in KINDS else 'other'} {message}\n")
    except (TypeError, OverflowError):
        return  # Python's own
    out.writelines(lines)


def main():
    mx.set_default_device(mx.cpu)
    wanted = set(sys.argv[3:])
    unknown = []
    with open(sys.argv[1]) as rows, open(sys.argv[2], "w") as out:
        for row in rows:
            name, samples = row.rstrip("\n").split("\t")
            if wanted and name not in wanted:
                continue
            function = resolve(name)
            if function is None:
                unknown.append(name)
                continue
            for sample in filter(None, (part.strip() for part in samples.split(";"))):
                has_dtype = re.search(r"\b[apsmy]\(", sample)
                for dtype in DTYPES if has_dtype else ["float32"]:
                    write_case(out, name, function, sample, dtype)
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
