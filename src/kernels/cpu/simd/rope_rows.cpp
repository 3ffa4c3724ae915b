// Rotary position embedding, compiled once per instruction set.
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/rope_kernels.h"
#include "kernels/cpu/simd/vector_math.h"

namespace holdfast::cpu::HOLDFAST_SIMD_TARGET {
namespace {

constexpr int64_t piece = 512;  // pairs converted at once

void angles(double position, const double* rates, int64_t count, float* cosines, float* sines) {
  constexpr int64_t width = double_count;
  for (int64_t i = 0; i < count; i += width) {
    DoubleVector angle = load(rates + i) * position;
    DoubleVector c = library_cos(angle), s = library_sin(angle);
    for (int64_t l = 0; l < width; ++l) {
      cosines[i + l] = static_cast<float>(c[l]);
      sines[i + l] = static_cast<float>(s[l]);
    }
  }
}

template <typename T>
void rotate_halves(const simd::RopeRow& row) {
  constexpr int width = lane_count<float>;
  const T* x = static_cast<const T*>(row.input);
  T* to = static_cast<T*>(row.output);
  struct Turned {
    Lanes<float> low, high;
  };
  auto turn = [&](auto load, int64_t i) -> Turned {
    Lanes<float> a = load(x + i), b = load(x + row.pairs + i);
    Lanes<float> c = load(row.cosines + i), s = load(row.sines + i);
    return {a * c - b * s, a * s + b * c};
  };
  auto whole = [](auto* from) { return load_lanes<float>(from); };
  int64_t i = 0;
  for (; i + 2 * width <= row.pairs; i += 2 * width) {
    Turned first = turn(whole, i), second = turn(whole, i + width);
    put_two_lanes<false>(to + i, first.low, second.low);
    put_two_lanes<false>(to + row.pairs + i, first.high, second.high);
  }
  for (; i < row.pairs; i += width) {
    int64_t count = row.pairs - i < width ? row.pairs - i : width;
    Turned some = turn([count](auto* from) { return load_some_lanes<float>(from, count); }, i);
    store_some_lanes(to + i, some.low, count);
    store_some_lanes(to + row.pairs + i, some.high, count);
  }
}

inline void store_all(const float* from, int64_t count, float* to) {
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}
inline void store_all(const float* from, int64_t count, Float16* to) { narrow(from, count, to); }
inline void store_all(const float* from, int64_t count, BFloat16* to) { narrow(from, count, to); }

template <typename T>
void rotate_neighbours(const simd::RopeRow& row) {
  const T* x = static_cast<const T*>(row.input);
  T* to = static_cast<T*>(row.output);
  float buffer[2 * piece], result[2 * piece];
  for (int64_t i = 0; i < row.pairs; i += piece) {
    int64_t count = row.pairs - i < piece ? row.pairs - i : piece;
    const float* a = as_compute(x + 2 * i, 2 * count, buffer);
    const float* c = row.cosines + i;
    const float* s = row.sines + i;
    HOLDFAST_VECTORISE
    for (int64_t j = 0; j < count; ++j) {
      float even = a[2 * j], odd = a[2 * j + 1];
      result[2 * j] = even * c[j] - odd * s[j];
      result[2 * j + 1] = even * s[j] + odd * c[j];
    }
    store_all(result, 2 * count, to + 2 * i);
  }
}

template <typename T>
void rotate_row(bool traditional, const simd::RopeRow& row) {
  if (traditional) {
    rotate_neighbours<T>(row);
  } else {
    rotate_halves<T>(row);
  }
  int64_t done = 2 * row.pairs;
  std::memcpy(static_cast<T*>(row.output) + done, static_cast<const T*>(row.input) + done,
              static_cast<size_t>(row.length - done) * sizeof(T));
}

void rotate(Dtype::Val dtype, bool traditional, const simd::RopeRow& row) {
  switch (dtype) {
    case Dtype::Val::float16:
      return rotate_row<Float16>(traditional, row);
    case Dtype::Val::bfloat16:
      return rotate_row<BFloat16>(traditional, row);
    default:
      return rotate_row<float>(traditional, row);
  }
}

}  // namespace

extern const simd::RopeKernels rope_kernels;
const simd::RopeKernels rope_kernels{angles, rotate};

}  // namespace holdfast::cpu::HOLDFAST_SIMD_TARGET
