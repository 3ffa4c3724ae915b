#include "kernels/cpu/factorise.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>
#include <vector>

#include <holdfast/array.h>

#include "kernels/cpu/lapack.h"

namespace holdfast::kernels::cpu {
namespace {

using Method = FactorisationMethod;

// L and U, and the place of each row of the matrix in L.
template <typename T>
void split_lu(const T* factors, const std::vector<uint32_t>& pivots, int m, int n, uint32_t* places,
              T* lower, T* upper) {
  int k = std::min(m, n);
  std::vector<uint32_t> rows(static_cast<size_t>(m));
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<uint32_t>(i);
  for (size_t i = 0; i < pivots.size(); ++i) std::swap(rows[i], rows[pivots[i]]);
  for (size_t i = 0; i < rows.size(); ++i) places[rows[i]] = static_cast<uint32_t>(i);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < k; ++j) {
      lower[static_cast<size_t>(i) * k + j] = i == j  ? T{1}
                                              : j < i ? factors[static_cast<size_t>(i) * n + j]
                                                      : T{0};
    }
  }
  for (int i = 0; i < k; ++i) {
    for (int j = 0; j < n; ++j) {
      upper[static_cast<size_t>(i) * n + j] =
          j >= i ? factors[static_cast<size_t>(i) * n + j] : T{0};
    }
  }
}

// What there is for complex matrices too.
template <typename T>
void run_any(const MatrixTask& task) {
  const auto* a = reinterpret_cast<const T*>(task.inputs[0]);
  auto out = [&](int i) { return reinterpret_cast<T*>(task.outputs[i]); };
  auto real_out = [&](int i) { return reinterpret_cast<RealOf<T>*>(task.outputs[i]); };
  auto complex_out = [&](int i) { return reinterpret_cast<std::complex<float>*>(task.outputs[i]); };
  int m = task.m, n = task.n;
  switch (task.method) {
    case Method::svd:
      return lapack_svd(a, m, n, out(0), real_out(1), out(2));
    case Method::singular_values:
      return lapack_svd<T>(a, m, n, nullptr, real_out(0), nullptr);
    case Method::eigh:
      return lapack_eigh(a, n, task.upper, real_out(0), out(1));
    case Method::eigvalsh:
      return lapack_eigh<T>(a, n, task.upper, real_out(0), nullptr);
    case Method::eig:
      return lapack_eig(a, n, complex_out(0), complex_out(1));
    default:
      return lapack_eig(a, n, complex_out(0), nullptr);
  }
}

template <typename T>
void run_task(const MatrixTask& task) {
  const auto* a = reinterpret_cast<const T*>(task.inputs[0]);
  const auto* b = reinterpret_cast<const T*>(task.inputs[1]);
  auto out = [&](int i) { return reinterpret_cast<T*>(task.outputs[i]); };
  int m = task.m, n = task.n;
  switch (task.method) {
    case Method::qr:
      return lapack_qr(a, m, n, out(0), out(1));
    case Method::inverse:
      return lapack_inverse(a, n, out(0));
    case Method::cholesky:
      return lapack_cholesky(a, n, task.upper, out(0));
    case Method::lu_factor:
      return lapack_lu(a, m, n, out(0), reinterpret_cast<uint32_t*>(task.outputs[1]));
    case Method::solve:
      return lapack_solve(a, b, n, task.columns, out(0));
    case Method::solve_triangular:
      return lapack_solve_triangular(a, b, n, task.columns, task.upper, out(0));
    case Method::lu:
    case Method::slogdet:
      break;
    default:
      return run_any<T>(task);
  }
  std::vector<T> factors(static_cast<size_t>(m) * static_cast<size_t>(n));
  std::vector<uint32_t> pivots(static_cast<size_t>(std::min(m, n)));
  lapack_lu(a, m, n, factors.data(), pivots.data());
  if (task.method == Method::lu) {
    return split_lu(factors.data(), pivots, m, n, reinterpret_cast<uint32_t*>(task.outputs[0]),
                    out(1), out(2));
  }
  T sign = 1, logarithm = 0;
  for (size_t i = 0; i < pivots.size(); ++i) {
    T value = factors[i * static_cast<size_t>(n) + i];
    if (pivots[i] != i) sign = -sign;
    sign = value == 0 ? T{0} : value < 0 ? -sign : sign;
    logarithm += std::log(std::abs(value));
  }
  *out(0) = sign;
  *out(1) = logarithm;
}

}  // namespace

void factorise(Dtype::Val dtype, const MatrixTask& task) {
  if (dtype == Dtype::Val::float64) {
    run_task<double>(task);
  } else if (dtype == Dtype::Val::complex64) {
    run_any<std::complex<float>>(task);
  } else {
    run_task<float>(task);
  }
}

void factorise_empty(FactorisationMethod method, Dtype::Val dtype, int64_t n, int64_t count,
                     void* output) {
  const bool is_permutation = method == Method::lu;
  dispatch_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < count; ++i) {
      int64_t row = i / n % n, column = i % n;
      static_cast<T*>(output)[i] = is_permutation ? convert_element<T>(column) : T(row == column);
    }
  });
}

}  // namespace holdfast::kernels::cpu
