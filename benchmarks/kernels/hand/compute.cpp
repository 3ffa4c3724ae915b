// Rivals bound by arithmetic or by shuffles: Mandelbrot, sorting, a matrix product, a histogram.
#include <utility>

#include "benchmarks/kernels/hand/variant.h"
#include "benchmarks/kernels/hand/vectors.h"

namespace holdfast::bench::HOLDFAST_SIMD_TARGET {

void draw_mandelbrot(int32_t* out, int64_t begin, int64_t end) {
  using namespace mandelbrot;
  Floats offsets;
  for (int i = 0; i < lanes; ++i) offsets[i] = static_cast<float>(i);
  for (int64_t line = begin; line < end; ++line) {
    Floats cy = all(static_cast<float>(line) * (2.0f / height) - 1.0f);
    for (int column = 0; column < width; column += lanes) {
      Floats cx = (offsets + static_cast<float>(column)) * (3.0f / width) - 2.0f;
      Floats x = {}, y = {};
      Ints steps = {};
      for (int i = 0; i < iterations; ++i) {
        Floats xx = x * x, yy = y * y;
#if defined(__AVX512F__)
        __mmask16 inside =
            _mm512_cmp_ps_mask(reinterpret_cast<__m512>(xx + yy), _mm512_set1_ps(4.0f), _CMP_LE_OQ);
        if (inside == 0) break;
        steps = reinterpret_cast<Ints>(
            _mm512_mask_add_epi32(reinterpret_cast<__m512i>(steps), inside,
                                  reinterpret_cast<__m512i>(steps), _mm512_set1_epi32(1)));
#else
        Ints inside = reinterpret_cast<Ints>(
            _mm256_cmp_ps(reinterpret_cast<__m256>(xx + yy), _mm256_set1_ps(4.0f), _CMP_LE_OQ));
        if (_mm256_movemask_ps(reinterpret_cast<__m256>(inside)) == 0) break;
        steps -= inside;
#endif
        y = 2.0f * x * y + cy;
        x = xx - yy + cx;
      }
      store(out + line * width + column, steps);
    }
  }
}

namespace {

inline constexpr int sort_parts = 32 / lanes;

template <int distance, int... lane>
inline Floats reorder(Floats v, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(v, v, (lane ^ distance)...);
}

// One step of the bitonic network: lane i meets lane i ^ distance, and keeps the smaller one where
// its run ascends.
template <int run, int distance>
inline void exchange(Floats (&v)[sort_parts]) {
  Floats partner[sort_parts];
  for (int p = 0; p < sort_parts; ++p) {
    if constexpr (distance >= lanes) {
      partner[p] = v[p ^ (distance / lanes)];
    } else {
      partner[p] = reorder<distance>(v[p], std::make_integer_sequence<int, lanes>());
    }
  }
  for (int p = 0; p < sort_parts; ++p) {
    Ints keep_smaller;
    for (int i = 0; i < lanes; ++i) {
      int lane = p * lanes + i;
      keep_smaller[i] = ((lane & distance) == 0) == ((lane & run) == 0) ? -1 : 0;
    }
    v[p] = keep_smaller ? smaller(v[p], partner[p]) : larger(v[p], partner[p]);
  }
}
template <int run, int distance>
inline void merge(Floats (&v)[sort_parts]) {
  exchange<run, distance>(v);
  if constexpr (distance > 1) merge<run, distance / 2>(v);
}

}  // namespace

void sort32(const float* in, float* out, int64_t begin, int64_t end) {
  for (int64_t task = begin; task < end; ++task) {
    Floats v[sort_parts];
    for (int p = 0; p < sort_parts; ++p) v[p] = load<Floats>(in + task * 32 + p * lanes);
    merge<2, 1>(v);
    merge<4, 2>(v);
    merge<8, 4>(v);
    merge<16, 8>(v);
    merge<32, 16>(v);
    for (int p = 0; p < sort_parts; ++p) store(out + task * 32 + p * lanes, v[p]);
  }
}

void multiply(const float* a, const float* b, float* c, int64_t begin, int64_t end) {
  using namespace product;
  constexpr int across = side / tile, parts = tile / lanes;
  constexpr int strip = lanes == 16 ? 8 : 2;  // rows whose sums fit the registers
  for (int64_t task = begin; task < end; ++task) {
    int64_t row = task / across * tile, column = task % across * tile;
    for (int64_t r = row; r < row + tile; r += strip) {
      Floats sums[strip][parts] = {};
      for (int k = 0; k < side; ++k) {
        Floats from_b[parts];
        for (int p = 0; p < parts; ++p) from_b[p] = load<Floats>(b + k * side + column + p * lanes);
        for (int i = 0; i < strip; ++i) {
          Floats from_a = all(a[(r + i) * side + k]);
          for (int p = 0; p < parts; ++p) sums[i][p] = multiply_add(from_a, from_b[p], sums[i][p]);
        }
      }
      for (int i = 0; i < strip; ++i) {
        for (int p = 0; p < parts; ++p) store(c + (r + i) * side + column + p * lanes, sums[i][p]);
      }
    }
  }
}

void count(const uint32_t* values, uint32_t* counts, int64_t begin, int64_t end) {
  uint32_t own[4][256] = {};
  int64_t i = begin;
  for (; i + 4 <= end; i += 4) {
    for (int j = 0; j < 4; ++j) ++own[j][values[i + j] & 255];
  }
  for (; i < end; ++i) ++own[0][values[i] & 255];
  for (int bin = 0; bin < 256; ++bin) {
    uint32_t sum = own[0][bin] + own[1][bin] + own[2][bin] + own[3][bin];
    __atomic_fetch_add(&counts[bin], sum, __ATOMIC_RELAXED);
  }
}

const HandKernels& hand_kernels() {
#if defined(__AVX512F__)
  bool is_supported = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const char* name = "AVX-512";
#else
  bool is_supported = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const char* name = "AVX2";
#endif
  static const HandKernels kernels{.name = name,
                                   .is_supported = is_supported,
                                   .lanes = lanes,
                                   .rms_norm = rms_norm,
                                   .softmax = softmax,
                                   .delta_step = delta_step,
                                   .quantised_gemv = quantised_gemv,
                                   .attention = attend,
                                   .mandelbrot = draw_mandelbrot,
                                   .sort32 = sort32,
                                   .product = multiply,
                                   .histogram = count};
  return kernels;
}

}  // namespace holdfast::bench::HOLDFAST_SIMD_TARGET
