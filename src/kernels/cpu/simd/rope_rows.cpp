// Rotary position embedding, compiled once per instruction set.
#include "kernels/cpu/copy.h"
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/rope_kernels.h"
#include "kernels/cpu/simd/vector_math.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
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

// Heads that are turned side by side share the loads of their angles, and give the memory several
// places to read from.
constexpr int together = vector_bytes == 64 ? 2 : 1;
// How far ahead memory is asked for.
constexpr int64_t fetch_bytes = 8192;

// The rows of a position, of one head or several.
template <typename T, int heads>
struct Rows {
  const T* x[heads];
  T* to[heads];
  const float* cosines;
  const float* sines;
  int64_t pairs;
};

struct Turned {
  Lanes<float> low, high;
};
inline Turned turn(Lanes<float> a, Lanes<float> b, Lanes<float> c, Lanes<float> s) {
  return {multiply_add(a, c, -(b * s)), multiply_add(a, s, b * c)};
}

// Angles are in the order of load_pair<float, T>.
template <bool stream, typename T, int heads>
HOLDFAST_INLINE void rotate_halves(const Rows<T, heads>& rows) {
  constexpr int width = lane_count<float>;
  int64_t i = 0;
  for (; i + 2 * width <= rows.pairs; i += 2 * width) {
    LanePair<float> c = load_pair<float>(rows.cosines + i), s = load_pair<float>(rows.sines + i);
    LanePair<float> low[heads], high[heads];
    // All are loaded before the first is stored: heads often lie multiples of 4096 bytes apart, and
    // a load waits for an earlier store to such a place.
#pragma GCC unroll 4
    for (int h = 0; h < heads; ++h) {
      LanePair<float> a = load_pair<float>(rows.x[h] + i);
      LanePair<float> b = load_pair<float>(rows.x[h] + rows.pairs + i);
      Turned first = turn(a.first, b.first, c.first, s.first);
      Turned second = turn(a.second, b.second, c.second, s.second);
      low[h] = {first.low, second.low};
      high[h] = {first.high, second.high};
    }
#pragma GCC unroll 4
    for (int h = 0; h < heads; ++h) {
      put_pair<stream>(rows.to[h] + i, low[h]);
      put_pair<stream>(rows.to[h] + rows.pairs + i, high[h]);
    }
  }
  for (; i < rows.pairs; i += width) {
    int64_t count = rows.pairs - i < width ? rows.pairs - i : width;
    auto load = [count](auto* from) { return load_some_lanes<float>(from, count); };
    Lanes<float> c = load(rows.cosines + i), s = load(rows.sines + i);
    for (int h = 0; h < heads; ++h) {
      Turned some = turn(load(rows.x[h] + i), load(rows.x[h] + rows.pairs + i), c, s);
      store_some_lanes(rows.to[h] + i, some.low, count);
      store_some_lanes(rows.to[h] + rows.pairs + i, some.high, count);
    }
  }
}

inline void store_all(const float* from, int64_t count, float* to) {
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}
inline void store_all(const float* from, int64_t count, Float16* to) { narrow(from, count, to); }
inline void store_all(const float* from, int64_t count, BFloat16* to) { narrow(from, count, to); }

template <typename T>
void rotate_neighbours(const T* x, T* to, const float* cosines, const float* sines, int64_t pairs) {
  float buffer[2 * piece], result[2 * piece];
  for (int64_t i = 0; i < pairs; i += piece) {
    int64_t count = pairs - i < piece ? pairs - i : piece;
    const float* a = as_compute(x + 2 * i, 2 * count, buffer);
    const float* c = cosines + i;
    const float* s = sines + i;
    HOLDFAST_VECTORISE
    for (int64_t j = 0; j < count; ++j) {
      float even = a[2 * j], odd = a[2 * j + 1];
      result[2 * j] = even * c[j] - odd * s[j];
      result[2 * j + 1] = even * s[j] + odd * c[j];
    }
    store_all(result, 2 * count, to + 2 * i);
  }
}

constexpr int64_t staged_bytes = int64_t{16} << 10;

template <typename T>
HOLDFAST_INLINE const T* input_row(const simd::RopeRows& rows, int64_t head, int64_t position) {
  return static_cast<const T*>(rows.input) + head * rows.input_head_stride +
         position * rows.input_stride;
}

// Asks for the rows that these heads, or the next ones, come to `ahead` rows later. Inlined by
// force: g++ takes a function that only fetches for one that does nothing.
template <typename T, int heads>
HOLDFAST_INLINE void fetch(const simd::RopeRows& rows, int64_t first, int64_t position,
                           int64_t ahead) {
  position += ahead;
  if (position >= rows.positions) {
    position -= rows.positions;
    first += heads;
  }
  if (first + heads > rows.heads) return;
  for (int h = 0; h < heads; ++h) {
    const T* from = input_row<T>(rows, first + h, position);
    for (int64_t i = 0; i < rows.length; i += 64 / static_cast<int64_t>(sizeof(T))) {
      __builtin_prefetch(from + i, 0, 2);
    }
  }
}

template <typename T>
class Rotation {
 public:
  Rotation(bool traditional, const simd::RopeRows& rows)
      : all_(rows),
        traditional_(traditional),
        row_bytes_(static_cast<size_t>(rows.length) * sizeof(T)),
        rest_(static_cast<size_t>(rows.length - 2 * rows.pairs) * sizeof(T)) {
    int64_t fetch = fetch_bytes / static_cast<int64_t>(row_bytes_);
    ahead_ = fetch < 1 ? 1 : fetch < rows.positions ? fetch : rows.positions;
  }

  void run() {
    auto half_bytes = static_cast<size_t>(all_.pairs) * sizeof(T);
    auto head_bytes = static_cast<size_t>(all_.output_head_stride) * sizeof(T);
    auto place = reinterpret_cast<uintptr_t>(all_.output) | half_bytes | row_bytes_ | head_bytes;
    // Straight past the cache where both halves of all rows begin at multiples of 64 bytes; else by
    // way of a row in the cache.
    bool straight = vector_bytes == 64 && all_.stream && !traditional_ && place % 64 == 0;
    staged_ = all_.stream && !straight && row_bytes_ >= 256 && row_bytes_ <= staged_bytes;
    int64_t head = 0;
    if (!traditional_ && !staged_) {
      for (; head + together <= all_.heads; head += together) {
        straight ? turn_heads<true, together>(head) : turn_heads<false, together>(head);
      }
    }
    for (; head < all_.heads; ++head) {
      straight ? turn_heads<true, 1>(head) : turn_heads<false, 1>(head);
    }
  }

 private:
  template <bool stream, int heads>
  void turn_heads(int64_t first) {
    alignas(64) char stage[staged_bytes];
    for (int64_t p = 0; p < all_.positions; ++p) {
      fetch<T, heads>(all_, first, p, ahead_);
      const int64_t angles = p * all_.angle_stride;
      Rows<T, heads> rows{{}, {}, all_.cosines + angles, all_.sines + angles, all_.pairs};
      T* to[heads];
      for (int h = 0; h < heads; ++h) {
        rows.x[h] = input_row<T>(all_, first + h, p);
        to[h] =
            static_cast<T*>(all_.output) + (first + h) * all_.output_head_stride + p * all_.length;
        rows.to[h] = staged_ ? reinterpret_cast<T*>(stage) : to[h];
      }
      if (traditional_) {
        rotate_neighbours(rows.x[0], rows.to[0], rows.cosines, rows.sines, rows.pairs);
      } else {
        rotate_halves<stream>(rows);
      }
      for (int h = 0; h < heads; ++h) {
        if (rest_ > 0) {
          std::memcpy(rows.to[h] + 2 * all_.pairs, rows.x[h] + 2 * all_.pairs, rest_);
        }
        if (staged_) stream_block(to[h], stage, row_bytes_);
      }
    }
  }

  const simd::RopeRows all_;
  const bool traditional_;
  bool staged_ = false;
  const size_t row_bytes_, rest_;
  int64_t ahead_;
};

// Calls f with an element of the dtype.
template <typename F>
void as_element(Dtype::Val dtype, const F& f) {
  switch (dtype) {
    case Dtype::Val::float16:
      return f(Float16{});
    case Dtype::Val::bfloat16:
      return f(BFloat16{});
    default:
      return f(0.0f);
  }
}

void rotate(Dtype::Val dtype, bool traditional, const simd::RopeRows& rows) {
  as_element(dtype, [&]<typename T>(T) { Rotation<T>(traditional, rows).run(); });
}

void arrange(Dtype::Val dtype, bool traditional, int64_t pairs, double* rates) {
  if (traditional) return;
  as_element(dtype, [&]<typename T>(T) { split_lanes<T, float>(rates, pairs); });
}

}  // namespace

extern const simd::RopeKernels rope_kernels;
const simd::RopeKernels rope_kernels{arrange, angles, rotate};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
