"""Ops of language models that serve many sequences, against NumPy."""

import numpy as np
import pytest

import holdfast.core as mx


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


@pytest.mark.parametrize("scheme", ["dense", "affine8", "turbo4", "turbo4v2"])
def test_attention_to_a_cache(scheme):
    random = np.random.default_rng(1)
    tokens, heads, dims = 40, 2, 64
    keys, values = (random.standard_normal((tokens, heads, dims)).astype(np.float32) for _ in range(2))
    queries = random.standard_normal((1, 4, dims)).astype(np.float32)
    pools = mx.fast.kv_pools(3, heads, dims, 16, scheme=scheme, dtype=mx.float32)
    slots = np.concatenate([np.arange(16, 48), np.arange(8)]).astype(np.int32)  # blocks 1, 2 and 0
    pools = mx.fast.kv_write(*pools, mx.array(keys), mx.array(values), mx.array(slots), scheme=scheme)
    got = mx.fast.paged_attention(mx.array(queries), *pools, mx.array([[1, 2, 0]]), mx.array([tokens]), scale=0.125, scheme=scheme)

    def stored(rows, bits, seed):
        return rows if bits == 0 else np.array(mx.fast.kv_decode(mx.fast.kv_encode(mx.array(rows), bits=bits, seed=seed), dims, bits=bits, seed=seed))

    key_bits, value_bits = {"dense": (0, 0), "affine8": (8, 8), "turbo4": (4, 4), "turbo4v2": (4, 2)}[scheme]
    keys, values = stored(keys, key_bits, 42), stored(values, value_bits, 43)
    for head in range(4):
        weights = softmax(keys[:, head // 2] @ queries[0, head] * 0.125)
        assert np.allclose(np.array(got)[0, head], weights @ values[:, head // 2], atol=1e-4)


def test_recurrences():
    random = np.random.default_rng(2)
    x, weight = random.standard_normal((1, 6, 5)).astype(np.float32), random.standard_normal((5, 3)).astype(np.float32)
    y, states = mx.fast.causal_conv(mx.array(x), mx.array(weight), mx.zeros((1, 2, 5)))
    padded = np.concatenate([np.zeros((1, 2, 5), np.float32), x], 1)
    expected = sum(padded[:, i : i + 6] * weight[:, i] for i in range(3))
    assert np.allclose(np.array(y), expected, atol=1e-5)
    assert np.array_equal(np.array(states), x[:, -2:])

    q, k, v = (random.standard_normal((1, 4, 1, d)).astype(np.float32) for d in (8, 8, 3))
    decay, beta = np.full((1, 4, 1), 0.5, np.float32), np.full((1, 4, 1), 0.25, np.float32)
    y, states = mx.fast.gated_delta(*map(mx.array, (q, k, v, decay, beta)), mx.zeros((2, 1, 3, 8)), slots=mx.array([1]))
    state = np.zeros((3, 8))
    for t in range(4):
        state *= 0.5
        state += 0.25 * np.outer(v[0, t, 0] - state @ k[0, t, 0], k[0, t, 0])
        assert np.allclose(np.array(y)[0, t, 0], state @ q[0, t, 0], atol=1e-4)
    assert np.allclose(np.array(states)[1, 0], state, atol=1e-4)
    assert not np.array(states)[0].any()


def test_errors():
    with pytest.raises(ValueError, match=r"\[KvScheme::named\]"):
        mx.fast.kv_pools(1, 1, 64, 16, scheme="turbo9")
    with pytest.raises(ValueError, match=r"\[kv_encode\]"):
        mx.fast.kv_encode(mx.ones((2, 24)), bits=4)
    with pytest.raises(ValueError, match=r"\[causal_conv\]"):
        mx.fast.causal_conv(mx.ones((1, 2, 3)), mx.ones((4, 2)), mx.zeros((1, 1, 3)))
