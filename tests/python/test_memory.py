"""Memory, streams, devices, printing: what is no op."""

import io

import pytest

import holdfast.core as mx


def test_limits_and_counters():
    mx.clear_cache()
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    a = mx.ones(1 << 20) + 1
    mx.eval(a)
    assert mx.get_active_memory() - before >= 4 << 20 and mx.get_peak_memory() >= mx.get_active_memory() - 4096
    del a
    assert mx.get_active_memory() - before < 1 << 16 and mx.get_cache_memory() >= 4 << 20
    mx.clear_cache()
    assert mx.get_cache_memory() < 1 << 20
    previous = mx.set_cache_limit(0)
    mx.eval(mx.ones(1 << 20) + 1)
    assert mx.get_cache_memory() == 0
    assert mx.set_cache_limit(previous) == 0
    limit = mx.get_memory_limit()
    assert mx.set_memory_limit(mx.get_active_memory() + (1 << 20)) == limit
    try:
        with pytest.raises((MemoryError, RuntimeError), match="limit|memory"):
            mx.eval(mx.ones(1 << 20) + 1)
    finally:
        mx.set_memory_limit(limit)
    mx.eval(mx.ones(1 << 20) + 1)
    assert mx.set_wired_limit(1 << 20) == 0 and mx.set_wired_limit(0) == 1 << 20
    for name in ("get_cache_memory", "get_peak_memory", "reset_peak_memory", "set_cache_limit", "set_memory_limit", "set_wired_limit"):
        assert getattr(mx.metal, name) is getattr(mx, name)


def test_streams_of_a_thread():
    stream, before = mx.new_thread_unsafe_stream(mx.cpu), mx.default_stream(mx.cpu)
    mx.set_default_stream(stream)
    try:
        assert mx.default_stream(mx.cpu) == stream
        a = mx.ones(3) * 2
        mx.clear_streams()
        assert a.tolist() == [2, 2, 2]
    finally:
        mx.set_default_stream(before)


def test_devices():
    assert mx.device_info(mx.cpu) and mx.metal.device_info()["max_buffer_length"] > 0


def test_text():
    options = mx.get_printoptions() if hasattr(mx, "get_printoptions") else None
    mx.set_printoptions(precision=2)
    try:
        assert "0.33" in str(mx.array([1 / 3])) and "0.333" not in str(mx.array([1 / 3]))
    finally:
        mx.set_printoptions(precision=-1)
    assert options is None or mx.get_printoptions() is not None
    out = io.StringIO()
    mx.export_to_dot(out, mx.ones(2) + 1)
    assert out.getvalue().startswith("digraph")


def test_what_needs_other_machines():
    for call in (lambda: mx.fast.cuda_kernel("k", ["x"], ["y"], ""), lambda: mx.fast.precompiled_cuda_kernel("k", b"", [], [], [], []),
                 lambda: mx.distributed.send(mx.ones(2), 1), lambda: mx.distributed.recv((2,), mx.float32, 1),
                 lambda: mx.distributed.recv_like(mx.ones(2), 1), lambda: mx.distributed.init(strict=True)):
        with pytest.raises((RuntimeError, ValueError, TypeError)):
            call()
