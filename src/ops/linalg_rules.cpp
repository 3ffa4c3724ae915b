// Derivatives of factorisations.
#include <holdfast/linalg.h>

#include <algorithm>

#include "ops/dynamic_shape.h"
#include "ops/linalg.h"

namespace holdfast {

namespace {

// Formulas over stacks of matrices.
struct Matrices {
  Stream s;

  array flipped(const array& a) const { return swapaxes(a, -1, -2, s); }
  array times(const array& a, const array& b) const { return matmul(a, b, s); }
  array lower(const array& a, int k = 0) const { return tril(a, k, s); }
  array symmetric(const array& a) const {
    return multiply(add(a, flipped(a), s), array(0.5, a.dtype()), s);
  }
  // The columns of a, each multiplied by a factor.
  array scaled(const array& a, const array& factors) const {
    return multiply(a, expand_dims(factors, -2, s), s);
  }
  array leading(const array& a, int rows, int columns) const {
    Shape stop = a.shape();
    stop[a.ndim() - 2] = rows;
    stop[a.ndim() - 1] = columns;
    check_shape_known("slice", a);
    return slice(a, Shape(a.ndim(), 0), stop, s);
  }
  // 1 / (v[j] - v[i]), and 0 on the diagonal.
  array inverse_differences(const array& v) const {
    array unit = eye(v.shape(-1), v.dtype(), s);
    array distance = subtract(expand_dims(v, -2, s), expand_dims(v, -1, s), s);
    return subtract(reciprocal(add(distance, unit, s), s), unit, s);
  }

  array cholesky(const array& factor, const array& cotangent) const {
    // The lower half of what the factor sees, its diagonal by half, between inverses of the factor.
    array inner = times(flipped(factor), cotangent);
    array unit = eye(inner.shape(-1), inner.dtype(), s);
    array half =
        subtract(lower(inner), multiply(inner, multiply(unit, array(0.5, inner.dtype()), s), s), s);
    array inverse = linalg::tri_inv(factor, false, s);
    return symmetric(times(times(flipped(inverse), half), inverse));
  }

  // Q and R of a matrix with at least as many rows as columns.
  array qr_tall(const array& q, const array& r, const array& of_q, const array& of_r) const {
    array inner = subtract(times(r, flipped(of_r)), times(flipped(of_q), q), s);
    array below = lower(inner, -1);
    array diagonal = multiply(inner, eye(inner.shape(-1), inner.dtype(), s), s);
    array mirrored = add(add(below, flipped(below), s), diagonal, s);
    array left = add(of_q, times(q, mirrored), s);
    return flipped(linalg::solve_triangular(r, flipped(left), true, s));
  }
  array qr(const array& a, const array& q, const array& r, const array& of_q,
           const array& of_r) const {
    int rows = a.shape(-2), columns = a.shape(-1);
    if (rows >= columns) return qr_tall(q, r, of_q, of_r);
    // The first columns are factorised; the others are Q times what R has behind them.
    check_shape_known("qr", a);
    auto cut = [&](const array& x) { return split(x, Shape{rows}, -1, s); };
    std::vector<array> parts = cut(a), of_parts = cut(of_r);
    array of_factor = add(of_q, times(parts[1], flipped(of_parts[1])), s);
    return concatenate({qr_tall(q, cut(r)[0], of_factor, of_parts[0]), times(q, of_parts[1])}, -1,
                       s);
  }

  array eigh(const array& vectors, const array& values, const array& of_values,
             const std::optional<array>& of_vectors) const {
    array inner =
        multiply(eye(values.shape(-1), values.dtype(), s), expand_dims(of_values, -2, s), s);
    if (of_vectors) {
      array turn = times(flipped(vectors), *of_vectors);
      inner = add(inner, multiply(inverse_differences(values), turn, s), s);
    }
    return symmetric(times(times(vectors, inner), flipped(vectors)));
  }

  // U and V have columns beyond the singular values where the matrix is not square; those are not
  // determined by it, and their cotangents do not count.
  array svd(const array& u, const array& values, const array& vt, const array& of_values,
            const std::optional<array>& of_u, const std::optional<array>& of_vt) const {
    int m = u.shape(-2), n = vt.shape(-1), k = values.shape(-1);
    array left = leading(u, m, k), right = flipped(leading(vt, k, n));
    array inner = multiply(eye(k, values.dtype(), s), expand_dims(of_values, -2, s), s);
    array result = times(times(left, inner), flipped(right));
    if (!of_u) return result;
    array du = leading(*of_u, m, k), dv = flipped(leading(*of_vt, k, n));
    array gaps = inverse_differences(square(values, s));
    array inverse = reciprocal(values, s);
    auto antisymmetric = [&](const array& a) {
      return multiply(gaps, subtract(a, flipped(a), s), s);
    };
    array turn_u = scaled(antisymmetric(times(flipped(left), du)), values);
    array turn_v = flipped(scaled(flipped(antisymmetric(times(flipped(right), dv))), values));
    result = add(result, times(times(left, add(turn_u, turn_v, s)), flipped(right)), s);
    auto outside = [&](const array& basis, const array& a) {
      return subtract(a, times(basis, times(flipped(basis), a)), s);
    };
    if (m > k) {
      result = add(result, times(scaled(outside(left, du), inverse), flipped(right)), s);
    }
    if (n > k) {
      result = add(result, times(left, flipped(scaled(outside(right, dv), inverse))), s);
    }
    return result;
  }

  // The rows stand in another order in the factors: `places` says where each went.
  array lu(const array& l, const array& u, const array& places, const array& of_l,
           const array& of_u) const {
    array below = lower(times(flipped(l), lower(of_l, -1)), -1);
    array inner = add(below, triu(times(triu(of_u, 0, s), flipped(u)), 0, s), s);
    array left = linalg::solve_triangular(flipped(l), inner, true, s);
    array result = flipped(linalg::solve_triangular(u, flipped(left), true, s));
    return take_along_axis(result, expand_dims(astype(places, int32, s), -1, s), -2, s);
  }
};

}  // namespace

array Factorisation::of_matrix(const array& a, const std::vector<array>& cotangents,
                               const std::vector<array>& outputs) {
  Matrices matrices{stream()};
  Stream s = stream();
  const array& cotangent = cotangents[0];
  auto values_and = [&](const array& values) { return expand_dims(values, {-1, -2}, s); };
  switch (method_) {
    case Method::inverse: {
      array turned = matrices.flipped(outputs[0]);
      return negative(matrices.times(matrices.times(turned, cotangent), turned), s);
    }
    case Method::cholesky:
      return upper_ ? matrices.cholesky(matrices.flipped(outputs[0]), matrices.flipped(cotangent))
                    : matrices.cholesky(outputs[0], cotangent);
    case Method::slogdet:
      return multiply(values_and(cotangents[1]), matrices.flipped(linalg::inv(a, s)), s);
    case Method::qr:
      return matrices.qr(a, outputs[0], outputs[1], cotangents[0], cotangents[1]);
    case Method::eigh:
      return matrices.eigh(outputs[1], outputs[0], cotangents[0], cotangents[1]);
    case Method::eigvalsh: {
      auto [values, vectors] = linalg::eigh(a, upper_ ? "U" : "L", s);
      return matrices.eigh(vectors, values, cotangent, std::nullopt);
    }
    case Method::svd:
      return matrices.svd(outputs[0], outputs[1], outputs[2], cotangents[1], cotangents[0],
                          cotangents[2]);
    case Method::singular_values: {
      std::vector<array> parts = linalg::svd(a, true, s);
      return matrices.svd(parts[0], parts[1], parts[2], cotangent, std::nullopt, std::nullopt);
    }
    case Method::lu:
    case Method::lu_factor: {
      if (a.shape(-1) != a.shape(-2)) {
        throw std::invalid_argument(text("[", name(), "] only square matrices have a derivative, ",
                                         "got shape ", a.shape()));
      }
      std::vector<array> parts = linalg::lu(a, s);
      return method_ == Method::lu
                 ? matrices.lu(parts[1], parts[2], parts[0], cotangents[1], cotangents[2])
                 : matrices.lu(parts[1], parts[2], parts[0], cotangent, cotangent);
    }
    default:
      Recorded::vjp_rule({a}, cotangents, {0}, outputs);  // throws
      return a;
  }
}

std::vector<array> Factorisation::vjp_rule(const std::vector<array>& primals,
                                           const std::vector<array>& cotangents,
                                           const std::vector<int>& argnums,
                                           const std::vector<array>& outputs) {
  const array& a = primals[0];
  if (a.size() == 0 || outputs[0].size() == 0) {
    std::vector<array> result;
    for (int argnum : argnums) {
      result.push_back(zeros_like(primals[static_cast<size_t>(argnum)], stream()));
    }
    return result;
  }
  if (primals.size() == 1) return {of_matrix(a, cotangents, outputs)};
  // solve and solve_triangular.
  Matrices matrices{stream()};
  bool is_triangular = method_ == Method::solve_triangular;
  array turned = matrices.flipped(a);
  array of_right = is_triangular
                       ? linalg::solve_triangular(turned, cotangents[0], !upper_, stream())
                       : linalg::solve(turned, cotangents[0], stream());
  std::vector<array> result;
  for (int argnum : argnums) {
    if (argnum == 1) {
      result.push_back(of_right);
      continue;
    }
    array of_left = negative(matrices.times(of_right, matrices.flipped(outputs[0])), stream());
    if (is_triangular) of_left = upper_ ? triu(of_left, 0, stream()) : tril(of_left, 0, stream());
    result.push_back(of_left);
  }
  return result;
}

}  // namespace holdfast
