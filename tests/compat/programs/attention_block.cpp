// A decoder block: norms, rotary positions, attention with a cache, a gated feed-forward part.
#include "mlx/fast.h"
#include "mlx/mlx.h"

#include "check.h"

namespace mx = mlx::core;

struct Block {
  int dims, heads, kv_heads;
  mx::array wq, wk, wv, wo, gate, up, down, norm;

  Block(int dims, int heads, int kv_heads)
      : dims(dims),
        heads(heads),
        kv_heads(kv_heads),
        wq(weight(dims, dims)),
        wk(weight(dims * kv_heads / heads, dims)),
        wv(weight(dims * kv_heads / heads, dims)),
        wo(weight(dims, dims)),
        gate(weight(2 * dims, dims)),
        up(weight(2 * dims, dims)),
        down(weight(dims, 2 * dims)),
        norm(mx::ones({dims})) {}

  static mx::array weight(int out, int in) { return mx::random::normal({out, in}) * (1.0f / in); }
  static mx::array linear(const mx::array& x, const mx::array& w) {
    return mx::matmul(x, mx::transpose(w));
  }

  mx::array split(const mx::array& x, int count) const {
    return mx::transpose(mx::reshape(x, {x.shape(0), x.shape(1), count, dims / heads}),
                         {0, 2, 1, 3});
  }

  mx::array operator()(const mx::array& x, mx::array& keys, mx::array& values, int offset) const {
    mx::array h = mx::fast::rms_norm(x, norm, 1e-5f);
    int size = dims / heads;
    mx::array q = mx::fast::rope(split(linear(h, wq), heads), size, false, 10000.0f, 1.0f, offset);
    mx::array k =
        mx::fast::rope(split(linear(h, wk), kv_heads), size, false, 10000.0f, 1.0f, offset);
    keys = mx::concatenate({keys, k}, 2);
    values = mx::concatenate({values, split(linear(h, wv), kv_heads)}, 2);
    mx::array a = mx::fast::scaled_dot_product_attention(q, keys, values,
                                                         1.0f / std::sqrt(float(size)), "causal");
    a = mx::reshape(mx::transpose(a, {0, 2, 1, 3}), {x.shape(0), x.shape(1), dims});
    h = x + linear(a, wo);
    mx::array f = mx::fast::rms_norm(h, norm, 1e-5f);
    mx::array g = linear(f, gate);
    return h + linear(g * mx::sigmoid(g) * linear(f, up), down);
  }
};

int main() {
  mx::random::seed(1);
  Block block(64, 8, 2);
  mx::array x = mx::random::normal({1, 6, 64});
  mx::array empty = mx::zeros({1, 2, 0, 8});
  // The prompt at once, and one token after the other: the same.
  mx::array keys = empty, values = empty;
  mx::array whole = block(x, keys, values, 0);
  mx::array step_keys = empty, step_values = empty;
  std::vector<mx::array> steps;
  for (int t = 0; t < 6; ++t) {
    steps.push_back(block(mx::slice(x, {0, t, 0}, {1, t + 1, 64}), step_keys, step_values, t));
  }
  CHECK(mx::allclose(whole, mx::concatenate(steps, 1), 1e-4, 1e-4).item<bool>());
}
