"""Many Python threads: custom kernels, dropped outputs, exceptions, garbage collection; nothing leaks."""

import gc
import sys
import threading
import time

import pytest

import holdfast.core as mx

SOURCE = "uint i = thread_position_in_grid.x; y[i] = x[i] * scale + i;"


def run_kernel(kernel, x, scale):
    return kernel(inputs=[x, scale], grid=(x.size, 1, 1), threadgroup=(32, 1, 1), output_shapes=[x.shape],
                  output_dtypes=[x.dtype])[0]


def work(errors, number, iterations):
    try:
        kernel = mx.fast.metal_kernel("scaled", ["x", "scale"], ["y"], SOURCE)
        broken = mx.fast.metal_kernel("broken", ["x", "scale"], ["y"], "y[0] = nothing;")
        for i in range(iterations):
            x = mx.full(64, float(i))
            run_kernel(kernel, x, 3.0)  # dropped before it runs
            later = run_kernel(kernel, x, 4.0)
            mx.async_eval(later)
            del later
            result = run_kernel(kernel, x, float(number))
            expected = [i * number + k for k in (0, 63)]
            assert [result[0].item(), result[63].item()] == expected
            if i % 10 == 0:
                with pytest.raises((RuntimeError, ValueError)):
                    mx.eval(run_kernel(broken, x, 1.0))
                with pytest.raises(ZeroDivisionError):
                    mx.grad(lambda v: v.sum() / 0 if 1 / 0 else v)(x)
            if i % 25 == 0:
                gc.collect()
    except BaseException as error:  # noqa: BLE001  (shown by the main thread)
        errors.append(error)


def run_threads(count, iterations):
    errors = []
    threads = [threading.Thread(target=work, args=(errors, n, iterations)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    gc.collect()
    mx.synchronize()
    mx.clear_cache()


@pytest.mark.skipif(not mx.metal.is_available(), reason="built without the kernel compiler")
def test_kernels_in_32_threads():
    run_threads(4, 10)
    memory, objects = mx.get_active_memory(), len(gc.get_objects())
    none, dtype = sys.getrefcount(None), sys.getrefcount(mx.float32)
    run_threads(32, 100)
    assert mx.get_active_memory() <= memory + (1 << 16)
    assert len(gc.get_objects()) <= objects + 200
    assert abs(sys.getrefcount(None) - none) < 500 and abs(sys.getrefcount(mx.float32) - dtype) < 50


def test_one_array_in_many_threads():
    shared = mx.arange(1000)
    lazy = (shared * 2).sum()
    seen = []

    def read():
        for _ in range(50):
            seen.append(lazy.item())
            shared[3] = 3
            (shared + 1).tolist()
            mx.array(memoryview(shared))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) == {999000} and shared.tolist() == list(range(1000))


def test_other_threads_run_while_one_waits():
    """The GIL is free during evaluation: a counter goes on."""
    stop, counts = threading.Event(), [0]

    def count():
        while not stop.is_set():
            counts[0] += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # threads change only where one gives the GIL up
    try:
        a = mx.random.normal((1200, 1200))
        mx.eval(a)
        thread.start()
        before = counts[0]
        mx.eval(a @ a @ a)
        after = counts[0]
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    assert after > before


def test_streams_and_devices():
    stream = mx.new_stream(mx.cpu)
    with mx.stream(stream):
        assert mx.default_stream(mx.cpu) == stream
        a = mx.ones(3) + 1
    assert mx.default_stream(mx.cpu) != stream and a.tolist() == [2, 2, 2]
    assert mx.add(1, 2, stream=stream).item() == 3
    assert mx.Device(mx.cpu) == mx.cpu and mx.cpu == mx.Device(mx.cpu) and mx.Device(mx.gpu, 0) != mx.cpu
    assert hash(mx.Device(mx.cpu)) == hash(mx.Device(mx.cpu, 0))
    with pytest.raises(ValueError):
        mx.eval(mx.ones(2, mx.float64, stream=mx.gpu))
    mx.synchronize(stream)


@pytest.mark.skipif(not mx.metal.is_available(), reason="built without the kernel compiler")
def test_kernel_errors_name_the_line():
    kernel = mx.fast.metal_kernel("wrong", ["x"], ["y"], "uint i = thread_position_in_grid.x;\ny[i] = missing(x[i]);")
    with pytest.raises((RuntimeError, ValueError), match="missing") as caught:
        mx.eval(kernel(inputs=[mx.ones(4)], grid=(4, 1, 1), threadgroup=(4, 1, 1), output_shapes=[(4,)],
                       output_dtypes=[mx.float32]))
    assert "2:" in str(caught.value)
    good = mx.fast.metal_kernel("typed", ["x"], ["y"], "y[thread_position_in_grid.x] = T(N) * T(x);")
    (result,) = good(inputs=[2.5], template=[("T", mx.float16), ("N", 3), ("B", True)], grid=(2, 1, 1),
                     threadgroup=(2, 1, 1), output_shapes=[(4,)], output_dtypes=[mx.float16], init_value=1)
    assert result.tolist() == [7.5, 7.5, 1, 1]
    with pytest.raises(TypeError):
        good(inputs=[2.5])
    with pytest.raises(TypeError):
        good(inputs=[2.5], template=[("T", "x")], grid=(2, 1, 1), threadgroup=(2, 1, 1), output_shapes=[(2,)],
             output_dtypes=[mx.float16])
    with pytest.raises(ValueError):
        mx.fast.metal_kernel("x", [], ["y"], "", compile_options={"math_mode": "odd"})
