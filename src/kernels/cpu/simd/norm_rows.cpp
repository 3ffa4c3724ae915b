// Normalisation of one row, compiled once per instruction set.
//
// A row is read twice, from the cache the second time; half types are widened again, which costs
// less than keeping the floats. Each time half of the next row is fetched.
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/norm_kernels.h"
#include "kernels/cpu/simd/vector_math.h"

namespace holdfast::cpu::HOLDFAST_SIMD_TARGET {
namespace {

template <typename T>
inline void fetch_next_row(const T* x, int64_t length, int64_t i, int elements) {
  const char* next = reinterpret_cast<const char*>(x + length + i / 2);
  for (int line = 0; line < elements * static_cast<int>(sizeof(T)) / 2; line += 64) {
    __builtin_prefetch(next + line, 0, 2);
  }
}

// Sums over a row of the distances from `shift`, and of their squares, in a fixed number of lanes.
// `centred` or else the distances are from 0, and only their squares are summed.
template <typename F>
struct Sums {
  F distances, squares;
};
template <bool centred, bool fetches, typename T, typename F>
inline Sums<F> sum_row(const T* x, int64_t length, F shift) {
  using V = Lanes<F>;
  constexpr int width = lane_count<F>;
  constexpr int vectors = 4;
  V sum[vectors], squares[vectors];
  for (int v = 0; v < vectors; ++v) sum[v] = squares[v] = V{};
  auto distance = [&](V value) {
    if constexpr (centred) value -= shift;
    return value;
  };
  auto add = [&](int v, V value) {
    if constexpr (centred) sum[v] += value;
    squares[v] = multiply_add(value, value, squares[v]);
  };
  int64_t i = 0;
  for (; i + width * vectors <= length; i += width * vectors) {
    if constexpr (fetches) fetch_next_row(x, length, i, width * vectors);
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v += 2) {
      LanePair<F> values = load_pair<F>(x + i + v * width);
      add(v, distance(values.first));
      add(v + 1, distance(values.second));
    }
  }
  for (int v = 0; i < length; i += width, ++v) {
    V value = distance(load_some_lanes<F>(x + i, length - i < width ? length - i : width));
    F lanes[width];
    store_vector(lanes, value);
    for (int64_t l = length - i; l < width; ++l) lanes[l] = 0;
    add(v, load_vector<V>(lanes));
  }
  auto total = [](const V* parts) {
    return add_lanes<F>((parts[0] + parts[1]) + (parts[2] + parts[3]));
  };
  return {total(sum), total(squares)};
}

// (x - shift) * factor * weight + bias
template <typename T, typename F, bool has_weight, bool has_bias, bool stream>
void write_lanes(const simd::NormRow& row, F shift, F factor) {
  using V = Lanes<F>;
  constexpr int width = lane_count<F>;
  const T* x = static_cast<const T*>(row.input);
  const T* weight = static_cast<const T*>(row.weight);
  const T* bias = static_cast<const T*>(row.bias);
  T* to = static_cast<T*>(row.output);
  // A mean that is rounded is not better subtracted first.
  const V by_all = factor - V{}, to_all = -(shift * factor) - V{};
  auto apply = [&](V value, [[maybe_unused]] V by, [[maybe_unused]] V plus) {
    value = multiply_add(value, by_all, to_all);
    if constexpr (has_weight && has_bias) return multiply_add(value, by, plus);
    if constexpr (has_weight) value *= by;
    if constexpr (has_bias) value += plus;
    return value;
  };
  int64_t i = 0;
  for (; i + 2 * width <= row.length; i += 2 * width) {
    __builtin_prefetch(x + row.length + (row.length + i) / 2, 0, 2);
    LanePair<F> value = load_pair<F>(x + i), by{}, plus{};
    if constexpr (has_weight) by = load_pair<F>(weight + i);
    if constexpr (has_bias) plus = load_pair<F>(bias + i);
    put_pair<stream>(to + i, LanePair<F>{apply(value.first, by.first, plus.first),
                                         apply(value.second, by.second, plus.second)});
  }
  for (; i < row.length; i += width) {
    int64_t count = row.length - i < width ? row.length - i : width;
    V by{}, plus{};
    if constexpr (has_weight) by = load_some_lanes<F>(weight + i, count);
    if constexpr (has_bias) plus = load_some_lanes<F>(bias + i, count);
    store_some_lanes(to + i, apply(load_some_lanes<F>(x + i, count), by, plus), count);
  }
}

template <typename T, typename F, bool has_weight, bool has_bias>
void write_row_as(const simd::NormRow& row, F shift, F factor) {
  if (row.stream) return write_lanes<T, F, has_weight, has_bias, true>(row, shift, factor);
  write_lanes<T, F, has_weight, has_bias, false>(row, shift, factor);
}

template <typename T, typename F>
void write_row(const simd::NormRow& row, F shift, F factor) {
  if (row.weight != nullptr) {
    if (row.bias != nullptr) return write_row_as<T, F, true, true>(row, shift, factor);
    return write_row_as<T, F, true, false>(row, shift, factor);
  }
  if (row.bias != nullptr) return write_row_as<T, F, false, true>(row, shift, factor);
  write_row_as<T, F, false, false>(row, shift, factor);
}

template <typename F>
inline F square_root_of(F value) {
  if constexpr (is_same<F, float>) {
    return __builtin_sqrtf(value);
  } else {
    return __builtin_sqrt(value);
  }
}

template <typename T, typename F>
void rms_row(const simd::NormRow& row) {
  Sums<F> sums = sum_row<false, true, T, F>(static_cast<const T*>(row.input), row.length, 0);
  F mean = sums.squares / static_cast<F>(row.length);
  write_row<T, F>(row, 0, 1 / square_root_of(mean + static_cast<F>(row.epsilon)));
}

// The variance is the mean square of the distances from a guess at the mean, less the square of the
// guess's own distance. With the mean of a sixteenth of the row for a guess, that square is at most
// 16 times the variance, whatever the values are: few bits can be lost.
template <typename T, typename F>
void layer_row(const simd::NormRow& row) {
  const T* x = static_cast<const T*>(row.input);
  auto length = static_cast<F>(row.length);
  int64_t some = row.length / 16 > 256 ? row.length / 16 : 256;
  if (some > row.length) some = row.length;
  F guess = sum_row<true, false, T, F>(x, some, 0).distances / static_cast<F>(some);
  Sums<F> sums = sum_row<true, true, T, F>(x, row.length, guess);
  F shift = sums.distances / length;
  F variance = sums.squares / length - shift * shift;
  if (variance < 0) variance = 0;
  write_row<T, F>(row, guess + shift, 1 / square_root_of(variance + static_cast<F>(row.epsilon)));
}

void rms(Dtype::Val dtype, const simd::NormRow& row) {
  switch (dtype) {
    case Dtype::Val::float16:
      return rms_row<Float16, float>(row);
    case Dtype::Val::bfloat16:
      return rms_row<BFloat16, float>(row);
    case Dtype::Val::float64:
      return rms_row<double, double>(row);
    default:
      return rms_row<float, float>(row);
  }
}

void layer(Dtype::Val dtype, const simd::NormRow& row) {
  switch (dtype) {
    case Dtype::Val::float16:
      return layer_row<Float16, float>(row);
    case Dtype::Val::bfloat16:
      return layer_row<BFloat16, float>(row);
    case Dtype::Val::float64:
      return layer_row<double, double>(row);
    default:
      return layer_row<float, float>(row);
  }
}

}  // namespace

extern const simd::NormKernels norm_kernels;
const simd::NormKernels norm_kernels{rms, layer};

}  // namespace holdfast::cpu::HOLDFAST_SIMD_TARGET
