// The ops: functions that add a node to the graph. Shapes, dtypes and axes are checked here, when
// the node is built; nothing is computed before evaluation.
//
// Every op takes the stream (or device) to run on as its last argument; none means the thread's
// default. Axes may be negative: they count from the end. Operands of different dtypes are promoted
// (promote_types), operands of different shapes broadcast.
//
// Errors: std::invalid_argument (shape, dtype, value), std::out_of_range (axis),
// std::overflow_error (a dimension or a size that does not fit), each as "[op] what was expected,
// got what came".
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/stream.h>

namespace holdfast {

// --- element-wise: one function per row of the table ---

// Operands are taken by value: a temporary hands its node over, so that the intermediate results of
// `eval(exp(a * b + a))` are held by nobody else and never written to memory.

#define UNARY(function, Primitive, rule, in_types, description) \
  array function(array a, StreamOrDevice s = {});
#define BINARY(function, Primitive, rule, in_types, description) \
  array function(array a, array b, StreamOrDevice s = {});
#define TERNARY(function, Primitive, rule, in_types, description) \
  array function(array condition, array x, array y, StreamOrDevice s = {});
#include <holdfast/elementwise.def>

// The array itself.
array positive(const array& a, StreamOrDevice s = {});
array reciprocal(const array& a, StreamOrDevice s = {});
array degrees(const array& a, StreamOrDevice s = {});
array radians(const array& a, StreamOrDevice s = {});
// To `decimals` digits behind the point (before it when negative), halves to even.
array round(const array& a, int decimals, StreamOrDevice s = {});
array round(const array& a, StreamOrDevice s = {});
// Replaces NaN and infinities; infinities by default with the limits of the dtype.
array nan_to_num(const array& a, float nan = 0.0f,
                 const std::optional<float>& posinf = std::nullopt,
                 const std::optional<float>& neginf = std::nullopt, StreamOrDevice s = {});
// At least one of the limits must be given.
array clip(const array& a, const std::optional<array>& a_min = std::nullopt,
           const std::optional<array>& a_max = std::nullopt, StreamOrDevice s = {});
// {floor_divide(a, b), remainder(a, b)}, in one pass.
std::vector<array> divmod(const array& a, const array& b, StreamOrDevice s = {});

// --- creation ---

// start, start + step, … below (above, for a negative step) stop. Each value is computed in double
// and rounded once.
array arange(double start, double stop, double step, Dtype dtype, StreamOrDevice s = {});
array arange(double start, double stop, double step, StreamOrDevice s = {});
array arange(double start, double stop, Dtype dtype, StreamOrDevice s = {});
array arange(double start, double stop, StreamOrDevice s = {});
array arange(double stop, Dtype dtype, StreamOrDevice s = {});
array arange(double stop, StreamOrDevice s = {});
array arange(int start, int stop, int step, StreamOrDevice s = {});
array arange(int start, int stop, StreamOrDevice s = {});
array arange(int stop, StreamOrDevice s = {});

array linspace(double start, double stop, int num, bool endpoint, Dtype dtype = float32,
               StreamOrDevice s = {});
array linspace(double start, double stop, int num = 50, Dtype dtype = float32,
               StreamOrDevice s = {});

// `vals` broadcast to `shape`, in memory of its own.
array full(Shape shape, array vals, Dtype dtype, StreamOrDevice s = {});
array full(Shape shape, array vals, StreamOrDevice s = {});
template <typename T>
  requires std::is_convertible_v<T, complex64_t>
array full(Shape shape, T val, Dtype dtype, StreamOrDevice s = {}) {
  return full(std::move(shape), array(val, dtype), dtype, s);
}
template <typename T>
  requires std::is_convertible_v<T, complex64_t>
array full(Shape shape, T val, StreamOrDevice s = {}) {
  return full(std::move(shape), array(val), s);
}
array full_like(const array& a, array vals, Dtype dtype, StreamOrDevice s = {});
array full_like(const array& a, array vals, StreamOrDevice s = {});
template <typename T>
  requires std::is_convertible_v<T, complex64_t>
array full_like(const array& a, T val, Dtype dtype, StreamOrDevice s = {}) {
  return full(a.shape(), array(val, dtype), dtype, s);
}
template <typename T>
  requires std::is_convertible_v<T, complex64_t>
array full_like(const array& a, T val, StreamOrDevice s = {}) {
  return full(a.shape(), array(val, a.dtype()), a.dtype(), s);
}
array zeros(const Shape& shape, Dtype dtype, StreamOrDevice s = {});
array zeros(const Shape& shape, StreamOrDevice s = {});
array zeros_like(const array& a, StreamOrDevice s = {});
array zeros_like(const array& a, Dtype dtype, StreamOrDevice s = {});
array ones(const Shape& shape, Dtype dtype, StreamOrDevice s = {});
array ones(const Shape& shape, StreamOrDevice s = {});
array ones_like(const array& a, StreamOrDevice s = {});
array ones_like(const array& a, Dtype dtype, StreamOrDevice s = {});

// n rows, m columns, ones on the k-th diagonal.
array eye(int n, int m, int k, Dtype dtype, StreamOrDevice s = {});
array eye(int n, Dtype dtype, StreamOrDevice s = {});
array eye(int n, int m, StreamOrDevice s = {});
array eye(int n, int m, int k, StreamOrDevice s = {});
array eye(int n, StreamOrDevice s = {});
array identity(int n, Dtype dtype, StreamOrDevice s = {});
array identity(int n, StreamOrDevice s = {});
// Ones on and below the k-th diagonal.
array tri(int n, int m, int k, Dtype type, StreamOrDevice s = {});
array tri(int n, Dtype type, StreamOrDevice s = {});
array tril(array x, int k = 0, StreamOrDevice s = {});
array triu(array x, int k = 0, StreamOrDevice s = {});
std::vector<array> meshgrid(const std::vector<array>& arrays, bool sparse = false,
                            const std::string& indexing = "xy", StreamOrDevice s = {});

// Windows of M samples; none for M < 1.
array hanning(int M, StreamOrDevice s = {});
array hamming(int M, StreamOrDevice s = {});
array bartlett(int M, StreamOrDevice s = {});
array blackman(int M, StreamOrDevice s = {});

// --- type, copy, view ---

array astype(array a, Dtype dtype, StreamOrDevice s = {});
// In memory of its own.
array copy(array a, StreamOrDevice s = {});
// The same bytes as another dtype; the last axis grows or shrinks with the item size.
array view(const array& a, const Dtype& dtype, StreamOrDevice s = {});
// Row-contiguous (or column-contiguous, where allowed); copies only if it must.
array contiguous(const array& a, bool allow_col_major = false, StreamOrDevice s = {});
// A view into the row-major elements of `a`; it must stay inside them.
array as_strided(array a, Shape shape, Strides strides, size_t offset, StreamOrDevice s = {});
array stop_gradient(const array& a, StreamOrDevice s = {});
// `inputs`, available only when `dependencies` are.
std::vector<array> depends(const std::vector<array>& inputs,
                           const std::vector<array>& dependencies);
// The number of elements along `axes`, or its inverse, as a 0-d array.
array number_of_elements(const array& a, std::vector<int> axes, bool inverted, Dtype dtype = int32,
                         StreamOrDevice s = {});

// --- shape ---

// One dimension may be -1: it is inferred.
array reshape(const array& a, Shape shape, StreamOrDevice s = {});
array flatten(const array& a, int start_axis, int end_axis = -1, StreamOrDevice s = {});
array flatten(const array& a, StreamOrDevice s = {});
array unflatten(const array& a, int axis, Shape shape, StreamOrDevice s = {});
array squeeze(const array& a, const std::vector<int>& axes, StreamOrDevice s = {});
array squeeze(const array& a, int axis, StreamOrDevice s = {});
array squeeze(const array& a, StreamOrDevice s = {});
array expand_dims(const array& a, const std::vector<int>& axes, StreamOrDevice s = {});
array expand_dims(const array& a, int axis, StreamOrDevice s = {});
array transpose(const array& a, std::vector<int> axes, StreamOrDevice s = {});
inline array transpose(const array& a, std::initializer_list<int> axes, StreamOrDevice s = {}) {
  return transpose(a, std::vector<int>(axes), s);
}
array transpose(const array& a, StreamOrDevice s = {});
array swapaxes(const array& a, int axis1, int axis2, StreamOrDevice s = {});
array moveaxis(const array& a, int source, int destination, StreamOrDevice s = {});
array broadcast_to(const array& a, const Shape& shape, StreamOrDevice s = {});
std::vector<array> broadcast_arrays(const std::vector<array>& inputs, StreamOrDevice s = {});
array atleast_1d(const array& a, StreamOrDevice s = {});
std::vector<array> atleast_1d(const std::vector<array>& a, StreamOrDevice s = {});
array atleast_2d(const array& a, StreamOrDevice s = {});
std::vector<array> atleast_2d(const std::vector<array>& a, StreamOrDevice s = {});
array atleast_3d(const array& a, StreamOrDevice s = {});
std::vector<array> atleast_3d(const std::vector<array>& a, StreamOrDevice s = {});

// Views, backwards along some axes.
array flip(const array& a, const std::vector<int>& axes, StreamOrDevice s = {});
array flip(const array& a, int axis, StreamOrDevice s = {});
array flip(const array& a, StreamOrDevice s = {});
// Elements move up by `shift`, those beyond the end to the front; without axes: of the flattened
// array, in its shape. Several shifts along one axis add up.
array roll(const array& a, int shift, StreamOrDevice s = {});
array roll(const array& a, const Shape& shift, StreamOrDevice s = {});
array roll(const array& a, int shift, int axis, StreamOrDevice s = {});
array roll(const array& a, int shift, const std::vector<int>& axes, StreamOrDevice s = {});
array roll(const array& a, const Shape& shift, int axis, StreamOrDevice s = {});
array roll(const array& a, const Shape& shift, const std::vector<int>& axes, StreamOrDevice s = {});
// Elements before and behind each axis: one value ("constant"), the outermost element ("edge"), or
// the elements mirrored, without ("reflect") or with ("symmetric") the outermost one.
array pad(const array& a, const std::vector<int>& axes, const Shape& low_pad_size,
          const Shape& high_pad_size, const array& pad_value = array(0),
          const std::string& mode = "constant", StreamOrDevice s = {});
array pad(const array& a, const std::vector<std::pair<int, int>>& pad_width,
          const array& pad_value = array(0), const std::string& mode = "constant",
          StreamOrDevice s = {});
array pad(const array& a, const std::pair<int, int>& pad_width, const array& pad_value = array(0),
          const std::string& mode = "constant", StreamOrDevice s = {});
array pad(const array& a, int pad_width, const array& pad_value = array(0),
          const std::string& mode = "constant", StreamOrDevice s = {});
// The whole array again and again along each axis; each element several times.
array tile(const array& arr, std::vector<int> reps, StreamOrDevice s = {});
array repeat(const array& arr, int repeats, int axis, StreamOrDevice s = {});
array repeat(const array& arr, int repeats, StreamOrDevice s = {});
// A view: the diagonal of two axes as the last one, `offset` above the main one.
array diagonal(const array& a, int offset = 0, int axis1 = 0, int axis2 = 1, StreamOrDevice s = {});
// The k-th diagonal of a matrix, or the matrix with a 1-d array on it.
array diag(const array& a, int k = 0, StreamOrDevice s = {});
// The sum of a diagonal, in `dtype`; as for sum, small integers give int32 or uint32.
array trace(const array& a, int offset, int axis1, int axis2, Dtype dtype, StreamOrDevice s = {});
array trace(const array& a, int offset, int axis1, int axis2, StreamOrDevice s = {});
array trace(const array& a, StreamOrDevice s = {});

// --- slice, split, join, gather ---

// start:stop:stride per axis, as in Python; one entry an axis.
array slice(const array& a, Shape start, Shape stop, Shape strides, StreamOrDevice s = {});
inline array slice(const array& a, std::initializer_list<int> start, Shape stop, Shape strides,
                   StreamOrDevice s = {}) {
  return slice(a, Shape(start), std::move(stop), std::move(strides), s);
}
array slice(const array& a, Shape start, Shape stop, StreamOrDevice s = {});
// `slice_size` elements from `start` (its values are read when the op runs; a slice that leaves the
// array is an error of the result). `axes` says which axes `start` names; the others start at 0.
array slice(const array& a, const array& start, std::vector<int> axes, Shape slice_size,
            StreamOrDevice s = {});

std::vector<array> split(const array& a, int num_splits, int axis, StreamOrDevice s = {});
std::vector<array> split(const array& a, int num_splits, StreamOrDevice s = {});
std::vector<array> split(const array& a, const Shape& indices, int axis, StreamOrDevice s = {});
std::vector<array> split(const array& a, const Shape& indices, StreamOrDevice s = {});
std::vector<array> unstack(const array& a, int axis, StreamOrDevice s = {});
std::vector<array> unstack(const array& a, StreamOrDevice s = {});
array concatenate(std::vector<array> arrays, int axis, StreamOrDevice s = {});
array concatenate(std::vector<array> arrays, StreamOrDevice s = {});
array stack(const std::vector<array>& arrays, int axis, StreamOrDevice s = {});
array stack(const std::vector<array>& arrays, StreamOrDevice s = {});

// Indices count from the end when negative; one out of range is an error of the result.
array take(const array& a, const array& indices, int axis, StreamOrDevice s = {});
array take(const array& a, int index, int axis, StreamOrDevice s = {});
array take(const array& a, const array& indices, StreamOrDevice s = {});
array take(const array& a, int index, StreamOrDevice s = {});
array take_along_axis(const array& a, const array& indices, int axis, StreamOrDevice s = {});

// A slice at each place that the index arrays name: indices[k] counts along axes[k], and all
// broadcast to one shape. The result has that shape, followed by `slice_sizes`. Negative indices
// count from the end; a slice that leaves the array is an error of the result.
array gather(const array& a, const std::vector<array>& indices, const std::vector<int>& axes,
             const Shape& slice_sizes, StreamOrDevice s = {});
array gather(const array& a, const array& indices, int axis, const Shape& slice_sizes,
             StreamOrDevice s = {});

// `a` with the slices at such places replaced by, or combined with, the updates (the indices'
// shape, followed by that of a slice). Where places repeat, updates take effect in order; each is
// rounded to a's dtype.
#define HOLDFAST_SCATTER(name)                                                        \
  array name(const array& a, const std::vector<array>& indices, const array& updates, \
             const std::vector<int>& axes, StreamOrDevice s = {});                    \
  array name(const array& a, const array& indices, const array& updates, int axis,    \
             StreamOrDevice s = {});
HOLDFAST_SCATTER(scatter)
HOLDFAST_SCATTER(scatter_add)
HOLDFAST_SCATTER(scatter_prod)
HOLDFAST_SCATTER(scatter_max)
HOLDFAST_SCATTER(scatter_min)
#undef HOLDFAST_SCATTER
// The inverse of take_along_axis: values go (or are added) to the places that indices name.
array put_along_axis(const array& a, const array& indices, const array& values, int axis,
                     StreamOrDevice s = {});
array scatter_add_axis(const array& a, const array& indices, const array& values, int axis,
                       StreamOrDevice s = {});
// Where the mask (over the first axes) holds, the elements of `src` one after the other.
array masked_scatter(const array& a, const array& mask, const array& src, StreamOrDevice s = {});

// `src` with start:stop:stride replaced by, or combined with, the update, which broadcasts.
#define HOLDFAST_SLICE_UPDATE(name)                                                         \
  array name(const array& src, const array& update, Shape start, Shape stop, Shape strides, \
             StreamOrDevice s = {});                                                        \
  array name(const array& src, const array& update, Shape start, Shape stop, StreamOrDevice s = {});
HOLDFAST_SLICE_UPDATE(slice_update)
HOLDFAST_SLICE_UPDATE(slice_update_add)
HOLDFAST_SLICE_UPDATE(slice_update_prod)
HOLDFAST_SLICE_UPDATE(slice_update_max)
HOLDFAST_SLICE_UPDATE(slice_update_min)
#undef HOLDFAST_SLICE_UPDATE
inline array slice_update(const array& src, const array& update, std::initializer_list<int> start,
                          Shape stop, StreamOrDevice s = {}) {
  return slice_update(src, update, Shape(start), std::move(stop), s);
}
// The start is read when the op runs, as in slice.
array slice_update(const array& src, const array& update, const array& start, std::vector<int> axes,
                   StreamOrDevice s = {});

// --- comparison of whole arrays ---

array array_equal(const array& a, const array& b, bool equal_nan, StreamOrDevice s = {});
array array_equal(const array& a, const array& b, StreamOrDevice s = {});
// |a - b| <= atol + rtol * |b|
array isclose(const array& a, const array& b, double rtol = 1e-5, double atol = 1e-8,
              bool equal_nan = false, StreamOrDevice s = {});
array allclose(const array& a, const array& b, double rtol = 1e-5, double atol = 1e-8,
               bool equal_nan = false, StreamOrDevice s = {});

// --- reductions: over all axes, some, or one ---

#define HOLDFAST_REDUCTION(name)                                                  \
  array name(const array& a, bool keepdims, StreamOrDevice s = {});               \
  array name(const array& a, StreamOrDevice s = {});                              \
  array name(const array& a, const std::vector<int>& axes, bool keepdims = false, \
             StreamOrDevice s = {});                                              \
  array name(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
HOLDFAST_REDUCTION(all)
HOLDFAST_REDUCTION(any)
// sum and prod: bool and integers narrower than 32 bits give int32 or uint32.
HOLDFAST_REDUCTION(sum)
HOLDFAST_REDUCTION(prod)
// min and max give NaN if one is there.
HOLDFAST_REDUCTION(min)
HOLDFAST_REDUCTION(max)
HOLDFAST_REDUCTION(mean)
// The mean of the two in the middle, for an even number of elements; NaN if one is there.
HOLDFAST_REDUCTION(median)
HOLDFAST_REDUCTION(logsumexp)
#undef HOLDFAST_REDUCTION

#define HOLDFAST_REDUCTION_WITH_DDOF(name)                                                      \
  array name(const array& a, bool keepdims, int ddof = 0, StreamOrDevice s = {});               \
  array name(const array& a, StreamOrDevice s = {});                                            \
  array name(const array& a, const std::vector<int>& axes, bool keepdims = false, int ddof = 0, \
             StreamOrDevice s = {});                                                            \
  array name(const array& a, int axis, bool keepdims = false, int ddof = 0, StreamOrDevice s = {});
HOLDFAST_REDUCTION_WITH_DDOF(var)
HOLDFAST_REDUCTION_WITH_DDOF(std)
#undef HOLDFAST_REDUCTION_WITH_DDOF

// The sum of conjugate(a) * b along an axis that both have in full; the others broadcast.
array vecdot(const array& a, const array& b, int axis = -1, StreamOrDevice s = {});

array count_nonzero(const array& a, bool keepdims = false, StreamOrDevice s = {});
array count_nonzero(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
array count_nonzero(const array& a, const std::vector<int>& axes, bool keepdims = false,
                    StreamOrDevice s = {});

// The index of the first smallest (largest) element, uint32; without an axis: into the flattened
// array.
array argmin(const array& a, bool keepdims, StreamOrDevice s = {});
array argmin(const array& a, StreamOrDevice s = {});
array argmin(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
array argmax(const array& a, bool keepdims, StreamOrDevice s = {});
array argmax(const array& a, StreamOrDevice s = {});
array argmax(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});

// Half types always compute in float32: `precise` changes nothing.
array softmax(const array& a, const std::vector<int>& axes, bool precise = false,
              StreamOrDevice s = {});
array softmax(const array& a, bool precise = false, StreamOrDevice s = {});
array softmax(const array& a, int axis, bool precise = false, StreamOrDevice s = {});

// --- sort, search: ascending, NaN last; without an axis: of the flattened array ---

// Equal elements keep their order; -0 stands before 0 (in complex numbers it becomes 0).
array sort(const array& a, int axis, StreamOrDevice s = {});
array sort(const array& a, StreamOrDevice s = {});
// Indices, uint32; -0 equals 0.
array argsort(const array& a, int axis, StreamOrDevice s = {});
array argsort(const array& a, StreamOrDevice s = {});
// Everything before place `kth` is not larger than it, everything behind not smaller. The order on
// each side is not promised.
array partition(const array& a, int kth, int axis, StreamOrDevice s = {});
array partition(const array& a, int kth, StreamOrDevice s = {});
array argpartition(const array& a, int kth, int axis, StreamOrDevice s = {});
array argpartition(const array& a, int kth, StreamOrDevice s = {});
// The k largest, in no promised order.
array topk(const array& a, int k, int axis, StreamOrDevice s = {});
array topk(const array& a, int k, StreamOrDevice s = {});
// Where each value would be put into the sorted sequence (1-d), before its equals ("left") or
// behind them ("right"); uint32.
array searchsorted(const array& sorted_sequence, const array& values,
                   const std::string& side = "left", StreamOrDevice s = {});

// --- scans: along one axis, or over the flattened array ---

// Element i of the result combines elements 0 to i (to i - 1, if not inclusive; from the other end,
// if reverse). The sum of bool is int32; other dtypes stay, or are converted to `dtype` first.
#define HOLDFAST_SCAN_WITH_DTYPE(name)                                                          \
  array name(const array& a, bool reverse = false, bool inclusive = true,                       \
             std::optional<Dtype> dtype = std::nullopt, StreamOrDevice s = {});                 \
  inline array name(const array& a, bool reverse, bool inclusive, StreamOrDevice s) {           \
    return name(a, reverse, inclusive, std::nullopt, s);                                        \
  }                                                                                             \
  array name(const array& a, int axis, bool reverse = false, bool inclusive = true,             \
             std::optional<Dtype> dtype = std::nullopt, StreamOrDevice s = {});                 \
  inline array name(const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) { \
    return name(a, axis, reverse, inclusive, std::nullopt, s);                                  \
  }
#define HOLDFAST_SCAN(name)                                                                       \
  array name(const array& a, bool reverse = false, bool inclusive = true, StreamOrDevice s = {}); \
  array name(const array& a, int axis, bool reverse = false, bool inclusive = true,               \
             StreamOrDevice s = {});
HOLDFAST_SCAN_WITH_DTYPE(cumsum)
HOLDFAST_SCAN_WITH_DTYPE(cumprod)
// NaN from the first NaN on.
HOLDFAST_SCAN(cummax)
HOLDFAST_SCAN(cummin)
HOLDFAST_SCAN(logcumsumexp)
#undef HOLDFAST_SCAN
#undef HOLDFAST_SCAN_WITH_DTYPE
// The n-th difference of neighbours.
array diff(const array& a, int n = 1, int axis = -1, StreamOrDevice s = {});

// --- linear algebra ---

// The last two axes are matrices, the others broadcast; a 1-d operand is a row (a) or a column (b).
array matmul(const array& a, const array& b, StreamOrDevice s = {});

// --- operators ---

// A scalar becomes a 0-d array of its C++ type's dtype (double: float32) and is promoted as usual.
template <typename T>
concept Scalar = std::is_convertible_v<T, complex64_t> && !is_array_v<T>;

#define HOLDFAST_OPERATOR(op, function) \
  inline array operator op(array a, array b) { return function(std::move(a), std::move(b)); }
#define HOLDFAST_OPERATOR_WITH_SCALARS(op, function) \
  HOLDFAST_OPERATOR(op, function)                    \
  template <Scalar T>                                \
  array operator op(T a, array b) {                  \
    return function(array(a), std::move(b));         \
  }                                                  \
  template <Scalar T>                                \
  array operator op(array a, T b) {                  \
    return function(std::move(a), array(b));         \
  }
HOLDFAST_OPERATOR_WITH_SCALARS(==, equal)
HOLDFAST_OPERATOR_WITH_SCALARS(!=, not_equal)
HOLDFAST_OPERATOR_WITH_SCALARS(>, greater)
HOLDFAST_OPERATOR_WITH_SCALARS(>=, greater_equal)
HOLDFAST_OPERATOR_WITH_SCALARS(<, less)
HOLDFAST_OPERATOR_WITH_SCALARS(<=, less_equal)
HOLDFAST_OPERATOR_WITH_SCALARS(+, add)
HOLDFAST_OPERATOR_WITH_SCALARS(-, subtract)
HOLDFAST_OPERATOR_WITH_SCALARS(*, multiply)
HOLDFAST_OPERATOR_WITH_SCALARS(%, remainder)
HOLDFAST_OPERATOR(/, divide)
HOLDFAST_OPERATOR(&&, logical_and)
HOLDFAST_OPERATOR(||, logical_or)
HOLDFAST_OPERATOR(&, bitwise_and)
HOLDFAST_OPERATOR(|, bitwise_or)
HOLDFAST_OPERATOR(^, bitwise_xor)
HOLDFAST_OPERATOR(<<, left_shift)
HOLDFAST_OPERATOR(>>, right_shift)
#undef HOLDFAST_OPERATOR_WITH_SCALARS
#undef HOLDFAST_OPERATOR
inline array operator/(double a, array b) { return divide(array(a), std::move(b)); }
inline array operator/(array a, double b) { return divide(std::move(a), array(b)); }
inline array operator-(array a) { return negative(std::move(a)); }
inline array operator~(array a) { return bitwise_invert(std::move(a)); }

}  // namespace holdfast

#include <holdfast/convolution.h>
#include <holdfast/products.h>
#include <holdfast/quantization.h>
