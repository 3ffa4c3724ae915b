// Reductions and scans.
#include <holdfast/ops.h>

#include "arguments.h"
#include "ops.h"

namespace holdfast::python {

namespace {

using Axes = std::vector<int>;

template <array (*some)(const array&, const Axes&, bool, StreamOrDevice),
          array (*whole)(const array&, bool, StreamOrDevice)>
PyObject* reduce(Arguments& a) {
  std::optional<Axes> axes = a.optional_integers(1);
  return give(axes ? some(a.array_at(0), *axes, a.truth(2), a.stream(3))
                   : whole(a.array_at(0), a.truth(2), a.stream(3)));
}

// `correction` is another name of ddof.
template <array (*some)(const array&, const Axes&, bool, int, StreamOrDevice),
          array (*whole)(const array&, bool, int, StreamOrDevice)>
PyObject* reduce_with_ddof(Arguments& a) {
  std::optional<Axes> axes = a.optional_integers(1);
  int ddof = a.is_none(4) ? a.integer(3) : a.integer(4);
  return give(axes ? some(a.array_at(0), *axes, a.truth(2), ddof, a.stream(5))
                   : whole(a.array_at(0), a.truth(2), ddof, a.stream(5)));
}

template <array (*one)(const array&, int, bool, StreamOrDevice),
          array (*whole)(const array&, bool, StreamOrDevice)>
PyObject* reduce_one(Arguments& a) {
  std::optional<int> axis = a.optional_integer(1);
  return give(axis ? one(a.array_at(0), *axis, a.truth(2), a.stream(3))
                   : whole(a.array_at(0), a.truth(2), a.stream(3)));
}

template <array (*one)(const array&, int, bool, bool, StreamOrDevice),
          array (*whole)(const array&, bool, bool, StreamOrDevice)>
PyObject* scan(Arguments& a) {
  std::optional<int> axis = a.optional_integer(1);
  return give(axis ? one(a.array_at(0), *axis, a.truth(2), a.truth(3), a.stream(4))
                   : whole(a.array_at(0), a.truth(2), a.truth(3), a.stream(4)));
}
template <array (*one)(const array&, int, bool, bool, std::optional<Dtype>, StreamOrDevice),
          array (*whole)(const array&, bool, bool, std::optional<Dtype>, StreamOrDevice)>
PyObject* scan_with_dtype(Arguments& a) {
  std::optional<int> axis = a.optional_integer(1);
  return give(
      axis ? one(a.array_at(0), *axis, a.truth(2), a.truth(3), a.optional_dtype(4), a.stream(5))
           : whole(a.array_at(0), a.truth(2), a.truth(3), a.optional_dtype(4), a.stream(5)));
}

#define MATRIX "mx.array([[1.0, 2.0], [3.0, 5.0]])"
#define EXAMPLES(name)                                                            \
  "mx." name "(" MATRIX ")\nmx." name "(" MATRIX ", axis=0)\nmx." name "(" MATRIX \
  ", (0, 1), keepdims=True)"
#define REDUCTION(function, summary)                                                             \
  {#function, "(a, /, axis=None, keepdims=False, *, stream=None)", summary, EXAMPLES(#function), \
   reduce<&holdfast::function, &holdfast::function>}
#define SCAN_SIGNATURE "(a, /, axis=None, *, reverse=False, inclusive=True, stream=None)"
#define SCAN(name, function, summary)                     \
  {name, SCAN_SIGNATURE, summary,                         \
   "mx." name "(" MATRIX ", axis=0)\nmx." name "(" MATRIX \
   ")\n"                                                  \
   "mx." name "(" MATRIX ", axis=1, reverse=True)",       \
   scan<&holdfast::function, &holdfast::function>}
#define SCAN_WITH_DTYPE(name, function, summary)                                                  \
  {name, "(a, /, axis=None, *, reverse=False, inclusive=True, dtype=None, stream=None)", summary, \
   "mx." name "(" MATRIX ", axis=0)\nmx." name "(" MATRIX                                         \
   ")\n"                                                                                          \
   "mx." name "(" MATRIX ", axis=1, inclusive=False)",                                            \
   scan_with_dtype<&holdfast::function, &holdfast::function>}

constexpr Row rows[] = {
    REDUCTION(all, "Do all elements hold?"),
    REDUCTION(any, "Does one element hold?"),
    REDUCTION(sum, "The sum."),
    REDUCTION(prod, "The product."),
    REDUCTION(min, "The smallest element; NaN if one is there."),
    REDUCTION(max, "The largest element; NaN if one is there."),
    REDUCTION(mean, "The mean."),
    REDUCTION(median, "The median."),
    REDUCTION(logsumexp, "log(sum(exp(a))), without overflow."),
    {"var", "(a, /, axis=None, keepdims=False, ddof=0, *, correction=None, stream=None)",
     "The variance; the sum of squares is divided by N - ddof.",
     EXAMPLES("var") "\nmx.var(" MATRIX ", ddof=1)\nmx.var(" MATRIX ", correction=1)",
     reduce_with_ddof<&var, &var>},
    {"std", "(a, /, axis=None, keepdims=False, ddof=0, *, correction=None, stream=None)",
     "The standard deviation; the sum of squares is divided by N - ddof.",
     EXAMPLES("std") "\nmx.std(" MATRIX ", ddof=1)",
     reduce_with_ddof<&holdfast::std, &holdfast::std>},
    {"minmax", "(a, /, axis=None, keepdims=False, *, stream=None)",
     "The smallest and the largest element.", "mx.minmax(" MATRIX ", axis=0)",
     [](Arguments& a) {
       array x = a.array_at(0);
       std::optional<Axes> axes = a.optional_integers(1);
       bool keep = a.truth(2);
       if (!axes)
         return give_tuple(std::pair(min(x, keep, a.stream(3)), max(x, keep, a.stream(3))));
       return give_tuple(
           std::pair(min(x, *axes, keep, a.stream(3)), max(x, *axes, keep, a.stream(3))));
     }},
    {"count_nonzero", "(a, /, axis=None, *, keepdims=False, stream=None)",
     "How many elements are not zero.",
     "mx.count_nonzero(mx.array([[1, 0], [3, 4]]))\n"
     "mx.count_nonzero(mx.array([[1, 0], [3, 4]]), axis=1)",
     [](Arguments& a) {
       std::optional<Axes> axes = a.optional_integers(1);
       return give(axes ? count_nonzero(a.array_at(0), *axes, a.truth(2), a.stream(3))
                        : count_nonzero(a.array_at(0), a.truth(2), a.stream(3)));
     }},
    {"argmin", "(a, /, axis=None, keepdims=False, *, stream=None)",
     "The index of the first smallest element.",
     "mx.argmin(" MATRIX ")\nmx.argmin(" MATRIX ", axis=1)", reduce_one<&argmin, &argmin>},
    {"argmax", "(a, /, axis=None, keepdims=False, *, stream=None)",
     "The index of the first largest element.",
     "mx.argmax(" MATRIX ")\nmx.argmax(" MATRIX ", 1, True)", reduce_one<&argmax, &argmax>},
    {"softmax", "(a, /, axis=None, *, precise=False, stream=None)",
     "exp(a) / sum(exp(a)), without overflow.",
     "mx.softmax(" MATRIX ", axis=-1)\nmx.softmax(" MATRIX ")",
     [](Arguments& a) {
       std::optional<Axes> axes = a.optional_integers(1);
       return give(axes ? softmax(a.array_at(0), *axes, a.truth(2), a.stream(3))
                        : softmax(a.array_at(0), a.truth(2), a.stream(3)));
     }},
    {"vecdot", "(a, b, /, axis=-1, *, stream=None)", "The sum of conjugate(a) * b along an axis.",
     "mx.vecdot(" MATRIX ", mx.array([[1.0, 2.0], [0.0, 4.0]]))",
     [](Arguments& a) {
       auto [x, y] = a.operands(0, 1);
       return give(vecdot(x, y, a.integer(2), a.stream(3)));
     }},
    SCAN_WITH_DTYPE("cumsum", cumsum, "The sums of the elements up to each one."),
    SCAN_WITH_DTYPE("cumprod", cumprod, "The products of the elements up to each one."),
    SCAN_WITH_DTYPE("cumulative_sum", cumsum, "The sums of the elements up to each one."),
    SCAN_WITH_DTYPE("cumulative_prod", cumprod, "The products of the elements up to each one."),
    SCAN("cummax", cummax, "The largest of the elements up to each one."),
    SCAN("cummin", cummin, "The smallest of the elements up to each one."),
    SCAN("logcumsumexp", logcumsumexp, "log(cumsum(exp(a))), without overflow."),
    {"diff", "(a, /, n=1, axis=-1, *, stream=None)", "The n-th differences of neighbours.",
     "mx.diff(mx.array([1, 4, 9, 16]))\nmx.diff(mx.array([1, 4, 9, 16]), 2)",
     [](Arguments& a) {
       return give(diff(a.array_at(0), a.integer(1), a.integer(2), a.stream(3)));
     }},
};
#undef MATRIX
#undef EXAMPLES
#undef REDUCTION
#undef SCAN_SIGNATURE
#undef SCAN
#undef SCAN_WITH_DTYPE

}  // namespace

void add_reductions(PyObject* module) { add_rows<rows>(module); }

}  // namespace holdfast::python
