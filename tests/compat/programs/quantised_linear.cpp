// A linear layer with 4-bit weights beside the same in full precision.
#include "mlx/mlx.h"

#include "check.h"

namespace mx = mlx::core;

int main() {
  mx::array w = mx::random::normal({128, 256}, mx::random::key(1));
  mx::array x = mx::random::normal({3, 256}, mx::random::key(2));
  auto q = mx::quantize(w, 64, 4);
  CHECK(q.size() == 3);
  mx::array restored = mx::dequantize(q[0], q[1], q[2], 64, 4);
  CHECK(mx::max(mx::abs(restored - w)).item<float>() < 0.4f);
  mx::array y = mx::quantized_matmul(x, q[0], q[1], q[2], true, 64, 4);
  CHECK(mx::allclose(y, mx::matmul(x, mx::transpose(restored)), 1e-3, 1e-2).item<bool>());
}
