#!/usr/bin/env python3
"""Files between MLX and us: each reads what the other wrote.

  files.py write FOLDER    arrays of every dtype in each format, written by MLX
  files.py read FOLDER     ours-*.* in FOLDER must hold the same arrays; prints what does not
Exit status 77 when mlx is not installed.
"""

import pathlib
import sys

try:
    import mlx.core as mx
    import numpy as np
except ImportError:
    sys.exit(77)

DTYPES = ["bool_", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "bfloat16", "complex64"]
GGUF = ["int8", "int16", "int32", "float16", "float32"]
METADATA = {"made by": "a test", "empty": ""}


def arrays(names):
    random = np.random.default_rng(5)
    result = {}
    for name in names:
        for shape in ((3, 4), (0, 2), (7,)):
            values = random.integers(0, 2 if name == "bool_" else 100, shape)
            kind = name + "_" + "x".join(str(dim) for dim in shape)
            result[kind] = mx.array(values).astype(getattr(mx, name))
    return result


def write(folder):
    everything = arrays(DTYPES)
    for name, value in everything.items():
        if value.dtype != mx.bfloat16:
            mx.save(str(folder / f"theirs-{name}.npy"), value)
    plain = {name: value for name, value in everything.items() if value.dtype != mx.bfloat16}
    mx.savez(str(folder / "theirs.npz"), **plain)
    mx.savez_compressed(str(folder / "theirs-small.npz"), **plain)
    mx.save_safetensors(str(folder / "theirs.safetensors"), everything, METADATA)
    few = {name: value for name, value in arrays(GGUF).items() if value.size > 0}
    mx.save_gguf(str(folder / "theirs.gguf"), few, {"general.name": "a test", "numbers": mx.array([1.5, 2.5])})


def compare(what, got, expected):
    if sorted(got) != sorted(expected):
        print(f"{what}: {sorted(got)} instead of {sorted(expected)}")
        return False
    same = True
    for name, value in expected.items():
        other = got[name]
        if other.dtype != value.dtype or other.shape != value.shape or not mx.array_equal(other, value).item():
            print(f"{what}: {name} differs")
            same = False
    return same


def read(folder):
    everything = arrays(DTYPES)
    plain = {name: value for name, value in everything.items() if value.dtype != mx.bfloat16}
    same = compare("npy", {name: mx.load(str(folder / f"ours-{name}.npy")) for name in plain}, plain)
    tensors, metadata = mx.load(str(folder / "ours.safetensors"), return_metadata=True)
    same &= compare("safetensors", tensors, everything)
    if metadata != METADATA:
        print(f"safetensors: metadata {metadata}")
        same = False
    tensors, metadata = mx.load(str(folder / "ours.gguf"), return_metadata=True)
    same &= compare("gguf", tensors, {name: value for name, value in arrays(GGUF).items() if value.size > 0})
    if metadata["general.name"] != "a test" or metadata["numbers"].tolist() != [1.5, 2.5]:
        print(f"gguf: metadata {metadata}")
        same = False
    return same


def main():
    mx.set_default_device(mx.cpu)
    folder = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "write":
        write(folder)
        return 0
    return 0 if read(folder) else 1


if __name__ == "__main__":
    sys.exit(main())
