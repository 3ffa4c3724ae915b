#!/usr/bin/env python3
"""Fits the coefficients of error_function in src/kernels/cpu/simd/vector_math.h, and prints them.

erf(x) / x on [i/4, (i+1)/4), i = 0 ... 15, as a polynomial of degree 5 in f = 4 x - i, with the least relative error.
Needs NumPy. Prints the table and the largest error of an evaluation in float32, in units of the last place.
"""

import argparse
import math

import numpy as np

INTERVALS, DEGREE = 16, 5


def fit(interval):
    nodes = 200
    f = 0.5 - 0.5 * np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes)
    g = np.array([math.erf(x) / x for x in (interval + f) / 4])
    powers = np.stack([f**k for k in range(DEGREE + 1)], axis=1)
    weights = np.ones(nodes)
    for _ in range(40):  # Lawson: weights grow where the error is large
        scale = np.sqrt(weights) / g
        solution, *_ = np.linalg.lstsq(powers * scale[:, None], g * scale, rcond=None)
        error = np.abs(powers @ solution / g - 1)
        weights *= error / error.max() + 1e-3
        weights /= weights.mean()
    return solution


def evaluate(table, x):
    x = x.astype(np.float32)
    scaled = x * np.float32(4)
    interval = scaled.astype(np.int32)
    f = scaled - interval.astype(np.float32)
    g = table[DEGREE][interval]
    for k in range(DEGREE - 1, -1, -1):  # double arithmetic, rounded once: a fused multiply-add
        g = (g.astype(float) * f.astype(float) + table[k][interval].astype(float)).astype(np.float32)
    return np.minimum(x * g, np.float32(1))


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    table = np.array([fit(i) for i in range(INTERVALS)]).T.astype(np.float32)
    for row in table:
        print("{" + ", ".join(f"{value:.9g}f" for value in row) + "},")
    x = np.concatenate([np.linspace(1e-6, 3.999, 400_001), np.logspace(-30, 0, 50_000)]).astype(np.float32)
    exact = np.array([math.erf(float(v)) for v in x])
    ulp = np.abs(evaluate(table, x).astype(float) - exact) / np.spacing(exact.astype(np.float32))
    print(f"// largest error {ulp.max():.2f} ulp at {x[ulp.argmax()]:.6g}")


main()
