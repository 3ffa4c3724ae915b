"""Walks all ways out of an array that could not be computed; prints those that did not raise what went wrong.

python ways_out.py kind folder: `kernel` and `memory` with HOLDFAST_FAULT set, `load` for a file that has become shorter.
"""

import copy
import io
import operator
import os
import pickle
import sys

if "HOLDFAST_PYTHON_PACKAGE" in os.environ:
    sys.path.insert(0, os.environ["HOLDFAST_PYTHON_PACKAGE"])

import numpy as np  # noqa: E402

import holdfast.core as mx  # noqa: E402

kind, folder = sys.argv[1:]


def truncated(dtype):
    name = os.path.join(folder, f"short-{dtype}.npy")
    np.save(name, np.zeros(1000, dtype))
    loaded = mx.load(name)
    os.truncate(name, 200)
    return loaded[-1:]


def without_memory():
    a, kept = mx.arange(2.0, 3.0), []
    try:
        while True:
            kept.append(mx.arange(3))
            mx.eval(kept[-1])
    except RuntimeError:
        return a


MAKE = {
    "kernel": lambda: (mx.arange(2.0, 3.0), "injected failure of a dispatch"),
    "memory": lambda: (without_memory(), "cannot allocate"),
    "load": lambda: (truncated("float32"), "too early"),
}


def save_to_object(save):
    return lambda a: save(io.BytesIO(), a)


def path(name):
    return os.path.join(folder, name)


def one_of(a):
    return a.reshape(())


def whole(a):
    return one_of(a).astype(mx.int32)


WAYS = {
    "np.array": np.array,
    "np.asarray": np.asarray,
    "np.asarray, dtype": lambda a: np.asarray(a, np.float64),
    "np.array, copy": lambda a: np.array(a, copy=True),
    "np.asarray, 0-d": lambda a: np.asarray(one_of(a)),
    "np.array of a list": lambda a: np.array([a, a]),
    "np.ascontiguousarray": np.ascontiguousarray,
    "np.frombuffer": lambda a: np.frombuffer(a, np.float32),
    "np.from_dlpack": np.from_dlpack,
    "np.add": lambda a: np.add(a, np.ones(1, np.float32)),
    "np.concatenate": lambda a: np.concatenate([a, a]),
    "ndarray[...] =": lambda a: operator.setitem(np.zeros(1), slice(None), a),
    "bfloat16": lambda a: np.asarray(a.astype(mx.bfloat16)),
    "memoryview": memoryview,
    "bytes": bytes,
    "bytearray": bytearray,
    "__array__": lambda a: a.__array__(),
    "__dlpack__": lambda a: a.__dlpack__(),
    "from_dlpack": mx.from_dlpack,
    "tolist": lambda a: a.tolist(),
    "item": lambda a: a.item(),
    "pickle": pickle.dumps,
    "copy.copy": lambda a: copy.copy(a).tolist(),
    "copy.deepcopy": lambda a: copy.deepcopy(a).tolist(),
    "repr": repr,
    "str": str,
    "format": lambda a: f"{one_of(a):.2f}",
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "index": lambda a: operator.index(whole(a)),
    "range": lambda a: range(whole(a)),
    "iteration": lambda a: [x.item() for x in a],
    "in": lambda a: bool(a == 2),
    "if a == b": lambda a: True if a == a else False,
    "array": lambda a: mx.array([a[0], a[0]]).tolist(),
    "as an index": lambda a: mx.arange(4)[whole(a)].item(),
    "as a mask": lambda a: mx.arange(1)[a > 0],
    "eval": mx.eval,
    "array_equal": lambda a: bool(mx.array_equal(a, a)),
    "save": lambda a: mx.save(path("a.npy"), a),
    "savez": lambda a: mx.savez(path("a.npz"), a),
    "savez_compressed": lambda a: mx.savez_compressed(path("b.npz"), a),
    "save_safetensors": lambda a: mx.save_safetensors(path("a.safetensors"), {"a": a}),
    "save_gguf": lambda a: mx.save_gguf(path("a.gguf"), {"a": a}),
    "save to an object": save_to_object(mx.save),
    "savez to an object": save_to_object(mx.savez),
    "export": lambda a: mx.export_function(path("a.mlxfn"), lambda x: x + a, mx.zeros(1)),
}


def main():
    a, message = MAKE[kind]()
    try:
        mx.eval(a)
        print("eval did not raise")
    except RuntimeError:
        pass
    before = set(os.listdir(folder))
    for name, way in WAYS.items():
        for again in (False, True):
            try:
                result = way(a)
            except RuntimeError as raised:
                if message not in str(raised):
                    print(f"{name}: raised {raised!r}")
            except BaseException as raised:
                print(f"{name}: raised {raised!r}")
            else:
                print(f"{name}: gave {result!r}")
    print("\n".join(f"left behind: {name}" for name in set(os.listdir(folder)) - before), end="")
    # What is known without the elements.
    assert a.shape == (1,) and len(a) == 1 and a.dtype == mx.float32 and hash(a) == hash(a)


main()
