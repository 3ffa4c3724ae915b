// A kernel in the Metal Shading Language, with a template argument and a helper in its header.
#include "mlx/fast.h"
#include "mlx/mlx.h"

#include "check.h"

namespace mx = mlx::core;

int main() {
  auto kernel = mx::fast::metal_kernel("scaled_exp", {"inp", "scale"}, {"out"}, R"(
    uint elem = thread_position_in_grid.x;
    T tmp = inp[elem];
    out[elem] = helper(tmp) * scale;
  )",
                                       R"(
    template <typename T> T helper(T x) { return metal::exp(x); }
  )");
  mx::array a = mx::random::normal({4, 16});
  for (mx::Dtype dtype : {mx::float32, mx::float16}) {
    mx::array x = mx::astype(a, dtype);
    auto outputs = kernel({x, mx::array(2.0f, dtype)}, {x.shape()}, {dtype}, {int(x.size()), 1, 1},
                          {256, 1, 1}, {{"T", dtype}}, std::nullopt, false, {});
    CHECK(outputs.size() == 1);
    CHECK(mx::allclose(mx::astype(outputs[0], mx::float32),
                       mx::exp(mx::astype(x, mx::float32)) * 2.0f, 1e-2, 1e-2)
              .item<bool>());
  }
  CHECK(mx::metal::is_available());
}
