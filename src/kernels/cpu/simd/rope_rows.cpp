// Rotary position embedding, compiled once per instruction set.
#include "kernels/cpu/copy.h"
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/rope_kernels.h"
#include "kernels/cpu/simd/vector_math.h"

namespace holdfast::cpu::HOLDFAST_SIMD_TARGET {
namespace {

constexpr int64_t piece = 512;  // pairs converted at once

inline void store_floats(float* to, DoubleVector values) {
#if defined(__AVX512F__)
  _mm256_storeu_ps(to, _mm512_maskz_cvtpd_ps(0xff, (__m512d)values));
#elif defined(__AVX2__)
  _mm_storeu_ps(to, _mm256_cvtpd_ps((__m256d)values));
#else
  for (int l = 0; l < double_count; ++l) to[l] = static_cast<float>(values[l]);
#endif
}

void angles(const simd::RopeAngles& given) {
  for (int64_t i = 0; i < given.count; i += double_count) {
    DoubleVector rate = load(given.rates + i);
    DoubleVector c = library_cos(rate * given.position), s = library_sin(rate * given.position);
    store_floats(given.cosines + i, c);
    store_floats(given.sines + i, s);
    if (given.positions == 1) continue;
    DoubleVector by = library_cos(rate * given.step), plus = library_sin(rate * given.step);
    for (int64_t p = 1; p < given.positions; ++p) {
      DoubleVector turned = multiply_add(c, by, -(s * plus));
      s = multiply_add(s, by, c * plus);
      c = turned;
      store_floats(given.cosines + p * given.count + i, c);
      store_floats(given.sines + p * given.count + i, s);
    }
  }
}

// One of the rows.
template <typename T>
struct Row {
  const T* x;
  T* to;
  const float* cosines;
  const float* sines;
  int64_t pairs;
};

// Two neighbouring vectors.
template <typename T>
inline LanePair<float> load_two_lanes(const T* from) {
#if defined(__AVX512F__)
  if constexpr (is_same<T, BFloat16>) {
    FloatPair values = widen_bfloat16(_mm512_loadu_si512(from));
    return {(Lanes<float>)values.first, (Lanes<float>)values.second};
  }
#endif
  return {load_lanes<float>(from), load_lanes<float>(from + lane_count<float>)};
}

struct Turned {
  Lanes<float> low, high;
};
inline Turned turn(Lanes<float> a, Lanes<float> b, Lanes<float> c, Lanes<float> s) {
  return {multiply_add(a, c, -(b * s)), multiply_add(a, s, b * c)};
}

template <bool stream, typename T>
HOLDFAST_INLINE void rotate_halves(const Row<T>& row) {
  constexpr int width = lane_count<float>;
  const T *low = row.x, *high = row.x + row.pairs;
  int64_t i = 0;
  for (; i + 2 * width <= row.pairs; i += 2 * width) {
    LanePair<float> a = load_two_lanes(low + i), b = load_two_lanes(high + i);
    LanePair<float> c = load_two_lanes(row.cosines + i), s = load_two_lanes(row.sines + i);
    Turned first = turn(a.first, b.first, c.first, s.first);
    Turned second = turn(a.second, b.second, c.second, s.second);
    put_two_lanes<stream>(row.to + i, first.low, second.low);
    put_two_lanes<stream>(row.to + row.pairs + i, first.high, second.high);
  }
  for (; i < row.pairs; i += width) {
    int64_t count = row.pairs - i < width ? row.pairs - i : width;
    auto load = [count](auto* from) { return load_some_lanes<float>(from, count); };
    Turned some = turn(load(low + i), load(high + i), load(row.cosines + i), load(row.sines + i));
    store_some_lanes(row.to + i, some.low, count);
    store_some_lanes(row.to + row.pairs + i, some.high, count);
  }
}

inline void store_all(const float* from, int64_t count, float* to) {
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}
inline void store_all(const float* from, int64_t count, Float16* to) { narrow(from, count, to); }
inline void store_all(const float* from, int64_t count, BFloat16* to) { narrow(from, count, to); }

template <typename T>
void rotate_neighbours(const Row<T>& row) {
  float buffer[2 * piece], result[2 * piece];
  for (int64_t i = 0; i < row.pairs; i += piece) {
    int64_t count = row.pairs - i < piece ? row.pairs - i : piece;
    const float* a = as_compute(row.x + 2 * i, 2 * count, buffer);
    const float* c = row.cosines + i;
    const float* s = row.sines + i;
    HOLDFAST_VECTORISE
    for (int64_t j = 0; j < count; ++j) {
      float even = a[2 * j], odd = a[2 * j + 1];
      result[2 * j] = even * c[j] - odd * s[j];
      result[2 * j + 1] = even * s[j] + odd * c[j];
    }
    store_all(result, 2 * count, row.to + 2 * i);
  }
}

constexpr int64_t staged_bytes = int64_t{16} << 10;

template <typename T>
void rotate_rows(bool traditional, const simd::RopeRows& rows) {
  int64_t done = 2 * rows.pairs;
  size_t half_bytes = static_cast<size_t>(rows.pairs) * sizeof(T);
  size_t row_bytes = static_cast<size_t>(rows.length) * sizeof(T);
  // Straight past the cache where both halves of all rows begin at multiples of 64 bytes; else by
  // way of a row in the cache.
  bool straight = vector_bytes == 64 && rows.stream && !traditional &&
                  (reinterpret_cast<uintptr_t>(rows.output) | half_bytes | row_bytes) % 64 == 0;
  bool staged = rows.stream && !straight && row_bytes >= 256 && row_bytes <= staged_bytes;
  alignas(64) char stage[staged_bytes];
  for (int64_t p = 0; p < rows.positions; ++p) {
    T* to = static_cast<T*>(rows.output) + p * rows.length;
    Row<T> row{static_cast<const T*>(rows.input) + p * rows.input_stride,
               staged ? reinterpret_cast<T*>(stage) : to, rows.cosines + p * rows.angle_stride,
               rows.sines + p * rows.angle_stride, rows.pairs};
    const char* next = reinterpret_cast<const char*>(row.x) + rows.next;
    for (size_t i = 0; i < row_bytes; i += 64) __builtin_prefetch(next + i, 0, 2);
    if (traditional) {
      rotate_neighbours(row);
    } else if (straight) {
      rotate_halves<true>(row);
    } else {
      rotate_halves<false>(row);
    }
    if (done < rows.length) {
      std::memcpy(row.to + done, row.x + done, static_cast<size_t>(rows.length - done) * sizeof(T));
    }
    if (staged) stream_block(to, stage, row_bytes);
  }
}

void rotate(Dtype::Val dtype, bool traditional, const simd::RopeRows& rows) {
  switch (dtype) {
    case Dtype::Val::float16:
      return rotate_rows<Float16>(traditional, rows);
    case Dtype::Val::bfloat16:
      return rotate_rows<BFloat16>(traditional, rows);
    default:
      return rotate_rows<float>(traditional, rows);
  }
}

}  // namespace

extern const simd::RopeKernels rope_kernels;
const simd::RopeKernels rope_kernels{angles, rotate};

}  // namespace holdfast::cpu::HOLDFAST_SIMD_TARGET
