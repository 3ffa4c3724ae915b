"""Writing a Metal kernel on Linux: run it, break it, let the validator explain, time it, look at it.

    python3 examples/python/write_a_kernel.py
"""

import os
import subprocess
import sys
import tempfile
import time

import holdfast.core as mx

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


def broken():
    """Clips in place, by a cast that takes `const` away."""
    kernel = mx.fast.metal_kernel("clip", ["x"], ["y"], """
        uint i = thread_position_in_grid.x;
        device float* scratch = (device float*)x;
        scratch[i] = metal::max(x[i], 0.0f);
        y[i] = scratch[i] * 2;
    """)
    mx.eval(launch(kernel, mx.ones(256)))


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

    # 3. A kernel that compiles, and is wrong: it changes its input, so that whoever reads it later gets another value.
    #    The validator says so in the first run; here in a process of its own, since it is on from the start.
    print("--- it changes its input: HOLDFAST_VALIDATE=1 explains")
    validated = subprocess.run([sys.executable, __file__, "--broken"], capture_output=True, text=True,
                               env={**os.environ, "HOLDFAST_VALIDATE": "1"})
    print(validated.stderr.strip())
    assert "bindings.input-written" in validated.stderr

    # 4. How fast is it? The first call compiles; from then on it is found by its content.
    for title, call in (("kernel", lambda: launch(gelu, x)), ("ops", lambda: 0.5 * x * (1 + mx.tanh(
            0.7978845608 * (x + 0.044715 * x * x * x))))):
        mx.eval(call())
        started = time.perf_counter()
        for _ in range(20):
            mx.eval(call())
        print(f"{title}: {(time.perf_counter() - started) / 20 * 1e6:.0f} µs for {N} elements")

    # 5. A look at what was submitted, where this build has the capture layer.
    path = os.path.join(tempfile.mkdtemp(), "gelu.capture")
    try:
        mx.metal.start_capture(path)
        mx.eval(launch(gelu, x))
        mx.metal.stop_capture()
        print("captured:", os.path.getsize(path), "bytes; `holdfast trace` shows them")
    except RuntimeError as error:
        print("no capture:", error)


if __name__ == "__main__":
    broken() if "--broken" in sys.argv else main()
