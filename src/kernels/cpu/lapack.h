// Factorisations of one row-major matrix, by LAPACK.
//
// LAPACK (liblapack.so.3) is loaded at the first call, so that programs without linear algebra do
// not pay for it. Calls are serialised: Debian's serial OpenBLAS, which may stand behind that name,
// is not safe on several threads.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

namespace holdfast::kernels::cpu {

// T: float or double; where results are of RealOf<T>, std::complex<float> too. Inputs are not
// changed unless said. All throw std::runtime_error when LAPACK
// is missing or the factorisation fails.

template <typename T>
using RealOf = std::conditional_t<std::is_same_v<T, std::complex<float>>, float, T>;

// q: [m, k], r: [k, n], k = min(m, n)
template <typename T>
void lapack_qr(const T* a, int m, int n, T* q, T* r);
// u: [m, m], singular: [k], vt: [n, n]; u and vt may both be null.
template <typename T>
void lapack_svd(const T* a, int m, int n, T* u, RealOf<T>* singular, T* vt);
template <typename T>
void lapack_inverse(const T* a, int n, T* out);
template <typename T>
void lapack_cholesky(const T* a, int n, bool upper, T* out);
// Both factors in one matrix [m, n]; pivots: [k], from 0. A singular matrix is no error.
template <typename T>
void lapack_lu(const T* a, int m, int n, T* factors, uint32_t* pivots);
// a: [n, n], b and out: [n, columns]
template <typename T>
void lapack_solve(const T* a, const T* b, int n, int columns, T* out);
template <typename T>
void lapack_solve_triangular(const T* a, const T* b, int n, int columns, bool upper, T* out);
// vectors (in columns) may be null.
template <typename T>
void lapack_eigh(const T* a, int n, bool upper, RealOf<T>* values, T* vectors);
template <typename T>
void lapack_eig(const T* a, int n, std::complex<float>* values, std::complex<float>* vectors);

}  // namespace holdfast::kernels::cpu
