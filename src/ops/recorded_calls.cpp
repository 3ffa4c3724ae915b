// One row for each kind of call that a file may hold: the public function, with the values of the
// record as its arguments (`members` of the primitive, in their order).
#include "ops/recorded_calls.h"

#include <limits>
#include <unordered_map>
#include <utility>

#include <holdfast/fast.h>
#include <holdfast/linalg.h>
#include <holdfast/lm_ops.h>
#include <holdfast/random.h>

#include "kernels/plan/fft.h"
#include "kernels/plan/norm.h"
#include "kernels/plan/quantization.h"
#include "kernels/plan/scan.h"
#include "kernels/plan/sort.h"
#include "kernels/plan/update.h"
#include "ops/dynamic_shape.h"
#include "ops/elementwise.h"
#include "ops/inner.h"
#include "ops/linalg.h"
#include "ops/metal_kernel.h"
#include "ops/recurrence.h"

namespace holdfast {

namespace kernels {
constexpr ReduceOp last_value(ReduceOp) { return ReduceOp::argmax; }
constexpr ScanOp last_value(ScanOp) { return ScanOp::log_add_exp; }
constexpr UpdateMode last_value(UpdateMode) { return UpdateMode::minimum; }
constexpr NormKind last_value(NormKind) { return NormKind::layer; }
constexpr FftKind last_value(FftKind) { return FftKind::from_half; }
constexpr FactorisationMethod last_value(FactorisationMethod) {
  return FactorisationMethod::slogdet;
}
constexpr QuantizationMode last_value(QuantizationMode) { return QuantizationMode::nvfp4; }
}  // namespace kernels

// Files hold the numbers of these: a value keeps its place, and new ones come last.
template <auto... values>
constexpr bool are_numbered() {
  int next = 0;
  return ((static_cast<int>(values) == next++) && ...);
}
static_assert([] {
  using enum kernels::ReduceOp;
  return are_numbered<sum, prod, min, max, all, any, argmin, argmax>();
}());
static_assert([] {
  using enum kernels::ScanOp;
  return are_numbered<sum, prod, min, max, log_add_exp>();
}());
static_assert([] {
  using enum kernels::UpdateMode;
  return are_numbered<replace, add, multiply, maximum, minimum>();
}());
static_assert([] {
  using enum kernels::FftKind;
  return are_numbered<complex, to_half, from_half>();
}());
static_assert([] {
  using enum kernels::QuantizationMode;
  return are_numbered<affine, mxfp4, mxfp8, nvfp4>();
}());
static_assert(are_numbered<kernels::NormKind::rms, kernels::NormKind::layer>());
static_assert([] {
  using enum Method;
  return are_numbered<qr, svd, singular_values, inverse, cholesky, lu_factor, lu, solve,
                      solve_triangular, eigh, eigvalsh, eig, eigvals, slogdet>();
}());
static_assert([] {
  using enum Dtype::Val;
  return are_numbered<bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16,
                      float32, float64, bfloat16, complex64>();
}());

namespace {

using Arrays = std::vector<array>;
using State = std::vector<RecordedValue>;
using Axes = std::vector<int>;
using Call = const RecordedCall&;
using kernels::QuantizationMode;
using kernels::UpdateMode;

struct Kind {
  const char* name;
  Arrays (*call)(const RecordedCall&, const State&);
};

Arrays list(array a) { return {std::move(a)}; }
Arrays list(Arrays arrays) { return arrays; }
Arrays list(std::pair<array, array> pair) { return {pair.first, pair.second}; }

template <class Result, class... Values>
Arrays call_with(const RecordedCall& call, const State& state,
                 Result (*function)(const RecordedCall&, Values...)) {
  if (state.size() != sizeof...(Values)) {
    throw std::invalid_argument(
        text("expected a state of ", sizeof...(Values), " values, got ", state.size()));
  }
  return [&]<size_t... i>(std::index_sequence<i...>) {
    return list(function(call, value_of<std::remove_cvref_t<Values>>(state[i])...));
  }(std::index_sequence_for<Values...>());
}

// `function` takes the call and the values of its state.
template <auto function>
constexpr Kind kind(const char* name) {
  return {name, [](const RecordedCall& call, const State& state) {
            return call_with(call, state, +function);
          }};
}

// An argument that is there or not; the next ones follow it.
std::optional<array> optional_input(const RecordedCall& call, bool is_there, size_t& next) {
  if (!is_there) return std::nullopt;
  return call.inputs.at(next++);
}

// Where a slice of `sizes` elements ends, as the public functions want it said.
Shape stops_of(const Shape& start, const Shape& steps, const Shape& sizes) {
  if (start.size() != sizes.size() || steps.size() != sizes.size()) {
    throw std::invalid_argument(text("expected a start and a step for each axis of shape ", sizes,
                                     ", got ", start, " and ", steps));
  }
  Shape stop = start;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) continue;
    int64_t last = start[i] + (sizes[i] - int64_t{1}) * steps[i];
    // What lies before the first element cannot be said as -1, which is the last one.
    int64_t behind = steps[i] > 0 ? last + 1
                     : last > 0   ? last - 1
                                  : std::numeric_limits<int>::min();
    stop[i] = safe_cast(behind, "slice");
  }
  return stop;
}

const char* mode_name(QuantizationMode mode) {
  constexpr const char* names[] = {"affine", "mxfp4", "mxfp8", "nvfp4"};
  return names[static_cast<size_t>(mode)];
}

Arrays depend(Call call, size_t count) {
  const Arrays& in = call.inputs;
  if (count > in.size()) throw std::invalid_argument("expected more inputs");
  auto behind = in.begin() + static_cast<std::ptrdiff_t>(count);
  return depends(Arrays(in.begin(), behind), Arrays(behind, in.end()));
}

array scan(Call call, kernels::ScanOp op, int axis, bool reverse, bool inclusive) {
  const array& a = call.exactly(1)[0];
  switch (op) {
    case kernels::ScanOp::sum:
      return cumsum(a, axis, reverse, inclusive, std::nullopt, call.stream);
    case kernels::ScanOp::prod:
      return cumprod(a, axis, reverse, inclusive, std::nullopt, call.stream);
    case kernels::ScanOp::min:
      return cummin(a, axis, reverse, inclusive, call.stream);
    case kernels::ScanOp::max:
      return cummax(a, axis, reverse, inclusive, call.stream);
    default:
      return logcumsumexp(a, axis, reverse, inclusive, call.stream);
  }
}

array sort_rows(Call call, bool is_arg, int64_t kth) {
  const array& a = call.exactly(1)[0];
  if (kth == kernels::SortKind::whole) {
    return is_arg ? argsort(a, -1, call.stream) : sort(a, -1, call.stream);
  }
  int place = safe_cast(kth, "partition");
  return is_arg ? argpartition(a, place, -1, call.stream) : partition(a, place, -1, call.stream);
}

array update_slice(Call call, UpdateMode mode, const Shape& start, const Shape& steps) {
  using Update = array (*)(const array&, const array&, Shape, Shape, Shape, StreamOrDevice);
  constexpr Update functions[] = {slice_update, slice_update_add, slice_update_prod,
                                  slice_update_max, slice_update_min};
  const Arrays& in = call.exactly(2);
  return functions[static_cast<size_t>(mode)](
      in[0], in[1], start, stops_of(start, steps, in[1].shape()), steps, call.stream);
}

// Inputs: the array, the updates, the indices.
array scatter_slices(Call call, UpdateMode mode, const Axes& axes) {
  using Update = array (*)(const array&, const Arrays&, const array&, const Axes&, StreamOrDevice);
  constexpr Update functions[] = {scatter, scatter_add, scatter_prod, scatter_max, scatter_min};
  const Arrays& in = call.exactly(2 + axes.size());
  return functions[static_cast<size_t>(mode)](in[0], Arrays(in.begin() + 2, in.end()), in[1], axes,
                                              call.stream);
}

array scatter_along_axis(Call call, UpdateMode mode, int axis) {
  const Arrays& in = call.exactly(3);
  if (mode == UpdateMode::add) return scatter_add_axis(in[0], in[1], in[2], axis, call.stream);
  if (mode == UpdateMode::replace) return put_along_axis(in[0], in[1], in[2], axis, call.stream);
  throw std::invalid_argument("expected to replace or to add");
}

array convolve(Call call, const Axes& stride, const Axes& low, const Axes& high,
               const Axes& dilation, const Axes& input_dilation, int groups, bool flip) {
  const Arrays& in = call.exactly(2);
  return conv_general(in[0], in[1], stride, low, high, dilation, input_dilation, groups, flip,
                      call.stream);
}

array normalise(Call call, kernels::NormKind norm, float epsilon, bool has_weight, bool has_bias) {
  const Arrays& in = call.exactly(1u + has_weight + has_bias);
  size_t next = 1;
  std::optional<array> weight = optional_input(call, has_weight, next);
  std::optional<array> bias = optional_input(call, has_bias, next);
  if (norm == kernels::NormKind::layer) {
    return fast::layer_norm(in[0], weight, bias, epsilon, call.stream);
  }
  if (bias) throw std::invalid_argument("expected no bias");
  return fast::rms_norm(in[0], weight, epsilon, call.stream);
}

array rotate(Call call, int dims, bool traditional, std::optional<float> base, float scale,
             std::optional<int> offset) {
  const Arrays& in = call.exactly(1u + !offset + !base);
  size_t next = 1;
  std::optional<array> offsets = optional_input(call, !offset, next);
  std::optional<array> frequencies = optional_input(call, !base, next);
  if (offset) {
    return fast::rope(in[0], dims, traditional, base, scale, *offset, frequencies, call.stream);
  }
  return fast::rope(in[0], dims, traditional, base, scale, *offsets, frequencies, call.stream);
}

array attention(Call call, float scale, bool causal, bool has_mask, bool has_sinks) {
  const Arrays& in = call.exactly(3u + has_mask + has_sinks);
  size_t next = 3;
  std::optional<array> mask = optional_input(call, has_mask, next);
  std::optional<array> sinks = optional_input(call, has_sinks, next);
  return attend(in[0], in[1], in[2], scale,
                causal     ? "causal"
                : has_mask ? "array"
                           : "",
                mask, sinks, true, call.stream);
}

fast::KvScheme scheme_of(int key_dims, int key_bits, size_t key_seed, int value_dims,
                         int value_bits, size_t value_seed) {
  return {{key_dims, key_bits, key_seed}, {value_dims, value_bits, value_seed}};
}

array paged_attention(Call call, int key_dims, int key_bits, size_t key_seed, int value_dims,
                      int value_bits, size_t value_seed, float scale, int window, bool has_starts,
                      bool has_sinks) {
  const Arrays& in = call.exactly(5u + has_starts + has_sinks);
  size_t next = 5;
  std::optional<array> starts = optional_input(call, has_starts, next);
  std::optional<array> sinks = optional_input(call, has_sinks, next);
  return fast::paged_attention(
      in[0], in[1], in[2], in[3], in[4], scale,
      scheme_of(key_dims, key_bits, key_seed, value_dims, value_bits, value_seed), starts, window,
      sinks, call.stream);
}

// The inputs from `next` on.
fast::Sequences sequences_of(Call call, size_t next, bool starts, bool slots, bool fresh,
                             bool mask) {
  fast::Sequences sequences;
  sequences.starts = optional_input(call, starts, next);
  sequences.slots = optional_input(call, slots, next);
  sequences.fresh = optional_input(call, fresh, next);
  sequences.mask = optional_input(call, mask, next);
  return sequences;
}

array recorded_quantized_product(Call call, QuantizationMode mode, int bits, int group_size,
                                 bool transposed, bool gathers) {
  bool affine = mode == QuantizationMode::affine;
  const Arrays& in = call.exactly(3u + affine + (gathers ? 2 : 0));
  size_t next = 3;
  std::optional<array> biases = optional_input(call, affine, next);
  std::optional<array> left = optional_input(call, gathers, next);
  std::optional<array> right = optional_input(call, gathers, next);
  if (gathers) {
    return gather_qmm(in[0], in[1], in[2], biases, left, right, transposed, group_size, bits,
                      mode_name(mode), false, call.stream);
  }
  return quantized_matmul(in[0], in[1], in[2], biases, transposed, group_size, bits,
                          mode_name(mode), call.stream);
}

Arrays factorise(Call call, Method method, bool upper) {
  bool is_solve = method == Method::solve || method == Method::solve_triangular;
  const Arrays& in = call.exactly(is_solve ? 2 : 1);
  const array& a = in[0];
  Stream s = call.stream;
  const char* part = upper ? "U" : "L";
  switch (method) {
    case Method::qr:
      return list(linalg::qr(a, s));
    case Method::svd:
      return linalg::svd(a, true, s);
    case Method::singular_values:
      return linalg::svd(a, false, s);
    case Method::inverse:
      return list(linalg::inv(a, s));
    case Method::cholesky:
      return list(linalg::cholesky(a, upper, s));
    case Method::lu_factor:
      return list(linalg::lu_factor(a, s));
    case Method::lu:
      return linalg::lu(a, s);
    case Method::solve:
      return list(linalg::solve(a, in[1], s));
    case Method::solve_triangular:
      return list(linalg::solve_triangular(a, in[1], upper, s));
    case Method::eigh:
      return list(linalg::eigh(a, part, s));
    case Method::eigvalsh:
      return list(linalg::eigvalsh(a, part, s));
    case Method::eig:
      return list(linalg::eig(a, s));
    case Method::eigvals:
      return list(linalg::eigvals(a, s));
    case Method::slogdet:
      return list(linalg::slogdet(a, s));
  }
  return {};
}

constexpr Kind kinds[] = {
    // --- how elements are seen ---
    kind<[](Call c, Dtype dtype) { return astype(c.exactly(1)[0], dtype, c.stream); }>("AsType"),
    kind<[](Call c, Axes axes) { return transpose(c.exactly(1)[0], axes, c.stream); }>("Transpose"),
    kind<[](Call c) { return broadcast_to(c.exactly(1)[0], c.shapes[0], c.stream); }>("Broadcast"),
    kind<[](Call c, Axes axes) { return squeeze(c.exactly(1)[0], axes, c.stream); }>("Squeeze"),
    kind<[](Call c, Axes axes) { return expand_dims(c.exactly(1)[0], axes, c.stream); }>(
        "ExpandDims"),
    kind<[](Call c, Shape start, Shape steps) {
      return slice(c.exactly(1)[0], start, stops_of(start, steps, c.shapes[0]), steps, c.stream);
    }>("Slice"),
    kind<[](Call c, Shape starts, int axis) {
      if (!starts.empty()) starts.erase(starts.begin());
      return split(c.exactly(1)[0], starts, axis, c.stream);
    }>("Split"),
    kind<[](Call c, int offset, int axis1, int axis2) {
      return diagonal(c.exactly(1)[0], offset, axis1, axis2, c.stream);
    }>("Diagonal"),
    kind<[](Call c, Shape shape, Strides strides, size_t offset) {
      return as_strided(c.exactly(1)[0], shape, strides, offset, c.stream);
    }>("AsStrided"),
    kind<[](Call c) { return stop_gradient(c.exactly(1)[0], c.stream); }>("StopGradient"),
    kind<depend>("Depends"),
    kind<[](Call c) { return reshape(c.exactly(1)[0], c.shapes[0], c.stream); }>("Reshape"),
    kind<[](Call c, Shape recipe) { return reshape_by(c.exactly(1)[0], recipe, c.stream); }>(
        "ReshapeBy"),
    kind<[](Call c) { return reshape_like(c.exactly(2)[0], c.inputs[1], c.stream); }>(
        "ReshapeLike"),
    kind<[](Call c, Shape target) {
      if (c.inputs.empty()) throw std::invalid_argument("expected an input");
      return broadcast_with(c.inputs[0], Arrays(c.inputs.begin() + 1, c.inputs.end()), target,
                            c.stream);
    }>("BroadcastWith"),
    kind<[](Call c, int leading) {
      return sum_like(c.exactly(2)[0], c.inputs[1], c.stream, leading);
    }>("SumLike"),
    kind<[](Call c) { return view(c.exactly(1)[0], c.dtypes[0], c.stream); }>("View"),
    kind<[](Call c, bool allow_column_major) {
      return contiguous(c.exactly(1)[0], allow_column_major, c.stream);
    }>("Contiguous"),
    kind<[](Call c) { return copy(c.exactly(1)[0], c.stream); }>("Copy"),

    // --- new arrays ---
    kind<[](Call c) { return full(c.shapes[0], c.exactly(1)[0], c.stream); }>("Full"),
    kind<[](Call c, double start, double step) {
      // Half a step behind the last element, so that rounding cannot change their number.
      double stop = start + (c.shapes[0].at(0) - 0.5) * step;
      return arange(start, stop, step, c.dtypes[0], c.stream);
    }>("Arange"),
    kind<[](Call c) {
      return random::bits(c.shapes[0], c.dtypes[0].size(), c.exactly(1)[0], c.stream);
    }>("RandomBits"),
    kind<[](Call c, int axis) { return concatenate(c.inputs, axis, c.stream); }>("Concatenate"),
    kind<[](Call c, Shape low, Shape high) {
      const Arrays& in = c.exactly(2);
      return pad(in[0], all_axes(in[0]), low, high, in[1], "constant", c.stream);
    }>("Pad"),

    // --- parts found by indices ---
    kind<[](Call c, Axes axes, Shape sizes) {
      const Arrays& in = c.exactly(2);
      return slice(in[0], in[1], axes, sizes, c.stream);
    }>("DynamicSlice"),
    kind<update_slice>("SliceUpdate"),
    kind<[](Call c, Axes axes) {
      const Arrays& in = c.exactly(3);
      return slice_update(in[0], in[1], in[2], axes, c.stream);
    }>("DynamicSliceUpdate"),
    kind<[](Call c) {
      const Arrays& in = c.exactly(3);
      return masked_scatter(in[0], in[1], in[2], c.stream);
    }>("MaskedScatter"),
    kind<[](Call c, int axis) {
      const Arrays& in = c.exactly(2);
      return take(in[0], in[1], axis, c.stream);
    }>("Take"),
    kind<[](Call c, int axis) {
      const Arrays& in = c.exactly(2);
      return take_along_axis(in[0], in[1], axis, c.stream);
    }>("GatherAxis"),
    kind<[](Call c, Axes axes, Shape sizes) {
      const Arrays& in = c.exactly(1 + axes.size());
      return gather(in[0], Arrays(in.begin() + 1, in.end()), axes, sizes, c.stream);
    }>("Gather"),
    kind<scatter_slices>("Scatter"),
    kind<scatter_along_axis>("ScatterAxis"),

    // --- along axes ---
    // The shape says what became of the axes, not the bool.
    kind<[](Call c, kernels::ReduceOp op, Axes axes, bool) {
      bool keepdims = c.shapes[0].size() == c.exactly(1)[0].ndim();
      return reduce(op, c.inputs[0], axes, keepdims, c.stream, c.dtypes[0] == float32);
    }>("Reduce"),
    kind<[](Call c, Axes axes, bool inverted) {
      return number_of_elements(c.exactly(1)[0], axes, inverted, c.dtypes[0], c.stream);
    }>("NumberOfElements"),
    kind<scan>("Scan"),
    kind<sort_rows>("Sort"),
    kind<[](Call c, bool right) {
      const Arrays& in = c.exactly(2);
      return searchsorted(in[0], in[1], right ? "right" : "left", c.stream);
    }>("SearchSorted"),
    kind<[](Call c, Axes axes) { return softmax(c.exactly(1)[0], axes, false, c.stream); }>(
        "Softmax"),
    kind<[](Call c, int axis, bool reverse) {
      const Arrays& in = c.exactly(2);
      return linear_recurrence(in[0], in[1], axis, reverse, c.stream);
    }>("LinearRecurrence"),
    kind<normalise>("Norm"),
    kind<rotate>("RoPE"),
    kind<[](Call c, kernels::FftKind direction, bool inverse, int length, float scale) {
      return transform_rows("fft", c.exactly(1)[0], direction, inverse, length, scale, c.stream);
    }>("FFT"),
    kind<[](Call c, float scale, bool transposed) {
      return hadamard_transform(c.exactly(1)[0], scale, transposed, c.stream);
    }>("Hadamard"),

    // --- products ---
    kind<[](Call c) {
      const Arrays& in = c.exactly(2);
      return divmod(in[0], in[1], c.stream);
    }>("DivMod"),
    kind<[](Call c) {
      const Arrays& in = c.exactly(2);
      return matmul(in[0], in[1], c.stream, c.dtypes[0] == float32);
    }>("Matmul"),
    kind<[](Call c) {
      const Arrays& in = c.exactly(3);
      return segmented_mm(in[0], in[1], in[2], c.stream);
    }>("SegmentedMM"),
    kind<convolve>("GeneralConvolution"),
    kind<attention>("ScaledDotProductAttention"),
    kind<factorise>("Factorisation"),

    // --- language models ---
    kind<[](Call c, int key_dims, int key_bits, size_t key_seed, int value_dims, int value_bits,
            size_t value_seed) {
      const Arrays& in = c.exactly(5);
      return fast::kv_write(
          in[0], in[1], in[2], in[3], in[4],
          scheme_of(key_dims, key_bits, key_seed, value_dims, value_bits, value_seed), c.stream);
    }>("KvWrite"),
    kind<[](Call c, int dims, int bits, size_t seed, bool encodes) {
      const array& a = c.exactly(1)[0];
      const fast::KvFormat format{dims, bits, seed};
      return encodes ? fast::kv_encode(a, format, c.stream)
                     : fast::kv_decode(a, format, c.dtypes[0], c.stream);
    }>("KvConvert"),
    kind<paged_attention>("PagedAttention"),
    kind<[](Call c, bool starts, bool slots, bool fresh, bool mask) {
      const Arrays& in = c.exactly(size_t{6} + starts + slots + fresh + mask);
      return fast::gated_delta(in[0], in[1], in[2], in[3], in[4], in[5],
                               sequences_of(c, 6, starts, slots, fresh, mask), c.stream);
    }>("GatedDelta"),
    kind<[](Call c, bool has_bias, bool starts, bool slots, bool fresh, bool mask) {
      const Arrays& in = c.exactly(size_t{3} + has_bias + starts + slots + fresh + mask);
      size_t next = 3;
      std::optional<array> bias = optional_input(c, has_bias, next);
      return fast::causal_conv(in[0], in[1], in[2], bias,
                               sequences_of(c, next, starts, slots, fresh, mask), c.stream);
    }>("CausalConv"),

    // --- low-bit formats ---
    kind<[](Call c, QuantizationMode mode, int bits, int group_size) {
      bool has_scale = c.inputs.size() == 2;
      const Arrays& in = c.exactly(1u + has_scale);
      size_t next = 1;
      return quantize(in[0], group_size, bits, mode_name(mode), optional_input(c, has_scale, next),
                      c.stream);
    }>("Quantize"),
    kind<[](Call c, QuantizationMode mode, int bits, int group_size) {
      bool affine = mode == QuantizationMode::affine;
      const Arrays& in = c.exactly(2u + affine);
      size_t next = 2;
      return dequantize(in[0], in[1], optional_input(c, affine, next), group_size, bits,
                        mode_name(mode), std::nullopt, c.dtypes[0], c.stream);
    }>("Dequantize"),
    kind<recorded_quantized_product>("QuantizedMatmul"),
    kind<[](Call c, bool encodes) {
      const array& a = c.exactly(1)[0];
      return encodes ? to_fp8(a, c.stream) : from_fp8(a, c.dtypes[0], c.stream);
    }>("ConvertFP8"),

    {fast::CustomKernel::recorded_as, fast::CustomKernel::call},
};

using Table = std::unordered_map<std::string_view, Arrays (*)(const RecordedCall&, const State&)>;
const Table& table() {
  static const Table found = [] {
    Table result;
    for (const Kind& row : kinds) result.emplace(row.name, row.call);
    return result;
  }();
  return found;
}

using ElementwiseTable = std::unordered_map<std::string_view, kernels::ElementwiseOp>;
const ElementwiseTable& elementwise_table() {
  static const ElementwiseTable found = [] {
    ElementwiseTable result;
    for (int i = 0; i < static_cast<int>(kernels::ElementwiseOp::count); ++i) {
      auto op = static_cast<kernels::ElementwiseOp>(i);
      result.emplace(kernels::elementwise_name(op), op);
    }
    return result;
  }();
  return found;
}

}  // namespace

std::vector<array> call_again(const Record& record, const RecordedCall& call) {
  if (call.shapes.empty() || call.shapes.size() != call.dtypes.size()) {
    throw std::invalid_argument("expected a shape and a dtype for each output");
  }
  auto elementwise = elementwise_table().find(record.kind);
  if (elementwise != elementwise_table().end()) {
    if (!record.state.empty()) throw std::invalid_argument("expected no state");
    return {call_elementwise(elementwise->second, call.inputs, call.stream)};
  }
  auto row = table().find(record.kind);
  if (row == table().end()) throw std::invalid_argument("an op that this version does not know");
  return row->second(call, record.state);
}

std::vector<std::string_view> recorded_kinds() {
  std::vector<std::string_view> names;
  for (const Kind& row : kinds) names.push_back(row.name);
  for (const auto& [name, op] : elementwise_table()) names.push_back(name);
  return names;
}

}  // namespace holdfast
