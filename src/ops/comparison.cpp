// Comparisons of whole arrays.
#include "ops/inner.h"
#include "ops/support.h"

namespace holdfast {

array array_equal(const array& a, const array& b, bool equal_nan, StreamOrDevice s) {
  if (a.shape() != b.shape()) return array(false);
  Dtype dtype = promote_types(a.dtype(), b.dtype());
  array same = equal(a, b, s);
  if (equal_nan && issubdtype(dtype, inexact)) {
    same = logical_or(same, logical_and(isnan(a, s), isnan(b, s), s), s);
  }
  return all(same, false, s);
}

array array_equal(const array& a, const array& b, StreamOrDevice s) {
  return array_equal(a, b, false, s);
}

array isclose(const array& a, const array& b, double rtol, double atol, bool equal_nan,
              StreamOrDevice s) {
  Dtype dtype = computed_in(at_least_float(promote_types(a.dtype(), b.dtype())));
  array x = astype(a, dtype, s);
  array y = astype(b, dtype, s);
  array size = abs(y, s);
  array bound = add(array(atol, size.dtype()), multiply(array(rtol, size.dtype()), size, s), s);
  array near = less_equal(abs(subtract(x, y, s), s), bound, s);
  // An infinity is close to itself only; its distance and its bound say nothing.
  array finite = logical_and(isfinite(x, s), isfinite(y, s), s);
  array result = logical_or(logical_and(near, finite, s), equal(x, y, s), s);
  if (equal_nan) result = logical_or(result, logical_and(isnan(x, s), isnan(y, s), s), s);
  return result;
}

array allclose(const array& a, const array& b, double rtol, double atol, bool equal_nan,
               StreamOrDevice s) {
  return all(isclose(a, b, rtol, atol, equal_nan, s), false, s);
}

}  // namespace holdfast
