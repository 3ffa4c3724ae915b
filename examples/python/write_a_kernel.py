"""Writing a Metal kernel on Linux: run it, break it, let the validator explain, fix it, time it, look at the capture.

    python3 examples/python/write_a_kernel.py
"""

import os
import subprocess
import sys
import tempfile
import time

import holdfast.core as mx
from holdfast import validation

N = 1 << 16


def launch(kernel, x, **options):
    (y,) = kernel(inputs=[x], grid=(x.size, 1, 1), threadgroup=(256, 1, 1), output_shapes=[x.shape],
                  output_dtypes=[x.dtype], **options)
    return y


def attempt(title, kernel, x, **options):
    print(f"--- {title}")
    try:
        y = launch(kernel, x, **options)
        mx.eval(y)
        print("first values:", y[:4].tolist())
        return y
    except (RuntimeError, ValueError) as error:
        print(f"{type(error).__name__}: {error}")
        return None


def main():
    x = mx.random.normal((N,), key=mx.random.key(0))

    # 1. The body of a kernel is enough: its signature is made from the names and from what the inputs are.
    gelu = mx.fast.metal_kernel("gelu", ["x"], ["y"], """
        uint i = thread_position_in_grid.x;
        float v = x[i];
        y[i] = 0.5f * v * (1.0f + metal::precise::tanh(0.7978845608f * (v + 0.044715f * v * v * v)));
    """)
    y = attempt("it runs", gelu, x)
    reference = 0.5 * x * (1 + mx.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
    assert mx.allclose(y, reference, rtol=1e-4, atol=1e-5).item()

    # 2. An error in the source shows its line, and no process is lost.
    typo = mx.fast.metal_kernel("typo", ["x"], ["y"], "uint i = thread_position_in_grid.x;\ny[i] = gelv(x[i]);")
    assert attempt("it does not compile", typo, x) is None

    # 3. A kernel that compiles, and is wrong: it changes its input, so that whoever reads it later gets another value, and reads
    #    one element too far. The validator says so in the first run (HOLDFAST_VALIDATE=1 does it for a whole program).
    broken = mx.fast.metal_kernel("smooth", ["x"], ["y"], """
        uint i = thread_position_in_grid.x;
        device float* scratch = (device float*)x;
        scratch[i] = metal::max(x[i], 0.0f);
        y[i] = (scratch[i] + x[i + 1]) / 2;
    """)
    print("--- the validator explains")
    with validation.Scope() as scope:
        mx.eval(launch(broken, mx.ones(256)))
        mx.synchronize()
    for report in scope.reports:
        print(report)
    found = {report.id for report in scope.reports}
    assert "bindings.input-written" in found and "kernels.out-of-bounds" in found, found

    # 4. Fixed, it finds nothing.
    fixed = mx.fast.metal_kernel("smooth", ["x"], ["y"], """
        uint i = thread_position_in_grid.x;
        uint next = metal::min(i + 1, threads_per_grid.x - 1);
        y[i] = (metal::max(x[i], 0.0f) + metal::max(x[next], 0.0f)) / 2;
    """)
    with validation.Scope(mode="throw"):
        attempt("it is fixed", fixed, x)

    # 5. How fast is it? The first call compiles; from then on it is found by its content.
    for title, call in (("kernel", lambda: launch(gelu, x)), ("ops", lambda: 0.5 * x * (1 + mx.tanh(
            0.7978845608 * (x + 0.044715 * x * x * x))))):
        mx.eval(call())
        started = time.perf_counter()
        for _ in range(20):
            mx.eval(call())
        print(f"{title}: {(time.perf_counter() - started) / 20 * 1e6:.0f} µs for {N} elements")

    # 6. A look at what was submitted: a capture, which can be listed, replayed, and made a page of.
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gelu.hfcap")
        mx.metal.start_capture(path)
        mx.eval(launch(gelu, x))
        mx.metal.stop_capture()
        print("--- python3 -m holdfast trace …")
        for words in (["list", path], ["replay", path, "--passes", "3"], ["report", path, "-o", os.path.join(folder, "gelu.html")]):
            subprocess.run([sys.executable, "-m", "holdfast", "trace", *words], check=True)


if __name__ == "__main__":
    main()
