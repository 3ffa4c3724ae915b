#!/usr/bin/env python3
"""Times the functions of `holdfast bench compile`, compiled by MLX and JAX; talks as ../ops/peers.py does."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "ops"))
import peers
from peers import jax, jnp, mx


class Functions:
    """The functions of programs.cpp, for the module `m` and what it has under other names."""

    def __init__(self, m, erf, rsqrt, logsumexp, softmax, value_and_grad, vjp):
        self.m, self.erf, self.rsqrt, self.logsumexp, self.softmax = m, erf, rsqrt, logsumexp, softmax
        self.value_and_grad, self.vjp = value_and_grad, vjp

    def gelu(self, x):
        return x * 0.5 * (1 + self.erf(x * 0.70710678))

    def layer_norm(self, x, weight, bias):
        centred = x - x.mean(-1, keepdims=True)
        variance = self.m.square(centred).mean(-1, keepdims=True)
        return centred * self.rsqrt(variance + 1e-5) * weight + bias

    def cross_entropy(self, logits, targets):
        chosen = self.m.take_along_axis(logits, targets[:, None], axis=-1)
        return (self.logsumexp(logits, axis=-1, keepdims=True) - chosen).mean()

    def gelu_backward(self, x, cotangent):
        return self.vjp(self.gelu, [x], cotangent)

    def layer_norm_backward(self, x, weight, bias, cotangent):
        return self.vjp(self.layer_norm, [x, weight, bias], cotangent)

    def cross_entropy_backward(self, logits, targets):
        return self.value_and_grad(lambda x: self.cross_entropy(x, targets))(logits)

    def adam(self, *a):
        count = len(a) // 4
        results = []
        for i in range(count):
            gradient = a[count + i]
            first = 0.9 * a[2 * count + i] + 0.1 * gradient
            second = 0.999 * a[3 * count + i] + 0.001 * self.m.square(gradient)
            results += [a[i] - 1e-3 * first / (self.m.sqrt(second) + 1e-8), first, second]
        return results

    def attention_block(self, x, weight, bias, queries, keys, values, result):
        heads = 8
        batch, time, features = x.shape
        normed = self.layer_norm(x, weight, bias)

        def project(w):
            return (normed @ w).reshape(batch, time, heads, features // heads).transpose(0, 2, 1, 3)

        q, k, v = project(queries), project(keys), project(values)
        scores = q @ k.swapaxes(-1, -2) * (1 / features)
        places = self.m.arange(time)
        weights = self.softmax(self.m.where(places[:, None] >= places[None, :], scores, -1e9), axis=-1)
        mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(batch, time, features)
        return x + mixed @ result

    def mlp_step(self, x, targets, *parameters):
        def loss(p):
            hidden = self.m.maximum(x @ p[0] + p[1], 0)
            hidden = self.m.maximum(hidden @ p[2] + p[3], 0)
            return self.cross_entropy(hidden @ p[4] + p[5], targets)

        value, gradients = self.value_and_grad(loss)(list(parameters))
        return [value] + [p - 1e-4 * g for p, g in zip(parameters, gradients)]


def with_mlx(name, inputs):
    functions = Functions(mx, mx.erf, mx.rsqrt, mx.logsumexp, mx.softmax, mx.value_and_grad,
                          lambda f, primals, cotangent: mx.vjp(f, primals, [cotangent])[1])
    arrays = [mx.array(a).astype(getattr(mx, dtype)) for a, dtype in inputs]
    mx.eval(arrays)
    function = mx.compile(getattr(functions, name))
    return lambda: mx.eval(function(*arrays))


def with_jax(name, inputs):
    functions = Functions(jnp, jax.lax.erf, jax.lax.rsqrt, jax.nn.logsumexp, jax.nn.softmax, jax.value_and_grad,
                          lambda f, primals, cotangent: jax.vjp(f, *primals)[1](cotangent))
    arrays = [jnp.asarray(a).astype(dtype) for a, dtype in inputs]
    function = jax.jit(getattr(functions, name))
    return lambda: jax.block_until_ready(function(*arrays))


if __name__ == "__main__":
    peers.PEERS = {}
    if mx:
        peers.PEERS["mlx"] = (with_mlx, "mlx")
    if jax:
        peers.PEERS["jax"] = (with_jax, "jax")
    peers.main()
