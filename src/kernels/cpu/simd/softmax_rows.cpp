// Softmax, compiled once per instruction set.
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/softmax_kernels.h"
#include "kernels/cpu/simd/vector_math.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
namespace {

constexpr int64_t piece = 1024;  // elements converted at once

template <typename F>
struct Registers;
template <>
struct Registers<float> {
  using V = FloatVector;
};
template <>
struct Registers<double> {
  using V = DoubleVector;
};

// `count` < width elements, the other lanes -infinity: they neither change a maximum nor a sum.
template <typename F>
inline typename Registers<F>::V load_tail(const F* x, int64_t count) {
  constexpr int width = register_size / sizeof(F);
  F lanes[width];
  for (int l = 0; l < width; ++l) lanes[l] = l < count ? x[l] : static_cast<F>(-__builtin_inf());
  return load(lanes);
}

template <typename F, typename V>
inline void store_tail(F* to, V value, int64_t count) {
  F lanes[register_size / sizeof(F)];
  store(lanes, value);
  for (int64_t l = 0; l < count; ++l) to[l] = lanes[l];
}

template <typename F>
inline void store_past_cache(F* to, typename Registers<F>::V value) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), (__m512i)value);
#elif defined(__AVX2__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), (__m256i)value);
#elif defined(__x86_64__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), (__m128i)value);
#else
  store(to, value);
#endif
}

template <typename F>
inline F maximum_of(const F* x, int64_t count, F so_far) {
  using V = typename Registers<F>::V;
  constexpr int width = register_size / sizeof(F);
  constexpr int vectors = 4;
  V best[vectors];
  for (int v = 0; v < vectors; ++v) best[v] = broadcast(static_cast<F>(-__builtin_inf()));
  int64_t i = 0;
  for (; i + width * vectors <= count; i += width * vectors) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      V value = load(x + i + v * width);
      best[v] = value > best[v] ? value : best[v];
    }
  }
  for (; i < count; i += width) {
    V value = count - i >= width ? load(x + i) : load_tail(x + i, count - i);
    best[0] = value > best[0] ? value : best[0];
  }
  for (int v = 1; v < vectors; ++v) best[0] = best[v] > best[0] ? best[v] : best[0];
  for (int l = 0; l < width; ++l) so_far = best[0][l] > so_far ? best[0][l] : so_far;
  return so_far;
}

// Adds exp(x - shift) of the elements from i on, which fill no step of all sums, and adds up the
// lanes in a fixed order. The exponentials go to `keep`, unless that is null.
template <typename F, typename V, size_t vectors>
inline F finish_sum(V (&sums)[vectors], const F* x, int64_t i, int64_t count, V shift, F* keep) {
  constexpr int width = register_size / sizeof(F);
  for (int v = 0; i < count; i += width, ++v) {
    bool whole = count - i >= width;
    V value = exponential((whole ? load(x + i) : load_tail(x + i, count - i)) - shift);
    if (keep != nullptr) {
      if (whole) {
        store(keep + i, value);
      } else {
        store_tail(keep + i, value, count - i);
      }
    }
    sums[v] += value;
  }
  F lanes[width * vectors];
  for (size_t v = 0; v < vectors; ++v) store(lanes + v * width, sums[v]);
  for (size_t half = width * vectors / 2; half >= 1; half /= 2) {
    for (size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

// The sum of exp(x - maximum) in a fixed number of lanes. With `keeps` the exponentials go to
// `keep`, and the row at `next` is fetched into the cache on the way.
template <typename F, bool keeps>
inline F sum_of(const F* x, int64_t count, F maximum, F* keep, [[maybe_unused]] const char* next) {
  using V = typename Registers<F>::V;
  constexpr int width = register_size / sizeof(F);
  constexpr int vectors = 128 / register_size;
  V shift = broadcast(maximum);
  V sums[vectors];
  for (int v = 0; v < vectors; ++v) sums[v] = V{};
  int64_t i = 0;
  for (; i + width * vectors <= count; i += width * vectors) {
    if constexpr (keeps) {
      __builtin_prefetch(next + i * sizeof(F), 0, 2);
      __builtin_prefetch(next + i * sizeof(F) + 64, 0, 2);
    }
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      V value = exponential(load(x + i + v * width) - shift);
      if constexpr (keeps) store(keep + i + v * width, value);
      sums[v] += value;
    }
  }
  return finish_sum(sums, x, i, count, shift, keeps ? keep : nullptr);
}

template <typename F>
inline void write_of(const F* x, int64_t count, F maximum, F factor, F* to) {
  using V = typename Registers<F>::V;
  constexpr int width = register_size / sizeof(F);
  V shift = broadcast(maximum);
  int64_t i = 0;
  for (; i + width <= count; i += width) store(to + i, exponential(load(x + i) - shift) * factor);
  if (i < count)
    store_tail(to + i, exponential(load_tail(x + i, count - i) - shift) * factor, count - i);
}

// How far ahead of the maximum memory is asked for, in bytes.
constexpr int64_t fetch_ahead = 16384;

// The larger of both, `best` when one is NaN.
inline FloatVector larger_of(FloatVector value, FloatVector best) {
#if defined(__AVX512F__)
  return (FloatVector)_mm512_maskz_max_ps(0xffff, (__m512)value, (__m512)best);
#else
  return value > best ? value : best;
#endif
}
inline DoubleVector larger_of(DoubleVector value, DoubleVector best) {
  return value > best ? value : best;
}

// Three rows on their way: writes the exponentials in `kept` times `factor`, puts those of `next`,
// whose maximum is `best`, in their place, and makes `best` the maximum of `after`. So memory is
// read and written evenly while there is arithmetic to do. Gives the sum of the exponentials, as
// sum_of.
template <bool stream, typename F>
inline F advance_rows(F* kept, F factor, F* to, const F* next, const F* after, int64_t length,
                      F& best) {
  using V = typename Registers<F>::V;
  constexpr int width = register_size / sizeof(F);
  constexpr int vectors = 128 / register_size;
  V shift = broadcast(best), largest[vectors], sums[vectors];
  for (int v = 0; v < vectors; ++v) {
    largest[v] = broadcast(static_cast<F>(-__builtin_inf()));
    sums[v] = V{};
  }
  int64_t i = 0;
  for (; i + width * vectors <= length; i += width * vectors) {
    const char* far = reinterpret_cast<const char*>(after + i) + fetch_ahead;
    __builtin_prefetch(far, 0, 2);
    __builtin_prefetch(far + 64, 0, 2);
    V scaled[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      F* place = kept + i + v * width;
      scaled[v] = load(place) * factor;
      largest[v] = larger_of(load(after + i + v * width), largest[v]);
      V value = exponential(load(next + i + v * width) - shift);
      store(place, value);
      sums[v] += value;
    }
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      if constexpr (stream) {
        store_past_cache(to + i + v * width, scaled[v]);
      } else {
        store(to + i + v * width, scaled[v]);
      }
    }
  }
  for (int64_t k = i; k < length; ++k) to[k] = kept[k] * factor;
  best = maximum_of(after + i, length - i, static_cast<F>(-__builtin_inf()));
  for (int v = 1; v < vectors; ++v) largest[0] = larger_of(largest[v], largest[0]);
  for (int l = 0; l < width; ++l) best = largest[0][l] > best ? largest[0][l] : best;
  return finish_sum(sums, next, i, length, shift, kept);
}

template <bool stream, typename F>
inline void scale(const F* from, int64_t count, F factor, F* to) {
  constexpr int width = register_size / sizeof(F);
  int64_t i = 0;
  if constexpr (stream) {
    for (; i + width <= count; i += width) store_past_cache(to + i, load(from + i) * factor);
  }
  for (; i < count; ++i) to[i] = from[i] * factor;
}

#if defined(__AVX512F__)
// A whole row of a half type, a line of memory at a time; exponentials are as exact as the results.
// Lines are 32 elements; the last one is filled up with -infinity, which changes nothing.

constexpr int64_t line_elements = 32;

inline uint16_t minus_infinity(BFloat16) { return 0xff80; }
inline uint16_t minus_infinity(Float16) { return 0xfc00; }

template <typename T>
inline __m512i load_last_line(const T* from, int64_t count) {
  auto mask = static_cast<__mmask32>((uint64_t{1} << count) - 1);
  return _mm512_mask_loadu_epi16(_mm512_set1_epi16(static_cast<int16_t>(minus_infinity(T{}))), mask,
                                 from);
}

// The bits of a half type as integers of the same order, and back.
inline __m512i ordered(__m512i bits) {
  __m512i sign = _mm512_srai_epi16(bits, 15);
  return _mm512_xor_si512(bits, _mm512_and_si512(sign, _mm512_set1_epi16(INT16_MAX)));
}

// A maximum of bits, over several lines.
struct HalfMaximum {
  __m512i best = _mm512_set1_epi16(INT16_MIN);
  void add(__m512i line) { best = _mm512_max_epi16(best, ordered(line)); }
  template <typename T>
  float value(T) const {
    alignas(64) int16_t words[line_elements];
    _mm512_store_si512(words, best);
    int16_t largest = words[0];
    for (int16_t word : words) largest = word > largest ? word : largest;
    int16_t bits = largest < 0 ? static_cast<int16_t>(largest ^ INT16_MAX) : largest;
    return to_float(T{static_cast<uint16_t>(bits)});
  }
};

template <bool stream, typename T>
inline void scale_half_row(const float* from, int64_t length, float factor, T* to) {
  int64_t i = 0;
  auto scaled = [&] {
    return LanePair<float>{load(from + i) * factor, load(from + i + 16) * factor};
  };
  for (; i + line_elements <= length; i += line_elements) put_pair<stream>(to + i, scaled());
  if (i < length) {
    T last[line_elements];
    put_pair<false>(last, scaled());
    std::memcpy(to + i, last, static_cast<size_t>(length - i) * sizeof(T));
  }
}

// As advance_rows. Without `writes` there is nothing in `kept` yet.
template <bool stream, bool writes, typename T>
inline float advance_half_rows(float* kept, float factor, T* to, const T* next, const T* after,
                               int64_t length, float& best) {
  FloatVector sums[2] = {};
  HalfMaximum largest;
  auto add = [&](const T* from, int64_t i) {
    LanePair<float> values = load_pair<float>(from);
    FloatVector first = half_exponential(values.first - best);
    FloatVector second = half_exponential(values.second - best);
    store(kept + i, first);
    store(kept + i + 16, second);
    sums[0] += first;
    sums[1] += second;
  };
  int64_t i = 0;
  for (; i + line_elements <= length; i += line_elements) {
    __builtin_prefetch(reinterpret_cast<const char*>(after + i) + fetch_ahead, 0, 2);
    largest.add(_mm512_loadu_si512(after + i));
    LanePair<float> scaled{};
    if constexpr (writes) scaled = {load(kept + i) * factor, load(kept + i + 16) * factor};
    add(next + i, i);
    if constexpr (writes) put_pair<stream>(to + i, scaled);
  }
  if (i < length) {
    if constexpr (writes) scale_half_row<false>(kept + i, length - i, factor, to + i);
    largest.add(load_last_line(after + i, length - i));
    T last[line_elements];
    _mm512_storeu_si512(last, load_last_line(next + i, length - i));
    add(last, i);
  }
  best = largest.value(T{});
  return add_lanes<float>(sums[0] + sums[1]);
}

// With `stream`, past the cache: then rows of `to` are aligned to 64 bytes.
template <bool stream, typename T>
void half_rows(const T* x, int64_t stride, int64_t length, int64_t count, T* to,
               int64_t to_stride) {
  alignas(64) float kept[simd::softmax_row_limit + line_elements];
  auto row = [&](int64_t r) { return x + (r < count ? r : count - 1) * stride; };
  HalfMaximum largest;
  int64_t i = 0;
  for (; i + line_elements <= length; i += line_elements) largest.add(_mm512_loadu_si512(x + i));
  if (i < length) largest.add(load_last_line(x + i, length - i));
  float best = largest.value(T{});
  float total = advance_half_rows<stream, false>(kept, 0.0f, to, x, row(1), length, best);
  for (int64_t r = 0; r + 1 < count; ++r, to += to_stride) {
    total =
        advance_half_rows<stream, true>(kept, 1 / total, to, row(r + 1), row(r + 2), length, best);
  }
  scale_half_row<stream>(kept, length, 1 / total, to);
}
#else
template <bool, typename T>
void half_rows(const T* x, int64_t stride, int64_t length, int64_t count, T* to,
               int64_t to_stride) {
  alignas(64) float buffer[simd::softmax_row_limit];
  for (int64_t r = 0; r < count; ++r, x += stride, to += to_stride) {
    widen(x, length, buffer);
    float best = maximum_of(buffer, length, -__builtin_inff());
    float total = sum_of<float, true>(buffer, length, best, buffer,
                                      reinterpret_cast<const char*>(x + length));
    float factor = 1 / total;
    for (int64_t i = 0; i < length; ++i) buffer[i] *= factor;
    narrow(buffer, length, to);
  }
}
#endif

template <typename T, typename F>
struct Softmax {
  static constexpr bool converts = !is_same<T, F>;

  static void rows(const simd::SoftmaxRows& all) {
    constexpr size_t line = 64;
    bool aligned = reinterpret_cast<uintptr_t>(all.output) % line == 0 &&
                   static_cast<size_t>(all.output_stride) * sizeof(T) % line == 0;
    const auto* x = static_cast<const T*>(all.input);
    auto* to = static_cast<T*>(all.output);
    auto run = [&](auto rows_of) {
      rows_of(x, all.input_stride, all.length, all.count, to, all.output_stride);
    };
    const bool streams = all.stream && aligned;
    if constexpr (converts) {
      run(streams ? half_rows<true, T> : half_rows<false, T>);
    } else {
      run(streams ? float_rows<true> : float_rows<false>);
    }
  }

  template <bool stream>
  static void float_rows(const F* x, int64_t stride, int64_t length, int64_t count, F* to,
                         int64_t to_stride) {
    alignas(64) F kept[simd::softmax_row_limit];
    auto row = [&](int64_t r) { return x + (r < count ? r : count - 1) * stride; };
    const F lowest = static_cast<F>(-__builtin_inf());
    F best = maximum_of(x, length, lowest);
    F total = sum_of<F, true>(x, length, best, kept, reinterpret_cast<const char*>(row(1)));
    best = maximum_of(row(1), length, lowest);
    for (int64_t r = 0; r + 1 < count; ++r, to += to_stride) {
      total = advance_rows<stream>(kept, 1 / total, to, row(r + 1), row(r + 2), length, best);
    }
    scale<stream>(kept, length, 1 / total, to);
  }

  static double maximum(const void* input, int64_t count, double so_far) {
    F buffer[converts ? piece : 1];
    F best = static_cast<F>(so_far);
    for (int64_t i = 0; i < count; i += piece) {
      int64_t n = count - i < piece ? count - i : piece;
      best = maximum_of(as_compute(static_cast<const T*>(input) + i, n, buffer), n, best);
    }
    return static_cast<double>(best);
  }

  static double sum(const void* input, int64_t count, double maximum_value) {
    F buffer[converts ? piece : 1];
    double total = 0;
    for (int64_t i = 0; i < count; i += piece) {
      int64_t n = count - i < piece ? count - i : piece;
      const F* x = as_compute(static_cast<const T*>(input) + i, n, buffer);
      total += static_cast<double>(
          sum_of<F, false>(x, n, static_cast<F>(maximum_value), nullptr, nullptr));
    }
    return total;
  }

  static void write_values(const T* input, int64_t count, F best, F factor, T* output) {
    if constexpr (converts) {
      F buffer[piece];
      widen(input, count, buffer);
      write_of(buffer, count, best, factor, buffer);
      narrow(buffer, count, output);
    } else {
      write_of(input, count, best, factor, output);
    }
  }

  static void write(const void* input, int64_t count, double maximum_value, double total,
                    void* output) {
    for (int64_t i = 0; i < count; i += piece) {
      int64_t n = count - i < piece ? count - i : piece;
      write_values(static_cast<const T*>(input) + i, n, static_cast<F>(maximum_value),
                   static_cast<F>(1 / total), static_cast<T*>(output) + i);
    }
  }

  static void column_start(int64_t count, void* maxima, void* sums) {
    for (int64_t i = 0; i < count; ++i) {
      static_cast<F*>(maxima)[i] = static_cast<F>(-__builtin_inf());
      static_cast<F*>(sums)[i] = 0;
    }
  }

  static void column_maximum(const void* input, int64_t count, void* maxima) {
    F buffer[simd::softmax_columns];
    const F* x = as_compute(static_cast<const T*>(input), count, buffer);
    auto* best = static_cast<F*>(maxima);
    for (int64_t i = 0; i < count; ++i) best[i] = x[i] > best[i] ? x[i] : best[i];
  }

  // exp(x - maximum) of one row of columns; x may be `to`.
  static inline void exponentials(const F* x, int64_t count, const F* maxima, F* to) {
    constexpr int width = register_size / sizeof(F);
    int64_t i = 0;
    for (; i + width <= count; i += width) {
      store(to + i, exponential(load(x + i) - load(maxima + i)));
    }
    if (i < count) {
      store_tail(to + i,
                 exponential(load_tail(x + i, count - i) - load_tail(maxima + i, count - i)),
                 count - i);
    }
  }

  static void column_sum(const void* input, int64_t count, const void* maxima, void* sums) {
    F buffer[simd::softmax_columns];
    const F* x = as_compute(static_cast<const T*>(input), count, buffer);
    exponentials(x, count, static_cast<const F*>(maxima), buffer);
    auto* total = static_cast<F*>(sums);
    for (int64_t i = 0; i < count; ++i) total[i] += buffer[i];
  }

  static void column_write(const void* input, int64_t count, const void* maxima, const void* sums,
                           void* output) {
    F buffer[simd::softmax_columns];
    const F* x = as_compute(static_cast<const T*>(input), count, buffer);
    exponentials(x, count, static_cast<const F*>(maxima), buffer);
    const auto* total = static_cast<const F*>(sums);
    auto* to = static_cast<T*>(output);
    if constexpr (converts) {
      for (int64_t i = 0; i < count; ++i) buffer[i] = buffer[i] / total[i];
      narrow(buffer, count, to);
    } else {
      for (int64_t i = 0; i < count; ++i) to[i] = buffer[i] / total[i];
    }
  }

  static constexpr simd::SoftmaxKernel kernel{
      rows, maximum, sum, write, column_start, column_maximum, column_sum, column_write};
};

const simd::SoftmaxKernel* find(Dtype::Val dtype) {
  switch (dtype) {
    case Dtype::Val::float16:
      return &Softmax<Float16, float>::kernel;
    case Dtype::Val::bfloat16:
      return &Softmax<BFloat16, float>::kernel;
    case Dtype::Val::float64:
      return &Softmax<double, double>::kernel;
    default:
      return &Softmax<float, float>::kernel;
  }
}

void finish() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace

extern const simd::SoftmaxKernels softmax_kernels;
const simd::SoftmaxKernels softmax_kernels{find, finish};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
