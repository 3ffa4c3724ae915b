// Normalisation of one row, compiled once per instruction set.
//
// A row is read two or three times, from the cache after the first; half types are widened again in
// each pass, which costs less than keeping the floats. The first and the last pass fetch the next
// row, half of it each.
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/norm_kernels.h"

namespace holdfast::cpu::HOLDFAST_SIMD_TARGET {
namespace {

// The sum over a row of term(x), in a fixed number of lanes. Lanes behind the row's end are 0.
template <bool fetches, typename T, typename F, typename Term>
inline F sum_row(const T* x, int64_t length, const Term& term) {
  using V = Lanes<F>;
  constexpr int width = lane_count<F>;
  constexpr int vectors = 4;
  V sum[vectors];
  for (int v = 0; v < vectors; ++v) sum[v] = V{};
  int64_t i = 0;
  for (; i + width * vectors <= length; i += width * vectors) {
    if constexpr (fetches) {
      const char* next = reinterpret_cast<const char*>(x + length + i / 2);
      for (int line = 0; line < width * vectors * static_cast<int>(sizeof(T)) / 2; line += 64) {
        __builtin_prefetch(next + line, 0, 2);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sum[v] += term(load_lanes<F>(x + i + v * width));
  }
  for (int v = 0; i < length; i += width, ++v) {
    if (length - i >= width) {
      sum[v] += term(load_lanes<F>(x + i));
    } else {
      F lanes[width];
      store_vector(lanes, term(load_some_lanes<F>(x + i, length - i)));
      for (int64_t l = length - i; l < width; ++l) lanes[l] = 0;
      sum[v] += load_vector<V>(lanes);
    }
  }
  return add_lanes<F>((sum[0] + sum[1]) + (sum[2] + sum[3]));
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
  auto apply = [&](auto load, int64_t i) {
    V value = (load(x + i) - shift) * factor;
    if constexpr (has_weight) value *= load(weight + i);
    if constexpr (has_bias) value += load(bias + i);
    return value;
  };
  auto whole = [](const T* from) { return load_lanes<F>(from); };
  int64_t i = 0;
  for (; i + 2 * width <= row.length; i += 2 * width) {
    __builtin_prefetch(x + row.length + (row.length + i) / 2, 0, 2);
    V first = apply(whole, i), second = apply(whole, i + width);
    put_two_lanes<stream>(to + i, first, second);
  }
  for (; i + width <= row.length; i += width) store_lanes(to + i, apply(whole, i));
  if (i < row.length) {
    int64_t count = row.length - i;
    auto load = [count](const T* from) { return load_some_lanes<F>(from, count); };
    store_some_lanes(to + i, apply(load, i), count);
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
  F total = sum_row<true, T, F>(static_cast<const T*>(row.input), row.length,
                                [](auto x) { return x * x; });
  F mean = total / static_cast<F>(row.length);
  write_row<T, F>(row, 0, 1 / square_root_of(mean + static_cast<F>(row.epsilon)));
}

template <typename T, typename F>
void layer_row(const simd::NormRow& row) {
  const T* x = static_cast<const T*>(row.input);
  F mean = sum_row<true, T, F>(x, row.length, [](auto value) { return value; }) /
           static_cast<F>(row.length);
  F total = sum_row<false, T, F>(x, row.length, [mean](auto value) {
    auto distance = value - mean;
    return distance * distance;
  });
  F variance = total / static_cast<F>(row.length);
  write_row<T, F>(row, mean, 1 / square_root_of(variance + static_cast<F>(row.epsilon)));
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
