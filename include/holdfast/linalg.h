// Linear algebra of stacks of matrices: the last two axes are the matrices.
//
// Factorisations call LAPACK, which is loaded at the first use; they take float32 and float64 and
// run on CPU streams only.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/ops.h>
#include <holdfast/utils.h>

namespace holdfast::linalg {

// Of vectors (one axis): any order. Of matrices (two axes): 1, -1, 2, -2, infinities, "fro", "nuc".
// Without an order: the root of the sum of squares.
array norm(const array& a, const double ord, const std::optional<std::vector<int>>& axis = {},
           bool keepdims = false, StreamOrDevice s = {});
inline array norm(const array& a, const double ord, int axis, bool keepdims = false,
                  StreamOrDevice s = {}) {
  return norm(a, ord, std::vector<int>{axis}, keepdims, s);
}
array norm(const array& a, const std::string& ord, const std::optional<std::vector<int>>& axis = {},
           bool keepdims = false, StreamOrDevice s = {});
inline array norm(const array& a, const std::string& ord, int axis, bool keepdims = false,
                  StreamOrDevice s = {}) {
  return norm(a, ord, std::vector<int>{axis}, keepdims, s);
}
array norm(const array& a, const std::optional<std::vector<int>>& axis = {}, bool keepdims = false,
           StreamOrDevice s = {});
inline array norm(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {}) {
  return norm(a, std::vector<int>{axis}, keepdims, s);
}

// {Q, R}
std::pair<array, array> qr(const array& a, StreamOrDevice s = {});
// {U, S, V^T}, or {S}
std::vector<array> svd(const array& a, bool compute_uv, StreamOrDevice s);
inline std::vector<array> svd(const array& a, StreamOrDevice s = {}) { return svd(a, true, s); }
array inv(const array& a, StreamOrDevice s = {});
// Of a triangular matrix.
array tri_inv(const array& a, bool upper = false, StreamOrDevice s = {});
// L with L L^T = a, or U with U^T U = a. One that is not positive definite is an error of the
// result.
array cholesky(const array& a, bool upper = false, StreamOrDevice s = {});
array pinv(const array& a, StreamOrDevice s = {});
// The inverse of the matrix whose Cholesky factor is `a`.
array cholesky_inv(const array& a, bool upper = false, StreamOrDevice s = {});
// {P, L, U} with a = L[P, :] U
std::vector<array> lu(const array& a, StreamOrDevice s = {});
// {LU, pivots}: both factors in one matrix; row i was exchanged with row pivots[i].
std::pair<array, array> lu_factor(const array& a, StreamOrDevice s = {});
array solve(const array& a, const array& b, StreamOrDevice s = {});
array solve_triangular(const array& a, const array& b, bool upper = false, StreamOrDevice s = {});
array cross(const array& a, const array& b, int axis = -1, StreamOrDevice s = {});
// {eigenvalues, eigenvectors in columns}, complex64
std::pair<array, array> eig(const array& a, StreamOrDevice s = {});
array eigvals(const array& a, StreamOrDevice s = {});
// Of symmetric matrices, of which only the lower ("L") or upper ("U") triangle is read.
array eigvalsh(const array& a, std::string UPLO = "L", StreamOrDevice s = {});
std::pair<array, array> eigh(const array& a, std::string UPLO = "L", StreamOrDevice s = {});
array det(const array& a, StreamOrDevice s = {});
// {sign, log(|det|)}
std::pair<array, array> slogdet(const array& a, StreamOrDevice s = {});

}  // namespace holdfast::linalg
