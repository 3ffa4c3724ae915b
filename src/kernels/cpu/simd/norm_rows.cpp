// Normalisation of one row, compiled once per instruction set.
//
// A row is read two or three times, from the cache after the first; half types are widened again in
// each pass, which costs less than keeping the floats.
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/norm_kernels.h"

namespace holdfast::cpu::HOLDFAST_SIMD_TARGET {
namespace {

constexpr int64_t piece = 1024;  // elements converted at once

template <typename F>
inline F add_lanes(typename NativeVector<F>::type total) {
  constexpr int width = vector_bytes / sizeof(F);
  F lanes[width];
  store_vector(lanes, total);
  for (int half = width / 2; half >= 1; half /= 2) {
    for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

// The sum over a piece of term(x), in a fixed number of lanes.
template <typename F, typename Term>
inline F sum_piece(const F* x, int64_t count, const Term& term) {
  using V = typename NativeVector<F>::type;
  constexpr int width = vector_bytes / sizeof(F);
  constexpr int vectors = 4;
  V sum[vectors];
  for (int v = 0; v < vectors; ++v) sum[v] = V{};
  int64_t i = 0;
  for (; i + width * vectors <= count; i += width * vectors) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sum[v] += term(load_vector<V>(x + i + v * width));
  }
  for (int v = 0; i + width <= count; i += width, ++v) sum[v] += term(load_vector<V>(x + i));
  F result = add_lanes<F>((sum[0] + sum[1]) + (sum[2] + sum[3]));
  for (; i < count; ++i) result += term(x[i]);
  return result;
}

template <typename T, typename F, typename Term>
inline F sum_row(const T* x, int64_t length, const Term& term) {
  constexpr bool converts = !is_same<T, F>;
  F buffer[converts ? piece : 1];
  F total = 0;
  for (int64_t i = 0; i < length; i += piece) {
    int64_t count = length - i < piece ? length - i : piece;
    total += sum_piece(as_compute(x + i, count, buffer), count, term);
  }
  return total;
}

// (x - shift) * factor * weight + bias
template <typename T, typename F>
void write_row(const simd::NormRow& row, F shift, F factor) {
  constexpr bool converts = !is_same<T, F>;
  const T* x = static_cast<const T*>(row.input);
  const T* weight = static_cast<const T*>(row.weight);
  const T* bias = static_cast<const T*>(row.bias);
  T* to = static_cast<T*>(row.output);
  F values[converts ? piece : 1], weights[converts ? piece : 1], result[converts ? piece : 1];
  for (int64_t i = 0; i < row.length; i += piece) {
    int64_t count = row.length - i < piece ? row.length - i : piece;
    const F* from = as_compute(x + i, count, values);
    F* out;
    if constexpr (converts) {
      out = result;
    } else {
      out = to + i;
    }
    if (weight != nullptr) {
      const F* w = as_compute(weight + i, count, weights);
      HOLDFAST_VECTORISE
      for (int64_t j = 0; j < count; ++j) out[j] = (from[j] - shift) * factor * w[j];
    } else {
      HOLDFAST_VECTORISE
      for (int64_t j = 0; j < count; ++j) out[j] = (from[j] - shift) * factor;
    }
    if (bias != nullptr) {
      const F* b = as_compute(bias + i, count, weights);
      HOLDFAST_VECTORISE
      for (int64_t j = 0; j < count; ++j) out[j] += b[j];
    }
    if constexpr (converts) narrow(result, count, to + i);
  }
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
  F total =
      sum_row<T, F>(static_cast<const T*>(row.input), row.length, [](auto x) { return x * x; });
  F mean = total / static_cast<F>(row.length);
  write_row<T, F>(row, 0, 1 / square_root_of(mean + static_cast<F>(row.epsilon)));
}

template <typename T, typename F>
void layer_row(const simd::NormRow& row) {
  const T* x = static_cast<const T*>(row.input);
  F mean =
      sum_row<T, F>(x, row.length, [](auto value) { return value; }) / static_cast<F>(row.length);
  F total = sum_row<T, F>(x, row.length, [mean](auto value) {
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
