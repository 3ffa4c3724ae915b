#include "kernels/cpu/lapack.h"

#include <dlfcn.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/sync.h"

namespace holdfast::kernels::cpu {
namespace {

// Every call happens with this held.
sync::Mutex& lapack_mutex() {
  static auto* mutex = new sync::Mutex;
  return *mutex;
}

void* library() {
  static void* handle = dlopen("liblapack.so.3", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw std::runtime_error(
        "[linalg] LAPACK is not installed: no liblapack.so.3 (Debian: liblapack3)");
  }
  return handle;
}

template <typename T>
constexpr bool is_complex = !std::is_same_v<RealOf<T>, T>;

// The routine `name` for T: sname_, dname_ or cname_. Arguments go by address, the lengths of texts
// (all 1) by value at the end.
template <typename T, typename... Arguments>
void call(const char* name, Arguments... arguments) {
  std::string symbol = std::string(1, is_complex<T>    ? 'c'
                                      : sizeof(T) == 4 ? 's'
                                                       : 'd') +
                       name + "_";
  void* routine = dlsym(library(), symbol.c_str());
  if (routine == nullptr) throw std::runtime_error("[linalg] LAPACK has no " + symbol);
  reinterpret_cast<void (*)(Arguments..., size_t, size_t)>(routine)(arguments..., 1, 1);
}

void check(const char* op, int info, const char* failure) {
  if (info < 0) throw std::runtime_error(std::string("[") + op + "] LAPACK rejected an argument");
  if (info > 0) throw std::runtime_error(std::string("[") + op + "] " + failure);
}

// Row-major [m, n] to column-major and back: the same copy with m and n exchanged.
template <typename T>
std::vector<T> columns_of(const T* a, int m, int n) {
  std::vector<T> result(static_cast<size_t>(m) * static_cast<size_t>(n));
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      result[static_cast<size_t>(j) * static_cast<size_t>(m) + static_cast<size_t>(i)] =
          a[static_cast<size_t>(i) * static_cast<size_t>(n) + static_cast<size_t>(j)];
    }
  }
  return result;
}
template <typename T>
void store_rows(const T* columns, int stride, int m, int n, T* out) {
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      out[static_cast<size_t>(i) * static_cast<size_t>(n) + static_cast<size_t>(j)] =
          columns[static_cast<size_t>(j) * static_cast<size_t>(stride) + static_cast<size_t>(i)];
    }
  }
}

// Calls `routine(work, size)` first to learn the size it wants, then with that much.
template <typename T, typename Routine>
void with_workspace(const Routine& routine) {
  T wanted{};
  int query = -1;
  routine(&wanted, &query);
  int size = std::max(1, static_cast<int>(std::real(wanted)));
  std::vector<T> work(static_cast<size_t>(size));
  routine(work.data(), &size);
}

using Lock = std::lock_guard<sync::Mutex>;

}  // namespace

template <typename T>
void lapack_qr(const T* a, int m, int n, T* q, T* r) {
  Lock lock(lapack_mutex());
  int k = std::min(m, n), info = 0;
  std::vector<T> matrix = columns_of(a, m, n);
  std::vector<T> factors(static_cast<size_t>(std::max(1, k)));
  with_workspace<T>([&](T* work, int* size) {
    call<T>("geqrf", &m, &n, matrix.data(), &m, factors.data(), work, size, &info);
  });
  check("qr", info, "the factorisation failed");
  store_rows(matrix.data(), m, k, n, r);
  for (int i = 0; i < k; ++i) std::fill_n(r + static_cast<size_t>(i) * n, std::min(i, n), T{0});
  with_workspace<T>([&](T* work, int* size) {
    call<T>("orgqr", &m, &k, &k, matrix.data(), &m, factors.data(), work, size, &info);
  });
  check("qr", info, "the factorisation failed");
  store_rows(matrix.data(), m, m, k, q);
}

template <typename T>
void lapack_svd(const T* a, int m, int n, T* u, RealOf<T>* singular, T* vt) {
  Lock lock(lapack_mutex());
  int info = 0, k = std::min(m, n);
  std::vector<T> matrix = columns_of(a, m, n);
  bool vectors = u != nullptr;
  const char job = vectors ? 'A' : 'N';
  std::vector<T> left(vectors ? static_cast<size_t>(m) * m : 1);
  std::vector<T> right(vectors ? static_cast<size_t>(n) * n : 1);
  std::vector<int> integers(static_cast<size_t>(8 * std::max(1, k)));
  int left_rows = vectors ? m : 1, right_rows = vectors ? n : 1;
  if constexpr (is_complex<T>) {
    auto small = static_cast<size_t>(k), large = static_cast<size_t>(std::max(m, n));
    std::vector<float> reals(1 + small * std::max<size_t>(7, 5 * small + 2 * large + 5));
    with_workspace<T>([&](T* work, int* size) {
      call<T>("gesdd", &job, &m, &n, matrix.data(), &m, singular, left.data(), &left_rows,
              right.data(), &right_rows, work, size, reals.data(), integers.data(), &info);
    });
  } else {
    with_workspace<T>([&](T* work, int* size) {
      call<T>("gesdd", &job, &m, &n, matrix.data(), &m, singular, left.data(), &left_rows,
              right.data(), &right_rows, work, size, integers.data(), &info);
    });
  }
  check("svd", info, "the iteration did not converge");
  if (!vectors) return;
  store_rows(left.data(), m, m, m, u);
  store_rows(right.data(), n, n, n, vt);
}

template <typename T>
void lapack_inverse(const T* a, int n, T* out) {
  Lock lock(lapack_mutex());
  int info = 0;
  std::vector<T> matrix = columns_of(a, n, n);
  std::vector<int> pivots(static_cast<size_t>(n));
  call<T>("getrf", &n, &n, matrix.data(), &n, pivots.data(), &info);
  check("inv", info, "the matrix is singular");
  with_workspace<T>([&](T* work, int* size) {
    call<T>("getri", &n, matrix.data(), &n, pivots.data(), work, size, &info);
  });
  check("inv", info, "the matrix is singular");
  store_rows(matrix.data(), n, n, n, out);
}

template <typename T>
void lapack_cholesky(const T* a, int n, bool upper, T* out) {
  Lock lock(lapack_mutex());
  int info = 0;
  std::vector<T> matrix = columns_of(a, n, n);
  const char part = upper ? 'U' : 'L';
  call<T>("potrf", &part, &n, matrix.data(), &n, &info);
  check("cholesky", info, "the matrix is not positive definite");
  store_rows(matrix.data(), n, n, n, out);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      if (upper ? j < i : j > i) out[static_cast<size_t>(i) * n + j] = 0;
    }
  }
}

template <typename T>
void lapack_lu(const T* a, int m, int n, T* factors, uint32_t* pivots) {
  Lock lock(lapack_mutex());
  int info = 0;
  std::vector<T> matrix = columns_of(a, m, n);
  std::vector<int> rows(static_cast<size_t>(std::min(m, n)));
  call<T>("getrf", &m, &n, matrix.data(), &m, rows.data(), &info);
  check("lu", std::min(info, 0), "");
  store_rows(matrix.data(), m, m, n, factors);
  for (size_t i = 0; i < rows.size(); ++i) pivots[i] = static_cast<uint32_t>(rows[i] - 1);
}

template <typename T>
void lapack_solve(const T* a, const T* b, int n, int columns, T* out) {
  Lock lock(lapack_mutex());
  int info = 0;
  std::vector<T> matrix = columns_of(a, n, n), right = columns_of(b, n, columns);
  std::vector<int> pivots(static_cast<size_t>(n));
  call<T>("gesv", &n, &columns, matrix.data(), &n, pivots.data(), right.data(), &n, &info);
  check("solve", info, "the matrix is singular");
  store_rows(right.data(), n, n, columns, out);
}

template <typename T>
void lapack_solve_triangular(const T* a, const T* b, int n, int columns, bool upper, T* out) {
  Lock lock(lapack_mutex());
  int info = 0;
  std::vector<T> matrix = columns_of(a, n, n), right = columns_of(b, n, columns);
  const char part = upper ? 'U' : 'L', plain = 'N';
  call<T>("trtrs", &part, &plain, &plain, &n, &columns, matrix.data(), &n, right.data(), &n, &info);
  check("solve_triangular", info, "the matrix is singular");
  store_rows(right.data(), n, n, columns, out);
}

template <typename T>
void lapack_eigh(const T* a, int n, bool upper, RealOf<T>* values, T* vectors) {
  Lock lock(lapack_mutex());
  int info = 0;
  std::vector<T> matrix = columns_of(a, n, n);
  const char job = vectors != nullptr ? 'V' : 'N', part = upper ? 'U' : 'L';
  if constexpr (is_complex<T>) {
    std::vector<float> reals(static_cast<size_t>(3 * n));
    with_workspace<T>([&](T* work, int* size) {
      call<T>("heev", &job, &part, &n, matrix.data(), &n, values, work, size, reals.data(), &info);
    });
  } else {
    with_workspace<T>([&](T* work, int* size) {
      call<T>("syev", &job, &part, &n, matrix.data(), &n, values, work, size, &info);
    });
  }
  check("eigh", info, "the iteration did not converge");
  if (vectors != nullptr) store_rows(matrix.data(), n, n, n, vectors);
}

template <typename T>
void lapack_eig(const T* a, int n, std::complex<float>* values, std::complex<float>* vectors) {
  Lock lock(lapack_mutex());
  int info = 0, one = 1;
  std::vector<T> matrix = columns_of(a, n, n);
  std::vector<T> right(static_cast<size_t>(n) * static_cast<size_t>(n));
  const char none = 'N', job = vectors != nullptr ? 'V' : 'N';
  T unused{};
  if constexpr (is_complex<T>) {
    std::vector<float> reals(static_cast<size_t>(2 * n));
    with_workspace<T>([&](T* work, int* size) {
      call<T>("geev", &none, &job, &n, matrix.data(), &n, values, &unused, &one, right.data(), &n,
              work, size, reals.data(), &info);
    });
    check("eig", info, "the iteration did not converge");
    if (vectors != nullptr) store_rows(right.data(), n, n, n, vectors);
  } else {
    std::vector<T> real(static_cast<size_t>(n)), imag(real.size());
    with_workspace<T>([&](T* work, int* size) {
      call<T>("geev", &none, &job, &n, matrix.data(), &n, real.data(), imag.data(), &unused, &one,
              right.data(), &n, work, size, &info);
    });
    check("eig", info, "the iteration did not converge");
    auto count = static_cast<size_t>(n);
    for (size_t j = 0; j < count; ++j) {
      values[j] = {static_cast<float>(real[j]), static_cast<float>(imag[j])};
    }
    if (vectors == nullptr) return;
    for (size_t j = 0; j < count; ++j) {
      // A pair of conjugate values has its vectors as real part and imaginary part.
      bool first = imag[j] > 0, second = imag[j] < 0;
      for (size_t i = 0; i < count; ++i) {
        T re = right[(second ? j - 1 : j) * count + i];
        T im = first ? right[(j + 1) * count + i] : second ? -right[j * count + i] : T{0};
        vectors[i * count + j] = {static_cast<float>(re), static_cast<float>(im)};
      }
    }
  }
}

#define HOLDFAST_INSTANTIATE_ANY(T)                                    \
  template void lapack_svd<T>(const T*, int, int, T*, RealOf<T>*, T*); \
  template void lapack_eigh<T>(const T*, int, bool, RealOf<T>*, T*);   \
  template void lapack_eig<T>(const T*, int, std::complex<float>*, std::complex<float>*);
#define HOLDFAST_INSTANTIATE(T)                                    \
  HOLDFAST_INSTANTIATE_ANY(T)                                      \
  template void lapack_qr<T>(const T*, int, int, T*, T*);          \
  template void lapack_inverse<T>(const T*, int, T*);              \
  template void lapack_cholesky<T>(const T*, int, bool, T*);       \
  template void lapack_lu<T>(const T*, int, int, T*, uint32_t*);   \
  template void lapack_solve<T>(const T*, const T*, int, int, T*); \
  template void lapack_solve_triangular<T>(const T*, const T*, int, int, bool, T*);
HOLDFAST_INSTANTIATE(float)
HOLDFAST_INSTANTIATE(double)
HOLDFAST_INSTANTIATE_ANY(std::complex<float>)
#undef HOLDFAST_INSTANTIATE
#undef HOLDFAST_INSTANTIATE_ANY

}  // namespace holdfast::kernels::cpu
