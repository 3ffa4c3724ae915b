"""In-place updates inside transforms, and the classes of trees: a function that updates its arguments differentiates as
its twin that does not."""

import argparse
import collections
import threading
import types

import numpy as np
import pytest

import holdfast.core as mx

START = [1.5, -2.0, 3.0, 0.5]
OTHER = [0.5, 4.0, -1.0, 2.0]
INDICES = mx.array([0, 2, 0])
MASK = mx.array([True, False, True, True])


def one(index, value, like):
    """`like` with an element replaced, by functions that update nothing."""
    return mx.where(mx.arange(like.size) == index, value, like)


def assign(x, w):
    x[0] = w[1] * x[2]
    return x


def operators(x, w):
    x += w
    x *= x
    x -= 3 * w
    x /= 2 + w * w
    x **= 2
    return x


def slices(x, w):
    x[1:] *= w[:3]
    x[::2] += x[1::2]
    x[-2:] = x[:2]
    return x


def slices_twin(x, w):
    x = mx.concatenate([x[:1], x[1:] * w[:3]])
    even = x[0:1] + x[1:2], x[2:3] + x[3:4]
    x = mx.concatenate([even[0], x[1:2], even[1], x[3:]])
    return mx.concatenate([x[:2], x[:2]])


def masks(x, w):
    x[MASK] = 2.0
    x[mx.array([False, True, True, False])] *= 3
    return x * w


def integers(x, w):
    x[mx.array([3, 1])] = w[mx.array([0, 0])] * x[2]
    x[mx.array([2, 0])] += x[1] * w[:2]
    return x


def integers_twin(x, w):
    x = mx.stack([x[0], w[0] * x[2], x[2], w[0] * x[2]])
    return mx.stack([x[0] + x[1] * w[1], x[1], x[2] + x[1] * w[0], x[3]])


def at_add(x, w):
    x = x.at[INDICES].add(w[:3])
    return x.at[1:].subtract(x[0])


def at_add_twin(x, w):
    x = mx.stack([x[0] + w[0] + w[2], x[1], x[2] + w[1], x[3]])
    return mx.concatenate([x[:1], x[1:] - x[0]])


def at_multiply(x, w):
    x = x.at[INDICES].multiply(w[:3])
    return x.at[1:].divide(w[1:])


def at_multiply_twin(x, w):
    return mx.stack([x[0] * w[0] * w[2], x[1] / w[1], x[2] * w[1] / w[2], x[3] / w[3]])


def at_limits(x, w):
    x = x.at[INDICES].maximum(w[:3])
    return x.at[1:].minimum(w[1:])


def at_limits_twin(x, w):
    first = mx.maximum(mx.maximum(x[0], w[0]), w[2])
    rest = mx.stack([x[1], mx.maximum(x[2], w[1]), x[3]])
    return mx.concatenate([first[None], mx.minimum(rest, w[1:])])


def loop(x, w):
    for i in range(4):
        x[i] = x[i - 1] * w[i]
    return x


def loop_twin(x, w):
    for i in range(4):
        x = one(i, x[i - 1] * w[i], x)
    return x


def buffer(x, w):
    made = mx.zeros(4)
    made[:2] = x[2:]
    made[2:] = mx.sum(x * w)
    return made


def other_name(x, w):
    y = x
    y[0] = w[0]
    return x * y


def copies(x, w):
    y = mx.array(x)
    y[0] = w[0]
    y += 1
    return x * y


def whole(x, w):
    x[...] = w
    x[None] = x[None] * 2
    return x


UPDATES = {
    assign: lambda x, w: one(0, w[1] * x[2], x),
    operators: lambda x, w: (((x + w) * (x + w) - 3 * w) / (2 + w * w)) ** 2,
    slices: slices_twin,
    masks: lambda x, w: mx.where(mx.array([False, True, True, False]), 3, 1) * mx.where(MASK, 2.0, x) * w,
    integers: integers_twin,
    at_add: at_add_twin,
    at_multiply: at_multiply_twin,
    at_limits: at_limits_twin,
    loop: loop_twin,
    buffer: lambda x, w: mx.concatenate([x[2:], mx.broadcast_to(mx.sum(x * w), (2,))]),
    other_name: lambda x, w: one(0, w[0], x) * one(0, w[0], x),
    copies: lambda x, w: x * (one(0, w[0], x) + 1),
    whole: lambda x, w: w * 2 + 0 * x,
}


def arguments():
    return mx.array(START), mx.array(OTHER)


def same(ours, expected):
    if isinstance(ours, (list, tuple)):
        assert len(ours) == len(expected)
        for each, other in zip(ours, expected):
            same(each, other)
    else:
        np.testing.assert_allclose(np.array(ours), np.array(expected), rtol=2e-5, atol=1e-5)


def loss_of(function):
    return lambda x, w: (function(x, w) * mx.array([1.0, 2.0, 3.0, 4.0])).sum()


def twice(loss):
    gradient = mx.grad(loss, argnums=(0, 1))
    return mx.grad(lambda x, w: (gradient(x, w)[0] * w).sum() + (gradient(x, w)[1] * x).sum(), argnums=(0, 1))


TRANSFORMS = {
    "value": lambda f: f,
    "grad": lambda f: mx.grad(loss_of(f), argnums=(0, 1)),
    "value_and_grad": lambda f: mx.value_and_grad(loss_of(f), argnums=(1, 0)),
    "vjp": lambda f: lambda x, w: mx.vjp(f, [x, w], [mx.array([1.0, -2.0, 3.0, 0.5])]),
    "jvp": lambda f: lambda x, w: mx.jvp(f, [x, w], [mx.array([1.0, -2.0, 3.0, 0.5]), mx.ones(4)]),
    "vmap": lambda f: lambda x, w: mx.vmap(f)(mx.stack([x, 2 * x]), mx.stack([w, w + 1])),
    "vmap of grad": lambda f: lambda x, w: mx.vmap(mx.grad(loss_of(f)))(mx.stack([x, 2 * x]), mx.stack([w, w + 1])),
    "grad of vmap": lambda f: mx.grad(lambda x, w: mx.vmap(loss_of(f), in_axes=(0, None))(mx.stack([x, 2 * x]), w).sum()),
    "checkpoint": lambda f: mx.grad(mx.checkpoint(loss_of(f)), argnums=(0, 1)),
    "compile": mx.compile,
    "grad of compile": lambda f: mx.grad(mx.compile(loss_of(f)), argnums=(0, 1)),
    "compile of grad": lambda f: mx.compile(mx.grad(loss_of(f), argnums=(0, 1))),
    "grad of grad": lambda f: twice(loss_of(f)),
}


@pytest.mark.parametrize("update", UPDATES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_updates_transform_as_their_twins(transform, update):
    transformed = TRANSFORMS[transform](update)
    expected = TRANSFORMS[transform](UPDATES[update])(*arguments())
    given = arguments()
    for _ in range(2):  # a second call uses what was compiled
        same(transformed(*given), expected)
        if transform != "value":
            same(given, arguments())  # the caller's arrays are not updated
            continue
        given = arguments()


@pytest.mark.parametrize("update", UPDATES, ids=lambda f: f.__name__)
def test_gradients_of_updates_are_central_differences(update):
    loss, gradients = loss_of(update), mx.grad(loss_of(update), argnums=(0, 1))(*arguments())
    for number in (0, 1):
        for i in range(4):
            ends = []
            for step in (1e-2, -1e-2):
                values = [START[:], OTHER[:]]
                values[number][i] += step
                ends.append(loss(mx.array(values[0]), mx.array(values[1])).item())
            assert abs((ends[0] - ends[1]) / 2e-2 - gradients[number][i].item()) < 2e-2 * max(1, abs(ends[0]))


def test_arrays_that_are_not_differentiated():
    def f(x, other, plain, *, named):
        other += x
        plain["a"] *= x
        plain["list"][0][1] = 7.0
        named[0] = x[1]
        return (other * plain["a"] * plain["list"][0] * named * x).sum()

    def twin(x, other, plain, *, named):
        return ((other + x) * (plain["a"] * x) * one(1, 7.0, plain["list"][0]) * one(0, x[1], named) * x).sum()

    x, other = arguments()
    first, second, named = mx.array(START), mx.array(OTHER), mx.array(OTHER)
    expected = mx.grad(twin)(x, other, {"a": first, "list": [second]}, named=named)
    for _ in range(2):
        plain = {"a": first, "list": [second]}
        same(mx.grad(f)(x, other, plain, named=named), expected)
        # The arrays of the caller are what they were; its containers hold what the function put there.
        same([x, first], [START, START])
        same([other, second, named], [OTHER, OTHER, OTHER])
        same(plain["a"], np.square(START))
        same(plain["list"][0], [OTHER[0], 7.0, *OTHER[2:]])


def test_what_a_function_sees_outside_is_updated():
    outside, module = mx.array(START), Module(4)

    def f(x, given):
        outside[0] = x[1]
        given["w"] = x * 2
        return (outside * given["w"] * x).sum()

    gradient = mx.grad(f)(mx.array(START), module)
    same(gradient, mx.grad(lambda x: (one(0, x[1], mx.array(START)) * x * 2 * x).sum())(mx.array(START)))
    same(outside, [START[1]] + START[1:])
    same(module["w"], np.array(START) * 2)


def test_a_module_that_is_not_differentiated_is_the_same_object():
    module = Module(4)

    def f(parameters, given):
        module.update(parameters)  # as value_and_grad of a package of modules does
        assert given is module
        return given(mx.ones(4)).sum()

    same(mx.grad(f)({"w": mx.array(START)}, module)["w"], 2 * (np.array(START) + 1))


# --- the classes of trees ---


class Module(dict):
    """As modules of neural networks are: arrays are items, the rest are attributes."""

    def __init__(self, size):
        super().__init__(w=mx.arange(1.0, size + 1), b=mx.ones(size))
        self.size = size
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return (self["w"] * x + self["b"]) ** 2


class Named(collections.namedtuple("Named", "w b")):
    pass


class Attributes(dict):
    __getattr__ = dict.__getitem__  # answers the copy protocol with KeyError


class Items(list):
    pass


class Pair(tuple):
    pass


def moved():
    made = collections.OrderedDict(w=mx.arange(1.0, 4.0), b=mx.ones(3))
    made.move_to_end("w")
    return made


def item(tree, name):
    return getattr(tree, name) if isinstance(tree, (types.SimpleNamespace, argparse.Namespace)) else (
        tree[("w", "b").index(name)] if isinstance(tree, (list, tuple)) else tree[name])


TREES = {
    "module": lambda: Module(3),
    "attributes": lambda: Attributes(w=mx.arange(1.0, 4.0), b=mx.ones(3)),
    "ordered": moved,
    "default": lambda: collections.defaultdict(list, w=mx.arange(1.0, 4.0), b=mx.ones(3)),
    "named tuple": lambda: Named(mx.arange(1.0, 4.0), mx.ones(3)),
    "list": lambda: Items([mx.arange(1.0, 4.0), mx.ones(3)]),
    "tuple": lambda: Pair([mx.arange(1.0, 4.0), mx.ones(3)]),
    "namespace": lambda: types.SimpleNamespace(w=mx.arange(1.0, 4.0), b=mx.ones(3)),
    "arguments": lambda: argparse.Namespace(w=mx.arange(1.0, 4.0), b=mx.ones(3)),
}


@pytest.mark.parametrize("name", TREES)
def test_trees_keep_their_classes(name):
    tree = TREES[name]()
    seen = []

    def loss(given):
        seen.append(type(given))
        return (item(given, "w") ** 2 * item(given, "b")).sum()

    def check(result, w, b):
        assert type(result) is type(tree)
        same(item(result, "w"), w)
        same(item(result, "b"), b)

    check(mx.grad(loss)(tree), [2, 4, 6], [1, 4, 9])
    check(mx.grad(lambda pair: loss(pair[0]["x"]))([{"x": tree}])[0]["x"], [2, 4, 6], [1, 4, 9])
    (_, given), gradient = mx.value_and_grad(lambda t: (loss(t), t))(tree)
    check(given, [1, 2, 3], [1, 1, 1])
    check(gradient, [2, 4, 6], [1, 4, 9])
    check(mx.grad(lambda *, p: loss(p), argnames="p")(p=tree)[1]["p"], [2, 4, 6], [1, 4, 9])
    check(mx.grad(mx.checkpoint(loss))(tree), [2, 4, 6], [1, 4, 9])
    check(mx.vmap(lambda t: (loss(t), t)[1])(tree), [1, 2, 3], [1, 1, 1])
    compiled = mx.compile(lambda t: (loss(t), t)[1])
    for _ in range(2):
        check(compiled(tree), [1, 2, 3], [1, 1, 1])
    mx.eval(tree)
    assert set(seen) == {type(tree)}
    check(tree, [1, 2, 3], [1, 1, 1])


def test_a_module_has_its_attributes_and_methods():
    module, x = Module(3), mx.array([1.0, 2.0, 3.0])
    value, gradient = mx.value_and_grad(lambda m: m(x).sum())(module)
    assert value.item() == 129 and gradient.size == 3
    same(gradient["b"], [4, 10, 20])
    assert module.calls == 1  # an attribute that a method changed
    assert module.__class__ is Module and gradient.calls == 0
    compiled = mx.compile(lambda m: m["w"] * m.size)
    same(compiled(module), [3, 6, 9])
    module.size = 5
    same(compiled(module), [5, 10, 15])  # traced again


def test_what_a_function_puts_into_containers_stays_there():
    def f(p):
        p["w"] = p["w"] * 2
        p["list"][0][1] = 7.0
        p["list"].append(p["w"] + 1)
        p["space"].w += 1
        p["new"] = mx.array(5.0)
        p["tuple"] = (p["tuple"][0] + 1, p["tuple"][1])
        p["text"] = "changed"
        del p["gone"]
        return (p["w"] * p["list"][0]).sum() + p["space"].w.sum() + p["kept"][0].sum()

    kept = mx.ones(3)
    tree = {"w": mx.ones(3), "list": [mx.zeros(3)], "space": types.SimpleNamespace(w=mx.zeros(2)),
            "kept": (kept,), "tuple": (mx.zeros(2), mx.ones(2)), "gone": mx.zeros(1), "old": Module(2)}
    inner, space, module = tree["list"], tree["space"], tree["old"]
    gradient = mx.grad(f)(tree)
    assert set(tree) == {"w", "list", "space", "kept", "tuple", "old", "new", "text"}
    assert tree["list"] is inner and tree["space"] is space and tree["old"] is module
    assert tree["kept"][0] is kept  # what it left alone is what it was
    same(tree["w"], [2, 2, 2])
    same(inner, [[0, 7, 0], [3, 3, 3]])
    same(space.w, [1, 1])
    same(tree["tuple"], [[1, 1], [1, 1]])
    same(gradient["w"], [0, 14, 0])
    same(gradient["list"][0], [2, 0, 2])
    same(gradient["gone"], [0])


def test_nothing_is_put_back_when_the_function_raises():
    tree = {"w": mx.ones(3)}

    def f(p):
        p["w"] = p["w"] * 2
        raise KeyError("no")

    with pytest.raises(KeyError):
        mx.grad(f)(tree)
    same(tree["w"], [1, 1, 1])


def test_threads_differentiate_by_one_tree():
    tree = {"w": mx.arange(1.0, 9.0), "layers": [Module(8), Module(8)]}
    expected = None
    together = threading.Barrier(4)
    failures = []

    def loss(p, x):
        together.wait()  # every thread is inside at the same time
        return ((p["layers"][0](x) + p["layers"][1](x)) * p["w"]).sum()

    def run():
        try:
            for _ in range(5):
                gradient = mx.grad(loss)(tree, mx.ones(8))
                same(gradient["w"], expected["w"])
                same(gradient["layers"][1]["w"], expected["layers"][1]["w"])
        except BaseException as error:  # noqa: BLE001
            failures.append(error)
            together.abort()

    expected = mx.grad(lambda p, x: ((p["layers"][0](x) + p["layers"][1](x)) * p["w"]).sum())(tree, mx.ones(8))
    mx.eval(expected)
    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
