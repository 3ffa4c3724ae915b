"""The layers of a quantised network with linear attention as one graph, against NumPy: a rotation of pairs by a custom
kernel on float16, a quantised product that widens to float32, a convolution, a gated delta step by another custom kernel,
a gated norm, and the first kernel again, now on float32. The cache holds one kernel, and many such lists are in flight.
"""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import holdfast
import holdfast.core as mx

# As published kernels of this kind are written: indices are signed, and the place inside a row is summed up before a
# barrier and used after it.
ROTATE = """
    int batch = params[0], hidden = params[1], rounds = params[2], gs = params[3];
    int half_gs = gs / 2;
    int tid = (int)thread_position_in_threadgroup.x;
    int row = (int)threadgroup_position_in_grid.x;
    int g = (int)threadgroup_position_in_grid.y;
    threadgroup float tile[128];
    int first = g * gs + tid;
    int second = g * gs + tid + half_gs;
    bool inside = row < batch;
    int at = row * hidden + first;
    if (inside) {
        tile[tid] = (float)x[at] * (float)scales[first];
        tile[tid + half_gs] = (float)x[row * hidden + second] * (float)scales[second];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int k = 0; k < rounds; ++k) {
        int place = k * (hidden / 2) + g * half_gs + tid;
        int pair = pairs[place];
        int i = pair & 0xffff, j = pair >> 16;
        float c = (float)cosines[place], s = (float)sines[place];
        float a = tile[i], b = tile[j];
        tile[i] = a * c + b * s;
        tile[j] = b * c - a * s;
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (row < batch) {
        y[row * hidden + (g * gs + tid)] = (T)tile[tid];
        y[row * hidden + second] = (T)tile[tid + half_gs];
    }
"""

# One simdgroup for each row of the state; a lane holds a part of it in registers.
STEP = """
    uint n = thread_position_in_grid.z;
    uint b_idx = n / Hv, hv = n % Hv, hk = hv / (Hv / Hk);
    constexpr int per_lane = Dk / 32;
    uint dk = thread_position_in_threadgroup.x, dv = thread_position_in_grid.y;
    auto q_ = q + b_idx * T * Hk * Dk + hk * Dk;
    auto k_ = k + b_idx * T * Hk * Dk + hk * Dk;
    auto v_ = v + b_idx * T * Hv * Dv + hv * Dv;
    auto g_ = g + b_idx * T * Hv;
    auto beta_ = beta + b_idx * T * Hv;
    auto y_ = y + b_idx * T * Hv * Dv + hv * Dv;
    auto from = state_in + (n * Dv + dv) * Dk;
    auto to = state_out + (n * Dv + dv) * Dk;
    float state[per_lane];
    for (int i = 0; i < per_lane; ++i) state[i] = static_cast<float>(from[per_lane * dk + i]);
    for (int t = 0; t < T; ++t) {
        float memory = 0.0f;
        for (int i = 0; i < per_lane; ++i) {
            state[i] *= g_[hv];
            memory += state[i] * k_[per_lane * dk + i];
        }
        memory = simd_sum(memory);
        float delta = (v_[dv] - memory) * beta_[hv];
        float out = 0.0f;
        for (int i = 0; i < per_lane; ++i) {
            state[i] += k_[per_lane * dk + i] * delta;
            out += state[i] * q_[per_lane * dk + i];
        }
        out = simd_sum(out);
        if (thread_index_in_simdgroup == 0) y_[dv] = static_cast<InT>(out);
        q_ += Hk * Dk;
        k_ += Hk * Dk;
        v_ += Hv * Dv;
        y_ += Hv * Dv;
        g_ += Hv;
        beta_ += Hv;
    }
    for (int i = 0; i < per_lane; ++i) to[per_lane * dk + i] = static_cast<StT>(state[i]);
"""

BATCH, TIME, HIDDEN, GROUP, ROUNDS = 2, 5, 256, 128, 8
HK, HV, DK, DV = 2, 4, 32, 16
WIDTH = 2 * HK * DK + HV * DV  # q, k and v side by side
TAPS = 4


class Layer:
    """Weights, as NumPy has them and as arrays."""

    def __init__(self, seed):
        random = np.random.default_rng(seed)
        self.seed = seed
        # Disjoint pairs inside each group, and their angles.
        order = np.stack([np.concatenate([random.permutation(GROUP) for _ in range(HIDDEN // GROUP)])
                          for _ in range(ROUNDS)])
        self.left, self.right = order[:, 0::2], order[:, 1::2]
        angles = random.uniform(-np.pi, np.pi, (ROUNDS, HIDDEN // 2)).astype(np.float32)
        self.cosines, self.sines = np.cos(angles), np.sin(angles)
        self.channel_scales = random.uniform(0.5, 1.5, HIDDEN).astype(np.float32)
        # 4 bits, with scales of float32 and biases of float16.
        self.codes = random.integers(0, 16, (WIDTH, HIDDEN), dtype=np.uint32)
        groups = HIDDEN // GROUP
        self.scales = (random.uniform(0.5, 1, (WIDTH, groups)) / 64).astype(np.float32)
        self.biases = (-8 * self.scales).astype(np.float16)
        self.taps = (random.standard_normal((WIDTH, TAPS, 1)) / 2).astype(np.float32)
        self.norm = random.uniform(0.5, 1.5, DV).astype(np.float32)
        self.gate = random.standard_normal((BATCH, TIME, HV, DV)).astype(np.float32)
        self.decay = random.uniform(0.7, 1.0, (BATCH, TIME, HV)).astype(np.float32)
        self.beta = random.uniform(0, 1, (BATCH, TIME, HV)).astype(np.float32)
        self.state = random.standard_normal((BATCH, HV, DV, DK)).astype(np.float32)
        self.pairs = (self.left | self.right << 16).astype(np.int32)
        packed = (self.codes.reshape(WIDTH, HIDDEN // 8, 8) << (4 * np.arange(8, dtype=np.uint32))).sum(-1)
        self.packed = packed.astype(np.uint32)

    def weights(self):
        named = {name: mx.array(value) for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return {**named, "channel_scales": named["channel_scales"].astype(mx.float16)}


def rotation(rows, x, w):
    """The kernel of one name, compiled for the dtype of x."""
    kernel = mx.fast.metal_kernel("rotate_pairs", ["x", "pairs", "cosines", "sines", "scales", "params"], ["y"], ROTATE)
    hidden = x.shape[-1]
    return kernel(inputs=[x, w["pairs"], w["cosines"], w["sines"], w["channel_scales"],
                          mx.array([rows, hidden, ROUNDS, GROUP], mx.int32)],
                  template=[("T", x.dtype)], grid=(rows * GROUP // 2, hidden // GROUP, 1), threadgroup=(GROUP // 2, 1, 1),
                  output_shapes=[x.shape], output_dtypes=[x.dtype])[0]


def step(q, k, v, g, beta, state):
    kernel = mx.fast.metal_kernel("gated_delta_step", ["q", "k", "v", "g", "beta", "state_in", "T"], ["y", "state_out"], STEP)
    return kernel(inputs=[q, k, v, g, beta, state, TIME],
                  template=[("InT", q.dtype), ("StT", state.dtype), ("Dk", DK), ("Dv", DV), ("Hk", HK), ("Hv", HV)],
                  grid=(32, DV, BATCH * HV), threadgroup=(32, 4, 1),
                  output_shapes=[v.shape, state.shape], output_dtypes=[q.dtype, state.dtype])


def chain(x, w):
    """Nothing is evaluated in between."""
    x = rotation(BATCH * TIME, x, w)
    x = mx.quantized_matmul(x, w["packed"], w["scales"], w["biases"], transpose=True, group_size=GROUP, bits=4)
    x = mx.conv1d(mx.pad(x, [(0, 0), (TAPS - 1, 0), (0, 0)]), w["taps"], groups=WIDTH)
    x = x * mx.sigmoid(x)
    q, k, v = mx.split(x, [HK * DK, 2 * HK * DK], axis=-1)
    q, k = (mx.fast.rms_norm(part.reshape(BATCH, TIME, HK, DK), None, 1e-6) * DK**-0.5 for part in (q, k))
    y, state = step(q, k, v.reshape(BATCH, TIME, HV, DV), w["decay"], w["beta"], w["state"])
    y = mx.fast.rms_norm(y, w["norm"], 1e-6) * (w["gate"] * mx.sigmoid(w["gate"]))
    y = y.reshape(BATCH, TIME, HV * DV)
    y = rotation(BATCH * TIME, mx.concatenate([y, y, y, y], axis=-1), w)
    return y, state


def rotated(x, layer):
    x = x.astype(np.float64) * layer.channel_scales.astype(np.float16)
    start = np.arange(HIDDEN // 2) // (GROUP // 2) * GROUP
    for k in range(ROUNDS):
        i, j = start + layer.left[k], start + layer.right[k]
        a, b = x[..., i], x[..., j]
        x[..., i], x[..., j] = a * layer.cosines[k] + b * layer.sines[k], b * layer.cosines[k] - a * layer.sines[k]
    return x


def normed(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def reference(x, layer):
    x = rotated(x, layer).astype(np.float16).astype(np.float64)
    scale, bias = (np.repeat(part.astype(np.float64), GROUP, axis=1) for part in (layer.scales, layer.biases))
    x = x @ (layer.codes * scale + bias).T
    padded = np.concatenate([np.zeros((BATCH, TAPS - 1, WIDTH)), x], axis=1)
    x = sum(padded[:, t:t + TIME] * layer.taps[:, t, 0] for t in range(TAPS))
    x = x / (1 + np.exp(-x))
    q, k, v = np.split(x, [HK * DK, 2 * HK * DK], axis=-1)
    q, k = (np.repeat(normed(part.reshape(BATCH, TIME, HK, DK)) * DK**-0.5, HV // HK, axis=2) for part in (q, k))
    v, state, y = v.reshape(BATCH, TIME, HV, DV), layer.state.astype(np.float64), []
    for t in range(TIME):
        state = state * layer.decay[:, t, :, None, None]
        delta = (v[:, t] - np.einsum("bhvk,bhk->bhv", state, k[:, t])) * layer.beta[:, t, :, None]
        state = state + delta[..., None] * k[:, t, :, None, :]
        y.append(np.einsum("bhvk,bhk->bhv", state, q[:, t]))
    gate = layer.gate.astype(np.float64)
    y = normed(np.stack(y, axis=1)) * layer.norm * gate / (1 + np.exp(-gate))
    return rotated(np.tile(y.reshape(BATCH, TIME, HV * DV), 4), layer), state


def check_layer(layer, results, expected):
    y, state = results
    assert y.dtype == mx.float32 and state.dtype == mx.float32
    # The rotated activations are rounded to float16 on the way.
    np.testing.assert_allclose(np.array(state), expected[1], rtol=2e-3, atol=2e-3, err_msg=str(layer.seed))
    np.testing.assert_allclose(np.array(y), expected[0], rtol=2e-2, atol=2e-2, err_msg=str(layer.seed))


def inputs(seed):
    return (np.random.default_rng(seed).standard_normal((BATCH, TIME, HIDDEN)) / 4).astype(np.float16)


def run_chains(seeds):
    """Several chains at a time, none of which is waited for before all are on their way."""
    layers = [Layer(seed) for seed in seeds]
    results = []
    for layer in layers:
        results.append(chain(mx.array(inputs(layer.seed)), layer.weights()))
        mx.async_eval(*results[-1])
    for layer, result in zip(layers, results):
        check_layer(layer, result, reference(inputs(layer.seed), layer))


def main():
    layer, x = Layer(1), inputs(1)
    weights = layer.weights()
    # float16 x, float32 scales and float16 biases give float32.
    product = mx.quantized_matmul(mx.array(x), weights["packed"], weights["scales"], weights["biases"], transpose=True,
                                  group_size=GROUP, bits=4)
    assert product.dtype == mx.float32
    for round in range(2):
        check_layer(layer, chain(mx.array(x), weights), reference(x, layer))
    failures = []

    def run(seeds):
        try:
            run_chains(seeds)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    run_chains(range(2, 5))
    threads = [threading.Thread(target=run, args=(range(10 * n, 10 * n + 3),)) for n in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    print("chains agree")


@pytest.mark.skipif(not mx.metal.is_available(), reason="the kernel compiler was not built")
@pytest.mark.parametrize("entries", ["1", "8"])
def test_the_chain_of_a_quantised_network(entries):
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(holdfast.__file__)),
                   "HOLDFAST_KERNEL_CACHE_ENTRIES": entries}
    result = subprocess.run([sys.executable, __file__], capture_output=True, text=True, env=environment)
    assert result.returncode == 0 and "chains agree" in result.stdout, result.stderr[-4000:]


if __name__ == "__main__":
    main()
