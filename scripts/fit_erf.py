#!/usr/bin/env python3
"""Fits the coefficients of error_function in src/kernels/cpu/simd/vector_math.h, and prints them.

erf(x) for x in [0, 4] as 32 polynomials of degree 4 in f = 7.75 x - i, where i is the nearest integer, with the least
relative error. The first one has no constant and keeps the digits of small operands; the last one is exactly 1 at 4.
Needs NumPy. Prints the table and the largest error of an evaluation in float32, in units of the last place.
"""

import argparse
import math

import numpy as np

INTERVALS, DEGREE, SCALE = 32, 4, 7.75


def fit(interval):
    nodes = 300
    low = 0.0 if interval == 0 else -0.5
    high = 0.0 if interval == INTERVALS - 1 else 0.5
    f = (low + high) / 2 - (high - low) / 2 * np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes)
    values = np.array([math.erf((interval + t) / SCALE) for t in f])
    constant = {0: 0.0, INTERVALS - 1: 1.0}.get(interval)
    first = 0 if constant is None else 1
    powers = np.stack([f**k for k in range(first, DEGREE + 1)], axis=1)
    weights = np.ones(nodes)
    for _ in range(60):  # Lawson: weights grow where the error is large
        scale = np.sqrt(weights) / values
        solution, *_ = np.linalg.lstsq(powers * scale[:, None], (values - (constant or 0)) * scale, rcond=None)
        error = np.abs((powers @ solution + (constant or 0)) / values - 1)
        weights *= error / error.max() + 1e-3
        weights /= weights.mean()
    return solution if constant is None else np.concatenate([[constant], solution])


def evaluate(table, x):
    x = np.minimum(x, np.float32(4)).astype(float)
    nearest = np.rint(x * SCALE)
    f = (x * SCALE - nearest).astype(np.float32)
    interval = nearest.astype(int)
    g = table[DEGREE][interval]
    for k in range(DEGREE - 1, -1, -1):  # double arithmetic, rounded once: a fused multiply-add
        g = (g.astype(float) * f.astype(float) + table[k][interval].astype(float)).astype(np.float32)
    return g


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    table = np.array([fit(i) for i in range(INTERVALS)]).T.astype(np.float32)
    literal = lambda value: f"{value:.9g}f" if "." in f"{value:.9g}" or "e" in f"{value:.9g}" else f"{value:.1f}f"
    for row in table:
        print("{" + ", ".join(literal(value) for value in row) + "},")
    x = np.concatenate([np.linspace(1e-6, 4.1, 1_000_001), np.logspace(-30, 0, 50_000)]).astype(np.float32)
    exact = np.array([math.erf(float(v)) for v in x])
    ulp = np.abs(evaluate(table, x).astype(float) - exact) / np.spacing(exact.astype(np.float32))
    print(f"// largest error {ulp.max():.2f} ulp at {x[ulp.argmax()]:.6g}")


main()
