// Arrays from nothing: constants, ranges, diagonals.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/accumulate.h"
#include "ops/dynamic_shape.h"
#include "ops/support.h"

namespace holdfast {

namespace {

// Its input, broadcast to the output's shape, in memory of its own.
class Full final : public Recorded<Full, Single<Op>> {
 public:
  explicit Full(Stream stream) : Recorded(stream) { traits_.broadcasts = true; }
  array pull_back(const array& input, const array& cotangent, const array&) override {
    return sum_like(cotangent, input, stream());
  }
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  const char* name() const override { return "Full"; }
  auto members() const { return std::tie(); }
};

void Full::encode(Encoder& encoder, const std::vector<array>& inputs, std::vector<array>& outputs) {
  const array& value = inputs[0];
  array& out = outputs[0];
  if (value.size() != 1) {
    if (out.size() > 0) encoder.input(value);  // the view below does not know who computes it
    array repeated(out.shape(), out.dtype(), nullptr, {});
    share(value, repeated, broadcast_strides(value.shape(), value.strides(), out.shape()));
    encode_copy(encoder, repeated, out);
    return;
  }
  kernels::backend_of(encoder).fill(encoder, value, out);
}

// start + i * step.
class Arange final : public Recorded<Arange, Op> {
 public:
  Arange(Stream stream, double start, double step) : Recorded(stream), start_(start), step_(step) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  const char* name() const override { return "Arange"; }
  auto members() const { return std::tie(start_, step_); }

 private:
  double start_, step_;
};

void Arange::encode(Encoder& encoder, const std::vector<array>&, std::vector<array>& outputs) {
  kernels::backend_of(encoder).arange(encoder, start_, step_, outputs[0]);
}

void check_not_negative(const char* op, int n, int m) {
  if (n < 0 || m < 0) {
    throw std::invalid_argument(
        text("[", op, "] numbers of rows and columns must not be negative, got ", n, " and ", m));
  }
}

// Compares row + k with column, for each place of an n by m matrix.
using Comparison = array (*)(array, array, StreamOrDevice);
array compare_places(Comparison compare, int n, int m, int k, StreamOrDevice s) {
  k = std::clamp(k, -n - 1, m);  // beyond, nothing changes
  // float32 compares fastest, and holds every place of all but very long matrices.
  constexpr int largest = 1 << 22;
  Dtype dtype = n < largest && m < largest ? float32 : int64;
  double first = k;
  array rows = expand_dims(arange(first, first + n, 1.0, dtype, s), 1, s);
  return compare(rows, arange(0.0, m, 1.0, dtype, s), s);
}

}  // namespace

// --- arange, linspace ---

array arange(double start, double stop, double step, Dtype dtype, StreamOrDevice s) {
  if (dtype == bool_) throw std::invalid_argument("[arange] expected a dtype of numbers, got bool");
  if (std::isnan(start) || std::isnan(stop) || std::isnan(step) || std::isinf(start) ||
      std::isinf(stop)) {
    throw std::invalid_argument(
        text("[arange] expected finite start and stop and a step that is not NaN, got start ",
             start, ", stop ", stop, " and step ", step));
  }
  if (step == 0) throw std::invalid_argument("[arange] step must not be 0");
  double size = std::isinf(step) ? ((stop - start > 0) == (step > 0) && stop != start ? 1.0 : 0.0)
                                 : std::ceil((stop - start) / step);
  if (size > std::numeric_limits<ShapeElem>::max()) {
    throw std::invalid_argument(text("[arange] expected at most 2^31 - 1 elements, got ", size,
                                     " for start ", start, ", stop ", stop, " and step ", step));
  }
  Shape shape{size > 0 ? static_cast<ShapeElem>(size) : 0};
  if (issubdtype(dtype, integer) && !std::isinf(step)) {
    // The first two are rounded, and say what the step is, as in NumPy.
    double second = std::trunc(start + step);
    start = std::trunc(start);
    step = second - start;
  }
  return make_node<Arange>(std::move(shape), dtype, {}, s, start, step);
}

array arange(double start, double stop, double step, StreamOrDevice s) {
  return arange(start, stop, step, float32, s);
}
array arange(double start, double stop, Dtype dtype, StreamOrDevice s) {
  return arange(start, stop, 1.0, dtype, s);
}
array arange(double start, double stop, StreamOrDevice s) {
  return arange(start, stop, 1.0, float32, s);
}
array arange(double stop, Dtype dtype, StreamOrDevice s) {
  return arange(0.0, stop, 1.0, dtype, s);
}
array arange(double stop, StreamOrDevice s) { return arange(0.0, stop, 1.0, float32, s); }
array arange(int start, int stop, int step, StreamOrDevice s) {
  return arange(double(start), double(stop), double(step), int32, s);
}
array arange(int start, int stop, StreamOrDevice s) {
  return arange(double(start), double(stop), 1.0, int32, s);
}
array arange(int stop, StreamOrDevice s) { return arange(0.0, double(stop), 1.0, int32, s); }

array linspace(double start, double stop, int num, bool endpoint, Dtype dtype, StreamOrDevice s) {
  if (num < 0) {
    throw std::invalid_argument(
        text("[linspace] the number of samples must not be negative, got ", num));
  }
  int intervals = endpoint ? num - 1 : num;
  Dtype compute = dtype == float64 ? float64 : float32;
  if (num <= 1) return astype(full({num}, array(start, compute), s), dtype, s);
  // Weights of both ends, so that the ends come out exactly.
  array t = divide(arange(0.0, num, 1.0, compute, s), array(intervals, compute), s);
  array low = multiply(subtract(array(1.0, compute), t, s), array(start, compute), s);
  array high = multiply(t, array(stop, compute), s);
  return astype(add(low, high, s), dtype, s);
}

array linspace(double start, double stop, int num, Dtype dtype, StreamOrDevice s) {
  return linspace(start, stop, num, true, dtype, s);
}

// --- full, zeros, ones ---

array full(Shape shape, array vals, Dtype dtype, StreamOrDevice s) {
  checked_size("full", shape, dtype);
  if (broadcast_shapes_for("full", vals.shape(), shape) != shape) {
    throw std::invalid_argument(
        text("[full] values of shape ", vals.shape(), " cannot be broadcast to shape ", shape));
  }
  return make_node<Full>(std::move(shape), dtype, {astype(std::move(vals), dtype, s)}, s);
}

array full(Shape shape, array vals, StreamOrDevice s) {
  Dtype dtype = vals.dtype();
  return full(std::move(shape), std::move(vals), dtype, s);
}
array full_like(const array& a, array vals, Dtype dtype, StreamOrDevice s) {
  if (has_open_shape(a)) return broadcast_like(astype(std::move(vals), dtype, s), a, s);
  return full(a.shape(), std::move(vals), dtype, s);
}
array full_like(const array& a, array vals, StreamOrDevice s) {
  return full_like(a, std::move(vals), a.dtype(), s);
}
bool is_zeros(const array& a) {
  if (!a.has_primitive() || dynamic_cast<const Full*>(&a.primitive()) == nullptr) return false;
  const array& value = a.inputs()[0];
  if (value.size() != 1 || value.has_primitive() || value.is_tracer()) return false;
  if (value.status() != array::available) return false;  // it may not have been computed yet
  const char* bytes = value.data<char>();
  return std::all_of(bytes, bytes + value.itemsize(), [](char byte) { return byte == 0; });
}
array zeros(const Shape& shape, Dtype dtype, StreamOrDevice s) {
  return full(shape, array(0, dtype), dtype, s);
}
array zeros(const Shape& shape, StreamOrDevice s) { return zeros(shape, float32, s); }
array zeros_like(const array& a, StreamOrDevice s) { return zeros_like(a, a.dtype(), s); }
array zeros_like(const array& a, Dtype dtype, StreamOrDevice s) {
  return full_like(a, array(0, dtype), dtype, s);
}
array ones(const Shape& shape, Dtype dtype, StreamOrDevice s) {
  return full(shape, array(1, dtype), dtype, s);
}
array ones(const Shape& shape, StreamOrDevice s) { return ones(shape, float32, s); }
array ones_like(const array& a, StreamOrDevice s) { return ones_like(a, a.dtype(), s); }
array ones_like(const array& a, Dtype dtype, StreamOrDevice s) {
  return full_like(a, array(1, dtype), dtype, s);
}

// --- diagonals and triangles ---

array eye(int n, int m, int k, Dtype dtype, StreamOrDevice s) {
  check_not_negative("eye", n, m);
  return astype(compare_places(equal, n, m, k, s), dtype, s);
}
array eye(int n, Dtype dtype, StreamOrDevice s) { return eye(n, n, 0, dtype, s); }
array eye(int n, int m, StreamOrDevice s) { return eye(n, m, 0, float32, s); }
array eye(int n, int m, int k, StreamOrDevice s) { return eye(n, m, k, float32, s); }
array eye(int n, StreamOrDevice s) { return eye(n, n, 0, float32, s); }
array identity(int n, Dtype dtype, StreamOrDevice s) { return eye(n, n, 0, dtype, s); }
array identity(int n, StreamOrDevice s) { return eye(n, n, 0, float32, s); }

array tri(int n, int m, int k, Dtype type, StreamOrDevice s) {
  check_not_negative("tri", n, m);
  return astype(compare_places(greater_equal, n, m, k, s), type, s);
}
array tri(int n, Dtype type, StreamOrDevice s) { return tri(n, n, 0, type, s); }

namespace {
// Keeps one side of a diagonal of the last two axes.
array triangle(const char* op, const array& x, int k, bool keep_lower, StreamOrDevice s) {
  if (x.ndim() < 2) {
    throw std::invalid_argument(
        text("[", op, "] expected two dimensions or more, got shape ", x.shape()));
  }
  array lower = tri(x.shape(-2), x.shape(-1), k, bool_, s);
  array zero(0, x.dtype());
  return keep_lower ? where(lower, x, zero, s) : where(lower, zero, x, s);
}
}  // namespace

array tril(array x, int k, StreamOrDevice s) { return triangle("tril", x, k, true, s); }
array triu(array x, int k, StreamOrDevice s) {
  if (k == std::numeric_limits<int>::min()) return x;  // below every diagonal
  return triangle("triu", x, k - 1, false, s);
}

// --- windows ---

namespace {

// `formula` over the angles 2 π i / (M - 1); one sample is 1.
template <typename Formula>
array window(int M, Formula formula, StreamOrDevice s) {
  if (M <= 0) return zeros({0}, float32, s);
  if (M == 1) return ones({1}, float32, s);
  std::vector<float> values(static_cast<size_t>(M));
  // In double: the ends are what they should be.
  for (int i = 0; i < M; ++i) {
    values[static_cast<size_t>(i)] = static_cast<float>(formula(2 * M_PI * i / (M - 1), i));
  }
  return array(values.begin(), {M}, float32);
}

}  // namespace

array hanning(int M, StreamOrDevice s) {
  return window(M, [](double x, int) { return 0.5 - 0.5 * std::cos(x); }, s);
}
array hamming(int M, StreamOrDevice s) {
  return window(M, [](double x, int) { return 0.54 - 0.46 * std::cos(x); }, s);
}
array bartlett(int M, StreamOrDevice s) {
  return window(M, [M](double, int i) { return 1 - std::abs(2.0 * i / (M - 1) - 1); }, s);
}
array blackman(int M, StreamOrDevice s) {
  return window(
      M, [](double x, int) { return 0.42 - 0.5 * std::cos(x) + 0.08 * std::cos(2 * x); }, s);
}

std::vector<array> meshgrid(const std::vector<array>& arrays, bool sparse,
                            const std::string& indexing, StreamOrDevice s) {
  if (indexing != "xy" && indexing != "ij") {
    throw std::invalid_argument(
        text("[meshgrid] expected indexing \"xy\" or \"ij\", got \"", indexing, "\""));
  }
  // Array i varies along axis i; "xy" swaps the first two axes.
  std::vector<array> grids;
  int count = static_cast<int>(arrays.size());
  bool swap = indexing == "xy" && count > 1;
  for (int i = 0; i < count; ++i) {
    Shape shape(arrays.size(), 1);
    int axis = swap && i < 2 ? 1 - i : i;
    shape[static_cast<size_t>(axis)] = -1;
    const array& a = arrays[static_cast<size_t>(i)];
    if (a.size() == 0) shape[static_cast<size_t>(axis)] = 0;
    grids.push_back(reshape_here(a, std::move(shape), s));
  }
  return sparse ? grids : broadcast_arrays(grids, s);
}

}  // namespace holdfast
