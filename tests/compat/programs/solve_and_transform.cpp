// Linear algebra, Fourier transforms and einsum.
#include "mlx/mlx.h"

#include "check.h"

namespace mx = mlx::core;

int main() {
  mx::array a = mx::random::normal({6, 6}, mx::random::key(1)) + 6.0f * mx::eye(6);
  mx::array b = mx::random::normal({6, 2}, mx::random::key(2));
  mx::array x = mx::linalg::solve(a, b, mx::Device::cpu);
  CHECK(mx::allclose(mx::matmul(a, x), b, 1e-4, 1e-4).item<bool>());
  auto [q, r] = mx::linalg::qr(a, mx::Device::cpu);
  CHECK(mx::allclose(mx::matmul(q, r), a, 1e-4, 1e-4).item<bool>());
  CHECK(
      mx::allclose(mx::linalg::norm(b), mx::sqrt(mx::sum(mx::square(b))), 1e-5, 1e-5).item<bool>());

  mx::array signal = mx::random::normal({3, 30}, mx::random::key(3));
  CHECK(mx::allclose(mx::fft::irfft(mx::fft::rfft(signal)), signal, 1e-4, 1e-4).item<bool>());

  CHECK(mx::allclose(mx::einsum("ij,jk->ik", {a, b}), mx::matmul(a, b), 1e-4, 1e-4).item<bool>());
}
