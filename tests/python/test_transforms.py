"""Transforms over trees: values, forms, errors, and what callbacks raise."""

import functools

import numpy as np
import pytest

import holdfast.core as mx


def close(ours, reference):
    np.testing.assert_allclose(np.array(ours), reference, rtol=1e-5, atol=1e-6)


X, Y = mx.array([1.0, 2.0]), mx.array([3.0, 4.0])


def product(x, y):
    return (x * y).sum()


def test_forms_of_gradients():
    close(mx.grad(product)(X, Y), [3, 4])
    close(mx.grad(product, argnums=[1])(X, Y), [1, 2])
    both = mx.grad(product, argnums=(0, 1))(X, Y)
    assert isinstance(both, tuple)
    close(both[1], [1, 2])
    nothing, named = mx.grad(product, argnames="y")(X, y=Y)
    assert nothing is None
    close(named["y"], [1, 2])
    first, named = mx.grad(product, argnums=0, argnames=["y"])(X, y=Y)
    close(first, [3, 4])
    close(named["y"], [1, 2])


def test_trees_and_further_results():
    tree = {"w": [X, (Y,)], "unused": mx.array(1.0)}

    def loss(p, scale):
        return (p["w"][0] * p["w"][1][0]).sum() * scale, {"note": "kept", "twice": p["w"][0] * 2}

    (value, extra), gradient = mx.value_and_grad(loss)(tree, 2)
    assert value.item() == 22 and extra["note"] == "kept"
    close(extra["twice"], [2, 4])
    close(gradient["w"][0], [6, 8])
    assert isinstance(gradient["w"][1], tuple) and gradient["unused"].item() == 0


def test_derivatives_of_derivatives():
    cube = lambda x: x * x * x  # noqa: E731
    assert mx.grad(mx.grad(cube))(mx.array(2.0)).item() == 12
    close(mx.vmap(mx.grad(cube))(X), [3, 12])
    outputs, tangents = mx.jvp(cube, [mx.array(2.0)], [mx.array(1.0)])
    assert outputs[0].item() == 8 and tangents[0].item() == 12
    outputs, cotangents = mx.vjp(lambda x, y: (x * y, x), [X, Y], [mx.ones(2), mx.ones(2)])
    close(cotangents[0], [4, 5])
    assert mx.compile(mx.grad(cube))(mx.array(2.0)).item() == 12


@pytest.mark.parametrize("call, error", [
    (lambda: mx.grad(3), TypeError), (lambda: mx.grad(product, argnums="a"), TypeError),
    (lambda: mx.grad(product, argnums=[]), ValueError), (lambda: mx.grad(product, argnums=[0, 0]), ValueError),
    (lambda: mx.grad(product, argnums=-1), ValueError), (lambda: mx.grad(product, argnums=5)(X, Y), ValueError),
    (lambda: mx.grad(product, argnames="z")(X, Y), ValueError), (lambda: mx.grad(product)(3.0, Y), ValueError),
    (lambda: mx.grad(lambda x: x)(X), ValueError), (lambda: mx.grad(lambda x: 3)(X), ValueError),
    (lambda: mx.grad(lambda x: (x.sum(), x))(X), ValueError), (lambda: mx.value_and_grad(lambda x: [x.sum()])(X), ValueError),
    (lambda: mx.vmap(lambda x: x)(3), ValueError), (lambda: mx.vmap(lambda x: 3)(X), ValueError),
    (lambda: mx.vmap(lambda x: x, in_axes=2)(X), IndexError), (lambda: mx.vmap(lambda x: x, in_axes=None), TypeError),
    (lambda: mx.vmap(lambda x: x, out_axes=None), TypeError), (lambda: mx.vmap(lambda x: x, in_axes="a"), ValueError),
    (lambda: mx.vmap(lambda x, y: x, in_axes=(0,))(X, Y), ValueError), (lambda: mx.compile(3), TypeError),
    (lambda: mx.compile(lambda x, y: x)(X, object()), ValueError),
    (lambda: mx.compile(lambda x: (print(x), x)[1])(X), ValueError),
])
def test_errors(call, error):
    with pytest.raises(error):
        call()


class Own(Exception):
    pass


def fail(*args):
    raise Own("from inside")


@pytest.mark.parametrize("call", [
    lambda: mx.grad(fail)(X), lambda: mx.vmap(fail)(X), lambda: mx.compile(fail)(X), lambda: mx.checkpoint(fail)(X),
    lambda: mx.vjp(fail, [X], [X]), lambda: mx.jvp(fail, [X], [X]), lambda: mx.custom_function(fail)(X),
    lambda: mx.grad(lambda x: mx.vmap(mx.compile(fail))(x).sum())(X),
    lambda: mx.grad(lambda x: mx.custom_function(lambda y: y * 2).vjp(fail)(x).sum())(X),
    lambda: mx.export_function("nothing.hf", fail, X),
])
def test_what_a_callback_raises_comes_through(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Own, match="from inside"):
        call()
    # The thread is not left inside a trace.
    assert (X + 1).tolist() == [2, 3]


def test_vmap_axes():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2)
    close(mx.vmap(lambda x, y: x + y, in_axes=(0, 1))(mx.array(a), mx.array(b)), a + b.T)
    close(mx.vmap(lambda x, y: x + y, in_axes=(0, None), out_axes=1)(mx.array(a), mx.array(b[:, 0])), (a + b[:, 0]).T)
    close(mx.vmap(lambda x, y: x + y, in_axes=(-1, 0))(mx.array(a), mx.array(b)), (a.T + b))
    trees = mx.vmap(lambda d: {"s": d["a"] + d["b"]}, in_axes=({"a": 0, "b": 1},))({"a": mx.array(a), "b": mx.array(b)})
    close(trees["s"], a + b.T)


def test_custom_rules():
    seen = []

    @mx.custom_function
    def f(x, y):
        """Documented."""
        return x * y

    @f.vjp
    def f_vjp(primals, cotangent, output):
        seen.append((len(primals), cotangent.shape, output.shape))
        return cotangent * 10, cotangent * 20

    @f.jvp
    def f_jvp(primals, tangents):
        seen.append(tangents)
        return tangents[0] * 7

    @f.vmap
    def f_vmap(inputs, axes):
        seen.append(axes)
        return inputs[0] + inputs[1], axes[0]

    assert f.__doc__ == "Documented."
    assert mx.grad(lambda x: f(x, mx.array(3.0)))(mx.array(2.0)).item() == 10
    assert mx.grad(lambda y: f(mx.array(3.0), y))(mx.array(2.0)).item() == 20
    assert mx.jvp(lambda x: f(x, mx.array(3.0)), [mx.array(2.0)], [mx.array(1.0)])[1][0].item() == 7
    assert seen[-1][1] is None
    close(mx.vmap(f, in_axes=(0, None))(X, mx.array(5.0)), [6, 7])
    assert seen[-1] == (0, None)

    one = mx.custom_function(lambda d: d["a"] * 2)
    one.vjp(lambda primals, cotangent, output: {"a": cotangent * 100})
    assert mx.grad(lambda x: one({"a": x}))(mx.array(2.0)).item() == 100
    with pytest.raises(ValueError):
        mx.grad(lambda x: mx.custom_function(lambda y: y).vjp(lambda p, c, o: [])(x))(mx.array(1.0))


def test_checkpoint():
    f = mx.checkpoint(lambda d, k=1: {"z": mx.sin(d["a"]) * k})
    close(f({"a": X}, k=3)["z"], 3 * np.sin([1, 2]))
    close(mx.grad(lambda x: f({"a": x}, k=3)["z"].sum())(X), 3 * np.cos([1, 2]))


# --- compile ---


def test_compile_traces_once_for_each_kind_of_call():
    calls = []

    def f(x, k=1, mode="a"):
        calls.append((x.shape, k, mode))
        return {"r": x * k, "n": (k, mode)}

    g = mx.compile(f)
    for _ in range(2):
        close(g(X, 2)["r"], [2, 4])
        close(g(X, k=3)["r"], [3, 6])
        close(g(X, 3.0)["r"], [3, 6])
        close(g(mx.ones(3))["r"], [1, 1, 1])
        assert g(X, True)["n"] == (True, "a") and g(X, 1)["n"] == (1, "a") and g(X, mode="b")["n"] == (1, "b")
    assert len(calls) == 7
    assert mx.compile(lambda x: None)(X) is None and mx.compile(lambda: X)().tolist() == [1, 2]


def test_compile_shapeless():
    calls = []
    g = functools.partial(mx.compile, shapeless=True)(lambda x: (calls.append(1), x * 2)[1])
    assert g(mx.ones(2)).tolist() == [2, 2] and g(mx.ones(3)).tolist() == [2, 2, 2] and len(calls) == 1


def changed(x, key, value):
    y = x + 0
    y[key] = value
    return y


OPEN_SLICES = {
    "from": lambda x: x[1:], "to": lambda x: x[:, :4], "ends": lambda x: x[-2:, 1:-1], "number": lambda x: x[-1] + x[0], "turned": lambda x: x[::-1, -2::-2],
    "new axes": lambda x: x[None, 1, ..., None, :3], "whole": lambda x: x[:], "take": lambda x: x[mx.array([0, -1])], "elements": lambda x: x[mx.array([0, 1]), -1],
    "split": lambda x: mx.split(x, 2, axis=-1)[1] * 2, "rows": lambda x: changed(x, slice(1, None), 7), "columns": lambda x: changed(x, (..., slice(None, -1)), x[:, 1:]),
    "one row": lambda x: changed(x, -1, x[0]), "column": lambda x: changed(x, (slice(None), 0), x[:, 1]), "all": lambda x: changed(x, slice(None), 3.0),
    "column of rows": lambda x: changed(x, (slice(None), None, 1), x[:, 0][:, None]), "at": lambda x: x.at[1:, 0].add(x[1:, 1]),
    "mask": lambda x: changed(x, x[:, 0] > 5, 0.0),
}


@pytest.mark.parametrize("name", OPEN_SLICES)
def test_compile_shapeless_with_slices(name):
    f = OPEN_SLICES[name]
    g = mx.compile(f, shapeless=True)
    for shape in ((2, 4), (5, 8), (3, 6)):
        x = mx.arange(shape[0] * shape[1], dtype=mx.float32).reshape(shape)
        got, expected = g(x), f(x)
        assert got.shape == expected.shape and got.tolist() == expected.tolist()


def test_compile_shapeless_refuses_what_computes_with_sizes():
    x = mx.zeros((2, 4, 3))
    for f in (lambda x: x[mx.array([0]), mx.array([1])], lambda x: changed(x, mx.array([0]), 1.0)):
        with pytest.raises(ValueError, match="does not know"):
            mx.compile(f, shapeless=True)(x)


def test_compile_with_state():
    state = {"count": mx.array(0), "list": [mx.array(1.0)]}

    def f(x):
        state["count"] = state["count"] + 1
        state["list"][0] = state["list"][0] * x
        return state["list"][0] + 1

    g = mx.compile(f, inputs=state, outputs=state)
    results = [g(mx.array(2.0)).item() for _ in range(3)]
    assert results == [3, 5, 9] and state["count"].item() == 3 and state["list"][0].item() == 8
    state["list"][0] = mx.array(10.0)
    assert g(mx.array(2.0)).item() == 21
    reads = mx.compile(lambda: state["count"] * 1, inputs=state)
    assert reads().item() == 4
    state["count"] = mx.array(40)
    assert reads().item() == 40


def test_compile_with_random_state():
    mx.random.seed(3)
    plain = [mx.random.uniform().item() for _ in range(3)]
    g = mx.compile(lambda: mx.random.uniform(), inputs=mx.random.state, outputs=mx.random.state)
    mx.random.seed(3)
    assert [g().item() for _ in range(3)] == plain
    assert len(set(plain)) == 3
    mx.random.state[0] = mx.random.key(3)
    assert mx.random.uniform().item() == plain[0]


def test_compiled_methods():
    class Model:
        scale = 3

        @mx.compile
        def __call__(self, x):
            return x

    with pytest.raises(ValueError):
        Model()(X)  # an object is no constant

    class Other:
        def __init__(self):
            self.run = mx.compile(lambda x: x * 3)

    assert Other().run(X).tolist() == [3, 6]


def test_disable_compile():
    calls = []
    g = mx.compile(lambda x: (calls.append(1), x)[1])
    mx.disable_compile()
    try:
        g(X), g(X)
        assert len(calls) == 2
    finally:
        mx.enable_compile()


# --- functions in files ---


def test_export(tmp_path):
    file = tmp_path / "f.hf"
    mx.export_function(file, lambda x, y: (x * y, mx.sin(x)), X, y=Y, metadata="about")
    imported, metadata = mx.import_function(file, return_metadata=True)
    results = imported(X, y=Y)
    assert metadata == "about" and isinstance(results, tuple)
    close(results[0], [3, 8])
    with pytest.raises(ValueError):
        imported(mx.ones(3), y=Y)
    with mx.exporter(tmp_path / "g.hf", lambda x: x + 1) as exporter:
        exporter(X)
        exporter(mx.ones((2, 2)))
    g = mx.import_function(tmp_path / "g.hf")
    assert g(X)[0].tolist() == [2, 3] and g([mx.ones((2, 2))])[0].shape == (2, 2)
    parts = []
    mx.export_function(parts.append, lambda x: mx.exp(x) + 1, X)
    assert {part["type"] for part in parts} >= {"inputs", "outputs", "primitive"}
    with pytest.raises(RuntimeError):
        mx.import_function(tmp_path / "nothing.hf")
    with pytest.raises(ValueError):
        mx.export_function(tmp_path / "h.hf", lambda x: 3, X)
