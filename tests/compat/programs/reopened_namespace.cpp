// Programs add to mlx::core, and declare what its headers do not.
#include "mlx/mlx.h"

#include "check.h"

namespace mlx::core {

array astype(array a, Dtype dtype, bool force_copy, StreamOrDevice s);

array double_of(const array& x) { return x + x; }

namespace {
struct Pair {
  array first, second;
};
}  // namespace

}  // namespace mlx::core

int main() {
  mlx::core::array a = mlx::core::arange(4);
  mlx::core::Pair pair{a, mlx::core::double_of(a)};
  CHECK(mlx::core::sum(pair.second).item<int>() == 12);
  mlx::core::array copied = mlx::core::astype(a, mlx::core::int32, true, {});
  mlx::core::array same = mlx::core::astype(a, mlx::core::int32);
  mlx::core::eval(a, copied, same);
  CHECK(copied.data<int>() != a.data<int>());
  CHECK(same.data<int>() == a.data<int>());
  using namespace mlx::core;
  CHECK(fast::rms_norm(ones({2, 4}), std::nullopt, 1e-5f).shape() == Shape{2, 4});
  CHECK(random::key(1).size() == 2);
}
