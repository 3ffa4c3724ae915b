// Linear algebra: a primitive for each factorisation, and what is composed from them.
#include <holdfast/linalg.h>

#include <cmath>
#include <functional>

#include "ops/dynamic_shape.h"
#include "ops/inner.h"
#include "ops/linalg.h"

namespace holdfast {

namespace {

constexpr const char* method_names[] = {"QRF",  "SVD", "SVD",   "Inverse",         "Cholesky",
                                        "LUF",  "LU",  "Solve", "SolveTriangular", "Eigh",
                                        "Eigh", "Eig", "Eig",   "SlogDet"};

}  // namespace

const char* Factorisation::name() const { return method_names[static_cast<size_t>(method_)]; }

void Factorisation::encode(Encoder& encoder, const std::vector<array>& inputs,
                           std::vector<array>& outputs) {
  kernels::backend_of(encoder).factorise(encoder, method_, upper_, inputs, outputs);
}

namespace {

void check_matrix(const char* op, const array& a, bool square, StreamOrDevice s,
                  bool takes_complex = false) {
  if (a.dtype() != float32 && a.dtype() != float64 && !(takes_complex && a.dtype() == complex64)) {
    throw std::invalid_argument(text("[", op, "] expected float32",
                                     takes_complex ? ", float64 or complex64" : " or float64",
                                     ", got ", a.dtype()));
  }
  if (a.ndim() < 2) {
    throw std::invalid_argument(
        text("[", op, "] expected two dimensions or more, got shape ", a.shape()));
  }
  if (square && a.shape(-1) != a.shape(-2)) {
    throw std::invalid_argument(text("[", op, "] expected square matrices, got shape ", a.shape()));
  }
  if (to_stream(s).device == Device::gpu) {
    throw std::invalid_argument(text("[", op, "] runs on CPU streams only, got a GPU stream"));
  }
}

Shape batch_with(const array& a, std::initializer_list<int> last) {
  Shape shape(a.shape().begin(), a.shape().end() - 2);
  for (int dim : last) shape.push_back(dim);
  return shape;
}

std::vector<array> factorise(Method method, bool upper, std::vector<Shape> shapes,
                             const std::vector<Dtype>& dtypes, std::vector<array> inputs,
                             StreamOrDevice s) {
  return detail::make_all_checked(std::move(shapes), dtypes,
                                  std::make_shared<Factorisation>(to_stream(s), method, upper),
                                  std::move(inputs));
}

bool checked_upper(const char* op, const std::string& part) {
  if (part != "L" && part != "U") {
    throw std::invalid_argument(text("[", op, "] expected \"L\" or \"U\", got \"", part, "\""));
  }
  return part == "U";
}

// a and b broadcast; b as a matrix.
array solve_with(const char* op, Method method, const array& a, const array& b, bool upper,
                 StreamOrDevice s) {
  check_matrix(op, a, true, s);
  bool is_vector = b.ndim() == 1;
  array right = is_vector ? expand_dims(b, 1, s) : b;
  if (right.ndim() < 2 || right.shape(-2) != a.shape(-1)) {
    throw std::invalid_argument(text("[", op, "] last dimension of a (", a.shape(-1),
                                     ") must match the rows of b: shapes ", a.shape(), " and ",
                                     b.shape()));
  }
  Dtype dtype = promote_types(a.dtype(), b.dtype());
  check_matrix(op, astype(right, dtype, s), false, s);
  Shape batch = broadcast_shapes_for(op, batch_with(a, {}), batch_with(right, {}));
  Shape left_shape = batch, right_shape = batch;
  for (int dim : {a.shape(-2), a.shape(-1)}) left_shape.push_back(dim);
  for (int dim : {right.shape(-2), right.shape(-1)}) right_shape.push_back(dim);
  array out = factorise(method, upper, {right_shape}, {dtype},
                        {broadcast_here(astype(a, dtype, s), left_shape, s),
                         broadcast_here(astype(right, dtype, s), right_shape, s)},
                        s)[0];
  return is_vector ? squeeze(out, -1, s) : out;
}

Dtype real_of(Dtype dtype) { return dtype == complex64 ? float32 : dtype; }

// Integers and half types are converted to float32.
array for_determinant(const char* op, const array& a, StreamOrDevice s) {
  bool is_real = a.dtype() != complex64;
  array wide = is_real && a.dtype() != float64 ? astype(a, float32, s) : a;
  check_matrix(op, wide, true, s);
  return wide;
}

array flipped(const array& a, StreamOrDevice s) { return swapaxes(a, -1, -2, s); }

}  // namespace

namespace linalg {

std::pair<array, array> qr(const array& a, StreamOrDevice s) {
  check_matrix("qr", a, false, s);
  int m = a.shape(-2), n = a.shape(-1), k = std::min(m, n);
  auto out = factorise(Method::qr, false, {batch_with(a, {m, k}), batch_with(a, {k, n})},
                       {a.dtype(), a.dtype()}, {a}, s);
  return {out[0], out[1]};
}

std::vector<array> svd(const array& a, bool compute_uv, StreamOrDevice s) {
  check_matrix("svd", a, false, s, true);
  int m = a.shape(-2), n = a.shape(-1), k = std::min(m, n);
  Dtype t = a.dtype(), real = real_of(t);
  if (!compute_uv) {
    return factorise(Method::singular_values, false, {batch_with(a, {k})}, {real}, {a}, s);
  }
  return factorise(Method::svd, false,
                   {batch_with(a, {m, m}), batch_with(a, {k}), batch_with(a, {n, n})}, {t, real, t},
                   {a}, s);
}

array inv(const array& a, StreamOrDevice s) {
  check_matrix("inv", a, true, s);
  return factorise(Method::inverse, false, {a.shape()}, {a.dtype()}, {a}, s)[0];
}

array tri_inv(const array& a, bool upper, StreamOrDevice s) {
  check_matrix("tri_inv", a, true, s);
  return solve_with("tri_inv", Method::solve_triangular, a, eye(a.shape(-1), a.dtype(), s), upper,
                    s);
}

array cholesky(const array& a, bool upper, StreamOrDevice s) {
  check_matrix("cholesky", a, true, s);
  return factorise(Method::cholesky, upper, {a.shape()}, {a.dtype()}, {a}, s)[0];
}

array cholesky_inv(const array& a, bool upper, StreamOrDevice s) {
  check_matrix("cholesky_inv", a, true, s);
  array inverse = tri_inv(a, upper, s);
  return upper ? matmul(inverse, flipped(inverse, s), s) : matmul(flipped(inverse, s), inverse, s);
}

array pinv(const array& a, StreamOrDevice s) {
  check_matrix("pinv", a, false, s);
  check_shape_known("pinv", a);
  int m = a.shape(-2), n = a.shape(-1), k = std::min(m, n);
  if (k == 0) return zeros(batch_with(a, {n, m}), a.dtype(), s);
  std::vector<array> parts = svd(a, true, s);
  auto leading = [&](const array& x, int rows, int columns) {
    Shape start(x.ndim(), 0), stop = x.shape();
    stop[x.ndim() - 2] = rows;
    stop[x.ndim() - 1] = columns;
    return slice(x, start, stop, s);
  };
  // Singular values that are only rounding count as zero.
  double relative = 10.0 * std::max(m, n) * (a.dtype() == float64 ? 2.2e-16 : 1.2e-7);
  array limit = multiply(max(parts[1], -1, true, s), array(relative, a.dtype()), s);
  array factors =
      where(greater(parts[1], limit, s), reciprocal(parts[1], s), array(0, a.dtype()), s);
  array v = flipped(leading(parts[2], k, n), s);
  return matmul(multiply(v, expand_dims(factors, -2, s), s), flipped(leading(parts[0], m, k), s),
                s);
}

std::pair<array, array> lu_factor(const array& a, StreamOrDevice s) {
  check_matrix("lu_factor", a, false, s);
  int k = std::min(a.shape(-2), a.shape(-1));
  auto out = factorise(Method::lu_factor, false, {a.shape(), batch_with(a, {k})},
                       {a.dtype(), uint32}, {a}, s);
  return {out[0], out[1]};
}

std::vector<array> lu(const array& a, StreamOrDevice s) {
  check_matrix("lu", a, false, s);
  int m = a.shape(-2), n = a.shape(-1), k = std::min(m, n);
  return factorise(Method::lu, false,
                   {batch_with(a, {m}), batch_with(a, {m, k}), batch_with(a, {k, n})},
                   {uint32, a.dtype(), a.dtype()}, {a}, s);
}

array solve(const array& a, const array& b, StreamOrDevice s) {
  return solve_with("solve", Method::solve, a, b, false, s);
}
array solve_triangular(const array& a, const array& b, bool upper, StreamOrDevice s) {
  return solve_with("solve_triangular", Method::solve_triangular, a, b, upper, s);
}

std::pair<array, array> eig(const array& a, StreamOrDevice s) {
  check_matrix("eig", a, true, s, true);
  auto out = factorise(Method::eig, false, {batch_with(a, {a.shape(-1)}), a.shape()},
                       {complex64, complex64}, {a}, s);
  return {out[0], out[1]};
}
array eigvals(const array& a, StreamOrDevice s) {
  check_matrix("eigvals", a, true, s, true);
  return factorise(Method::eigvals, false, {batch_with(a, {a.shape(-1)})}, {complex64}, {a}, s)[0];
}
array eigvalsh(const array& a, std::string UPLO, StreamOrDevice s) {
  check_matrix("eigvalsh", a, true, s, true);
  return factorise(Method::eigvalsh, checked_upper("eigvalsh", UPLO),
                   {batch_with(a, {a.shape(-1)})}, {real_of(a.dtype())}, {a}, s)[0];
}
std::pair<array, array> eigh(const array& a, std::string UPLO, StreamOrDevice s) {
  check_matrix("eigh", a, true, s, true);
  auto out =
      factorise(Method::eigh, checked_upper("eigh", UPLO),
                {batch_with(a, {a.shape(-1)}), a.shape()}, {real_of(a.dtype()), a.dtype()}, {a}, s);
  return {out[0], out[1]};
}

std::pair<array, array> slogdet(const array& given, StreamOrDevice s) {
  array a = for_determinant("slogdet", given, s);
  Dtype dtype = at_least_float(given.dtype());
  check_shape_known("slogdet", a);
  if (a.shape(-1) == 0) {
    return {ones(batch_with(a, {}), dtype, s), zeros(batch_with(a, {}), dtype, s)};
  }
  auto out = factorise(Method::slogdet, false, {batch_with(a, {}), batch_with(a, {})},
                       {a.dtype(), a.dtype()}, {a}, s);
  return {astype(out[0], dtype, s), astype(out[1], dtype, s)};
}
array det(const array& given, StreamOrDevice s) {
  array a = for_determinant("det", given, s);
  // The exponential of a large logarithm needs more digits than the result.
  auto [sign, logarithm] = slogdet(astype(a, float64, s), s);
  return astype(multiply(sign, exp(logarithm, s), s), at_least_float(given.dtype()), s);
}

// --- norms ---

namespace {

array vector_norm(const array& a, double ord, const std::vector<int>& axes, bool keepdims,
                  StreamOrDevice s) {
  Dtype dtype = at_least_float(a.dtype());
  if (is_half(dtype)) {
    return astype(vector_norm(astype(a, float32, s), ord, axes, keepdims, s), dtype, s);
  }
  array size = abs(astype(a, dtype, s), s);
  if (ord == 0) {
    array zero(0, size.dtype());
    return astype(sum(not_equal(size, zero, s), axes, keepdims, s), size.dtype(), s);
  }
  if (ord == 1) return sum(size, axes, keepdims, s);
  if (ord == 2) return sqrt(sum(square(size, s), axes, keepdims, s), s);
  if (std::isinf(ord)) return ord > 0 ? max(size, axes, keepdims, s) : min(size, axes, keepdims, s);
  array total = sum(power(size, array(ord, size.dtype()), s), axes, keepdims, s);
  return power(total, array(1 / ord, size.dtype()), s);
}

// The last two axes of the result of singular values are `axes` of a.
array spectral_norm(const array& a, const std::vector<int>& axes, bool keepdims,
                    const std::function<array(const array&)>& reduce, StreamOrDevice s) {
  int row = checked_axis("norm", axes[0], a.ndim()),
      column = checked_axis("norm", axes[1], a.ndim());
  std::vector<int> order;
  for (int axis = 0; axis < static_cast<int>(a.ndim()); ++axis) {
    if (axis != row && axis != column) order.push_back(axis);
  }
  order.push_back(row);
  order.push_back(column);
  array result = reduce(svd(transpose(a, order, s), false, s)[0]);
  return keepdims ? expand_dims(result, checked_axes("norm", axes, a.ndim()), s) : result;
}

array matrix_norm(const array& a, double ord, const std::vector<int>& axes, bool keepdims,
                  StreamOrDevice s) {
  array size = abs(astype(a, at_least_float(a.dtype()), s), s);
  bool largest = ord > 0;
  if (std::abs(ord) == 1 || std::isinf(ord)) {
    size_t summed = std::abs(ord) == 1 ? 0 : 1;
    array sums = sum(size, std::vector<int>{axes[summed]}, true, s);
    std::vector<int> other{axes[1 - summed]};
    array result = largest ? max(sums, other, true, s) : min(sums, other, true, s);
    return keepdims ? result : squeeze(result, axes, s);
  }
  if (std::abs(ord) == 2) {
    return spectral_norm(
        a, axes, keepdims,
        [&](const array& values) {
          return largest ? max(values, -1, false, s) : min(values, -1, false, s);
        },
        s);
  }
  throw std::invalid_argument(
      text("[norm] expected order 1, -1, 2, -2 or an infinity for matrices, got ", ord));
}

std::vector<int> checked_norm_axes(const array& a, const std::optional<std::vector<int>>& axis) {
  std::vector<int> axes = axis ? *axis : all_axes(a);
  checked_axes("norm", axes, a.ndim());
  return axes;
}

}  // namespace

array norm(const array& a, const std::optional<std::vector<int>>& axis, bool keepdims,
           StreamOrDevice s) {
  if (axis && axis->size() > 2) {
    throw std::invalid_argument(
        text("[norm] expected at most two axes, or none for all of them, ", "got ", *axis));
  }
  return vector_norm(a, 2, checked_norm_axes(a, axis), keepdims, s);
}

array norm(const array& a, const double ord, const std::optional<std::vector<int>>& axis,
           bool keepdims, StreamOrDevice s) {
  std::vector<int> axes = checked_norm_axes(a, axis);
  if (axes.size() == 1) return vector_norm(a, ord, axes, keepdims, s);
  if (axes.size() == 2) return matrix_norm(a, ord, axes, keepdims, s);
  throw std::invalid_argument(
      text("[norm] expected one or two axes with an order, got ", axes.size()));
}

array norm(const array& a, const std::string& ord, const std::optional<std::vector<int>>& axis,
           bool keepdims, StreamOrDevice s) {
  std::vector<int> axes = checked_norm_axes(a, axis);
  if (axes.size() != 2) {
    throw std::invalid_argument(
        text("[norm] expected two axes for order \"", ord, "\", got ", axes.size()));
  }
  if (ord == "fro" || ord == "f") return vector_norm(a, 2, axes, keepdims, s);
  if (ord == "nuc") {
    return spectral_norm(
        a, axes, keepdims, [&](const array& values) { return sum(values, -1, false, s); }, s);
  }
  throw std::invalid_argument(text("[norm] expected order \"fro\" or \"nuc\", got \"", ord, "\""));
}

array cross(const array& a, const array& b, int axis, StreamOrDevice s) {
  for (const array& x : {a, b}) check_shape_known("cross", x);
  int place_a = checked_axis("cross", axis, a.ndim()),
      place_b = checked_axis("cross", axis, b.ndim());
  auto is_vector = [](int size) { return size == 2 || size == 3; };
  if (!is_vector(a.shape(place_a)) || !is_vector(b.shape(place_b))) {
    throw std::invalid_argument(text("[cross] expected vectors of 2 or 3 elements, got shapes ",
                                     a.shape(), " and ", b.shape(), " along axis ", axis));
  }
  Dtype dtype = promote_types(a.dtype(), b.dtype());
  auto parts = [&](const array& x, int place) {
    std::vector<array> elements;
    for (int i = 0; i < x.shape(place); ++i) {
      elements.push_back(astype(take(x, i, place, s), dtype, s));
    }
    if (elements.size() == 2) elements.push_back(zeros_like(elements[0], s));
    return elements;
  };
  std::vector<array> x = parts(a, place_a), y = parts(b, place_b), out;
  for (size_t i = 0; i < 3; ++i) {
    size_t j = (i + 1) % 3, k = (i + 2) % 3;
    out.push_back(subtract(multiply(x[j], y[k], s), multiply(x[k], y[j], s), s));
  }
  return stack(out, axis < 0 ? axis : place_a, s);
}

}  // namespace linalg
}  // namespace holdfast
