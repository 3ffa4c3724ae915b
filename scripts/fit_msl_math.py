#!/usr/bin/env python3
"""Fits the polynomials of src/msl/include/holdfast/math_core.h, and prints them.

Each is the polynomial of a given degree with the least largest error, weighted as the function that it is a part of needs it.
Coefficients are rounded to float32 one after the other, from the lowest, and the rest fitted again. Needs NumPy and mpmath.
tests/msl/math_accuracy_test.cpp measures the functions.
"""

import argparse

import mpmath
import numpy as np

mpmath.mp.dps = 40
NODES = 160


def lawson(columns, values, weights):
    """Coefficients of the columns that make the largest weighted error least."""
    lawson_weights = np.ones(len(values))
    best, best_error = None, np.inf
    for _ in range(200):
        scale = np.sqrt(lawson_weights) * weights
        solution, *_ = np.linalg.lstsq(columns * scale[:, None], values * scale, rcond=None)
        error = np.abs(columns @ solution - values) * weights
        if error.max() < best_error:
            best, best_error = solution, error.max()
        lawson_weights *= error / error.max() + 1e-6
        lawson_weights /= lawson_weights.mean()
    return best, best_error


def fit(name, function, low, high, degree, weight, rounding=np.float32):
    """function(x), mpmath, on [low, high]; the error counts weight(x) times."""
    nodes = low + (high - low) * (0.5 - 0.5 * np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES))
    values = np.array([float(function(mpmath.mpf(float(x)))) for x in nodes])
    weights = np.array([abs(float(weight(mpmath.mpf(float(x))))) for x in nodes])
    fixed = []
    for k in range(degree + 1):
        rest = values - sum((c * nodes**i for i, c in enumerate(fixed)), np.zeros(NODES))
        columns = np.stack([nodes**i for i in range(k, degree + 1)], axis=1)
        solution, error = lawson(columns, rest, weights)
        fixed.append(float(rounding(solution[0])))
    suffix = "f" if rounding is np.float32 else ""
    digits = 9 if suffix else 17
    text = ", ".join(f"{c:.{digits}g}{suffix}" for c in fixed)
    print(f"{name}: {{{text}}}  // error 2^{np.log2(error):.1f}")


def odd(function):
    """(f(x) - x) / x^3 as a function of x^2."""

    def rest(square):
        if square < mpmath.mpf("1e-12"):
            return mpmath.taylor(function, 0, 3)[3]
        x = mpmath.sqrt(square)
        return (function(x) - x) / x**3

    return rest


def odd_weight(function):
    return lambda square: mpmath.sqrt(square) ** 3 / function(mpmath.sqrt(square)) if square > 0 else 0


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    ln2 = mpmath.log(2)
    half_ln2 = float(ln2 / 2) * 1.002
    quarter_pi = float(mpmath.pi / 4) * 1.001

    def exp_rest(r):
        return (mpmath.expm1(r) - r) / r**2

    fit("exp", exp_rest, -half_ln2, half_ln2, 4, lambda r: r**2 / mpmath.exp(r))
    fit("exp_fast", exp_rest, -half_ln2, half_ln2, 3, lambda r: r**2 / mpmath.exp(r))
    fit("exp2", lambda r: mpmath.expm1(r * ln2) / r, -0.501, 0.501, 5, lambda r: r / mpmath.power(2, r))
    half_log = float(mpmath.log10(2) / 2) * 1.002
    fit("exp10", lambda r: mpmath.expm1(r * mpmath.log(10)) / r, -half_log, half_log, 5, lambda r: r / mpmath.power(10, r))

    low, high = float(mpmath.sqrt(0.5) - 1), float(mpmath.sqrt(2) - 1)
    log_rest = lambda f: (mpmath.log1p(f) - f + f * f / 2) / f**3
    fit("log", log_rest, low, high, 8, lambda f: f**3 / mpmath.log1p(f))
    fit("log_fast", log_rest, low, high, 6, lambda f: f**3 / mpmath.log1p(f))

    square = quarter_pi**2
    cos_rest = lambda s: (mpmath.cos(mpmath.sqrt(s)) - 1 + s / 2) / s**2
    fit("sin", odd(mpmath.sin), 0, square, 2, odd_weight(mpmath.sin))
    fit("cos", cos_rest, 0, square, 2, lambda s: s**2)
    fit("tan", odd(mpmath.tan), 0, square, 6, odd_weight(mpmath.tan))
    pi = mpmath.pi

    def sinpi_rest(s):
        if s < mpmath.mpf("1e-12"):
            return -(pi**3) / 6
        x = mpmath.sqrt(s)
        return (mpmath.sin(pi * x) - pi * x) / x**3

    fit("sinpi", sinpi_rest, 0, 0.0626, 3, lambda s: mpmath.sqrt(s) ** 3 / mpmath.sin(pi * mpmath.sqrt(s)) if s else 0)
    fit("cospi", lambda s: (mpmath.cos(pi * mpmath.sqrt(s)) - 1) / s, 0, 0.0626, 4, lambda s: s)

    fit("asin", odd(mpmath.asin), 0, 0.25, 5, odd_weight(mpmath.asin))
    fit("atan", odd(mpmath.atan), 0, 1, 8, odd_weight(mpmath.atan))
    fit("tanh", odd(mpmath.tanh), 0, 0.65**2, 5, odd_weight(mpmath.tanh))
    fit("sinh", odd(mpmath.sinh), 0, 1, 3, odd_weight(mpmath.sinh))
    fit("asinh", odd(mpmath.asinh), 0, 0.25, 6, odd_weight(mpmath.asinh))
    fit("atanh", odd(mpmath.atanh), 0, 0.25, 6, odd_weight(mpmath.atanh))

    bound = float((mpmath.sqrt(2) - 1) / (mpmath.sqrt(2) + 1)) ** 2 * 1.001
    log2_rest = lambda s: 2 * mpmath.atanh(mpmath.sqrt(s)) / mpmath.sqrt(s) / ln2 if s > 0 else 2 / ln2
    fit("log2_double", log2_rest, 0, bound, 4, lambda s: 1 / log2_rest(s), np.float64)


main()
