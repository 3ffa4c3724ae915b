// Slices, gathers, reductions and broadcasting.
#include "mlx/backend/common/metal_kernel.h"
#include "mlx/mlx.h"
#include "mlx/types/complex.h"
#include "mlx/types/limits.h"

#include "check.h"

using namespace mlx::core;

int main() {
  array a = reshape(arange(24), {2, 3, 4});
  CHECK(array_equal(slice(a, {0, 0, 3}, {2, 3, -5}, {1, 1, -1}), take(a, array({3, 2, 1, 0}), 2))
            .item<bool>());
  CHECK(array_equal(sum(a, std::vector<int>{0, 2}), array({60, 92, 124})).item<bool>());
  CHECK(argmax(a).item<uint32_t>() == 23);
  auto parts = split(a, 2, -1);
  CHECK(parts.size() == 2);
  CHECK(array_equal(concatenate(parts, -1), a).item<bool>());
  CHECK(array_equal(squeeze(expand_dims(a, 0), 0), a).item<bool>());
  array mask = greater(a, array(11));
  CHECK(sum(mask).item<int>() == 12);
  CHECK(array_equal(where(mask, a, array(0)), a * astype(mask, int32)).item<bool>());
  CHECK(allclose(softmax(astype(a, float32), -1),
                 exp(astype(a, float32) - logsumexp(astype(a, float32), -1, true)), 1e-5, 1e-5)
            .item<bool>());
  try {
    matmul(ones({2, 3}), ones({4, 5}));
    CHECK(false);
  } catch (const std::invalid_argument&) {
  }
  for (const auto& row : a) CHECK(row.shape() == Shape{3, 4});
  CHECK(max(array({1.0f, numeric_limits<float>::infinity()})).item<float>() > 1.0f);
  CHECK(static_cast<float>(numeric_limits<float16_t>::epsilon()) == finfo(float16).eps);
  CHECK(static_cast<float>(numeric_limits<float16_t>::max()) == finfo(float16).max);
  CHECK(static_cast<float>(numeric_limits<bfloat16_t>::lowest()) == finfo(bfloat16).min);
  CHECK(static_cast<float>(numeric_limits<bfloat16_t>::min()) == finfo(bfloat16).smallest_normal);
  CHECK(complex128_t(1, 2) < complex128_t(1.5));
}
