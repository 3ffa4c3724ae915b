#!/usr/bin/env python3
"""MLX's cost per op on one element, for `holdfast bench overhead --peers`. Prints one JSON object.

The times include Python's own: some 100 ns per op.
"""

import importlib.metadata
import json
import statistics
import time

import mlx.core as mx

CHAIN_LENGTH = 10_000


def build(x, y):
    for _ in range(CHAIN_LENGTH):
        x = x * y
    return x


def median_ns(work, seconds, at_least):
    """The median time of one call."""
    work()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < at_least or time.perf_counter() < end:
        start = time.perf_counter_ns()
        work()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times)


def main():
    mx.set_default_device(mx.cpu)
    x, y = mx.array([1.0]), mx.array([0.5])
    mx.eval(x, y)
    print(json.dumps({
        "version": importlib.metadata.version("mlx"),
        "chain_ns": median_ns(lambda: mx.eval(build(x, y)), 1.0, 10) / CHAIN_LENGTH,
        "build_ns": median_ns(lambda: build(x, y), 0.5, 10) / CHAIN_LENGTH,
        "round_trip_ns": median_ns(lambda: mx.eval(x + y), 0.5, 100),
    }))


if __name__ == "__main__":
    main()
