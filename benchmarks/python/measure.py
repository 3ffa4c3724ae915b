#!/usr/bin/env python3
"""What calls from Python cost, for `holdfast bench python`: measure.py holdfast|mlx. Prints one JSON object.

Each figure is the smallest of several rounds: what is in the way of a round is not the package's.
"""

import importlib
import json
import subprocess
import sys
import time

ROUNDS, CALLS = 15, 4000


def best_ns(statement, names):
    code = compile(f"for _ in range({CALLS}): {statement}", "<measured>", "exec")
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        exec(code, dict(names))
        best = min(best, (time.perf_counter_ns() - start) / CALLS)
    return best


def import_ms(module):
    """Of a process's first import, without what Python itself needs to start."""
    code = (f"import time; start = time.perf_counter(); import {module}; "
            "print((time.perf_counter() - start) * 1000)")
    return min(float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
               for _ in range(5))


def round_trip(mx):
    """Milliseconds of a gigabyte from NumPy and back, and whether it is the same memory."""
    import numpy as np

    source = np.zeros(1 << 28, np.float32)
    start = time.perf_counter()
    back = np.asarray(mx.asarray(source))
    return (time.perf_counter() - start) * 1000, back.ctypes.data == source.ctypes.data


def main(package):
    mx = importlib.import_module(package + ".core")
    mx.set_default_device(mx.cpu)
    a, b, m = mx.ones(2), mx.ones(2), mx.ones((8, 8))
    places = mx.array([0, 1])
    mx.eval(a, b, m, places)
    names = {"a": a, "b": b, "m": m, "places": places}
    result = {
        "import_ms": import_ms(package + ".core"),
        "add_ns": best_ns("a + b", names),
        "add_scalar_ns": best_ns("a + 1.0", names),
        "index_ns": best_ns("m[1]", names),
        "slice_ns": best_ns("m[1:3]", names),
        "take_ns": best_ns("m[places]", names),
        "mixed_ns": best_ns("m[1:3, None, 2]", names),
        "method_ns": best_ns("m.sum(axis=0)", names),
    }
    if package == "holdfast":
        try:
            result["numpy_ms"], result["numpy_shared"] = round_trip(mx)
        except ImportError:
            pass
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1])
