#pragma once

#include <holdfast/types.h>

#include "mlx/core.h"

namespace mlx::core {

// No dtype of arrays: for sums and factorisations of programs.
struct complex128_t : std::complex<double> {
  complex128_t() = default;
  constexpr complex128_t(double real, double imag) : std::complex<double>(real, imag) {}
  constexpr complex128_t(const std::complex<double>& value) : std::complex<double>(value) {}
  template <typename T>
    requires(std::is_convertible_v<T, double>)
  constexpr complex128_t(const T& value) : std::complex<double>(static_cast<double>(value)) {}

  friend bool operator<(complex128_t a, complex128_t b) {
    return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
  }
  friend bool operator>(complex128_t a, complex128_t b) { return b < a; }
};

}  // namespace mlx::core
