"""Nothing stays behind: every example, and calls that fail, many times over."""

import gc
import sys
import weakref

import numpy as np
import pytest

import holdfast.core as mx
import surface

# Those make something that is kept on purpose: streams, kernels in the library.
KEPT = ("new_", "metal_kernel", "import")
FAILING = [
    "mx.array([1, [2]])", "mx.array(1) + [1]", "mx.sum(mx.ones(2), axis='x')", "mx.zeros(3)[5]", "mx.array(range(3))",
    "mx.grad(lambda x: 1 / 0)(mx.ones(2))", "mx.compile(lambda x: 1 / 0)(mx.ones(2))", "mx.exp(x=3)",
    "mx.vmap(lambda x: 1 / 0)(mx.ones(2))", "mx.arange(3)[mx.array([7])]",
]
SHARING = [
    "mx.asarray(N)", "np.asarray(mx.ones(3))", "mx.array(N)", "mx.from_dlpack(N)", "list(mx.ones((2, 2)))",
    "mx.array([1, 2, 3])[mx.array([True, False, True])]", "mx.compile(lambda x: x + 1)(mx.ones(2))",
    "mx.export_function(lambda part: None, lambda x: x + 1, mx.ones(2))", "np.from_dlpack(mx.ones(3))",
]


def run(code, times):
    scope = {"mx": mx, "np": np, "N": np.ones(4, np.float32)}
    for _ in range(times):
        try:
            mx.eval(eval(code, scope))
        except Exception:  # noqa: BLE001
            pass


def grows(code):
    """Does each round of calls leave something behind? Python's own free lists do so now and then, but not always."""
    run(code, 5)
    for attempt in range(4):
        if attempt == 1:
            run(code, 300)  # NumPy keeps some of what it frees, up to a bound
        if attempt:
            gc.collect()  # before and after, or old garbage would hide what is new
        blocks, none = sys.getallocatedblocks(), sys.getrefcount(None)
        run(code, 30)
        if attempt:
            gc.collect()
        mx.array(0)  # what workers gave up is dropped with the next array
        if sys.getallocatedblocks() - blocks <= 15 and sys.getrefcount(None) - none <= 15:
            return False
    return True


@pytest.mark.parametrize("expressions", [
    [each for _, each in surface.examples() if not any(part in each for part in KEPT)], FAILING, SHARING,
], ids=["examples", "failing", "sharing"])
def test_nothing_stays(expressions):
    assert not [each for each in expressions if grows(compile(each, "<example>", "eval"))]


def test_a_leak_would_be_found():
    mx.kept = []
    try:
        assert grows(compile("mx.kept.append(object())", "<leak>", "eval"))
    finally:
        del mx.kept


# --- reference cycles ---


class Holder:
    """What refers to itself by way of something that the package made."""

    def __init__(self, make):
        self.made = make(self)

    def double(self, x):
        return x * 2

    def itself(self, x):
        return {"x": x * 2, "holder": self}


class Sub(mx.array):
    pass


def called(function, *args):
    mx.eval(mx.array(0), function(*args))
    return function


def exported(holder, target):
    made = mx.exporter(target, holder.double)
    made(mx.ones(2))
    return made


def custom(holder):
    made = mx.custom_function(holder.double)
    made.vjp(lambda primals, cotangent, output: holder.double(cotangent))
    return made


def of_sub(make):
    def made(holder):
        value = Sub([1.0, 2.0])
        value.holder, value.made = holder, make(value)
        return value

    return made


CYCLES = {
    "exporter": lambda h: exported(h, "cycle.hf"),
    "exporter to a callback": lambda h: exported(h, lambda part: (part, h)),
    "closed exporter": lambda h: (exported(h, "cycle.hf").close(), h),
    "compile": lambda h: called(mx.compile(h.double), mx.ones(2)),
    "compile, of the holder": lambda h: called(mx.compile(h.itself), mx.ones(2)),
    "compile, not called": lambda h: mx.compile(h.double),
    "grad": lambda h: called(mx.grad(lambda x: h.double(x).sum()), mx.ones(2)),
    "vmap": lambda h: called(mx.vmap(h.double), mx.ones(2)),
    "checkpoint": lambda h: called(mx.checkpoint(h.double), mx.ones(2)),
    "custom_function": lambda h: called(custom(h), mx.ones(2)),
    "grad of custom_function": lambda h: called(mx.grad(lambda x: custom(h)(x).sum()), mx.ones(2)),
    "at": of_sub(lambda value: value.at),
    "at, with a key": of_sub(lambda value: value.at[value > 1]),
    "at, with itself in the key": lambda h: (lambda key: key.append((mx.ones(2).at[key], h)) or key)([0]),
    "iterator": of_sub(iter),
}


@pytest.mark.parametrize("name", CYCLES)
def test_cycles_are_collected(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gc.collect()
    holder = Holder(CYCLES[name])
    found = weakref.ref(holder)
    del holder
    gc.collect()
    mx.array(0)  # what C++ gave up is dropped with the next array
    gc.collect()
    assert found() is None
