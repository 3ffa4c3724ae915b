"""A fused softmax with a gradient of its own: both directions are one Metal kernel each.

    python3 examples/python/fused_softmax.py
"""

import holdfast.core as mx

ROW = 32  # threads of a threadgroup: one SIMD-group for a row

FORWARD = mx.fast.metal_kernel("softmax_rows", ["x"], ["y"], """
    uint row = threadgroup_position_in_grid.x, lane = thread_position_in_threadgroup.x;
    uint n = x_shape[1];
    float largest = -INFINITY;
    for (uint i = lane; i < n; i += 32) largest = metal::max(largest, float(x[row * n + i]));
    largest = simd_max(largest);
    float total = 0;
    for (uint i = lane; i < n; i += 32) total += metal::exp(float(x[row * n + i]) - largest);
    total = simd_sum(total);
    for (uint i = lane; i < n; i += 32) y[row * n + i] = T(metal::exp(float(x[row * n + i]) - largest) / total);
""")

BACKWARD = mx.fast.metal_kernel("softmax_rows_backward", ["y", "dy"], ["dx"], """
    uint row = threadgroup_position_in_grid.x, lane = thread_position_in_threadgroup.x;
    uint n = y_shape[1];
    float dot = 0;
    for (uint i = lane; i < n; i += 32) dot += float(y[row * n + i]) * float(dy[row * n + i]);
    dot = simd_sum(dot);
    for (uint i = lane; i < n; i += 32) {
      dx[row * n + i] = T(float(y[row * n + i]) * (float(dy[row * n + i]) - dot));
    }
""")


def run(kernel, *inputs):
    rows = inputs[0]
    (result,) = kernel(inputs=list(inputs), template=[("T", rows.dtype)], grid=(rows.shape[0] * ROW, 1, 1),
                       threadgroup=(ROW, 1, 1), output_shapes=[rows.shape], output_dtypes=[rows.dtype])
    return result


@mx.custom_function
def softmax(x):
    """Softmax along the last axis."""
    return run(FORWARD, x.reshape(-1, x.shape[-1])).reshape(x.shape)


@softmax.vjp
def softmax_vjp(x, cotangent, output):
    flat = (-1, x.shape[-1])
    return run(BACKWARD, output.reshape(flat), cotangent.reshape(flat)).reshape(x.shape)


def main():
    x = mx.random.normal((4, 6, 100), key=mx.random.key(1))
    weights = mx.random.normal((4, 6, 100), key=mx.random.key(2))
    ours = mx.grad(lambda v: (softmax(v) * weights).sum())
    reference = mx.grad(lambda v: (mx.softmax(v, axis=-1) * weights).sum())
    value = mx.abs(softmax(x) - mx.softmax(x, axis=-1)).max().item()
    gradient = mx.abs(ours(x) - reference(x)).max().item()
    print(f"largest difference: {value:.2e} of the values, {gradient:.2e} of the gradient")
    assert value < 1e-5 and gradient < 1e-5
    compiled = mx.compile(ours)
    assert mx.allclose(compiled(x), reference(x), atol=1e-5).item()
    print("compiled: the same")


if __name__ == "__main__":
    main()
