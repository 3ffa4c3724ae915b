// A vector of a half type against rows of 4-bit affine codes, in integers: bound by reading the
// codes once.
//
// Of each group of x, the largest element gets an exponent, and all are integers of 22 bits and a
// sign in its unit. What an element loses is at most 2^-22 of the largest, as in a sum of float32
// that the largest takes part in (but also where its weight is zero), and nothing where it is not
// smaller by 2^14 (bfloat16) or 2^11 (float16).
// An integer is three digits of a signed byte; products of bytes are summed exactly, digit by
// digit, and only the sums of 8 elements become floats, which the scales multiply.
//
// A block of 128 codes is 64 bytes: the low codes meet the even elements of x, the high codes the
// odd ones.
#pragma once

#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/quantized_kernels.h"

#if defined(__AVX512F__)

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

inline constexpr int64_t digit_block = 128;
inline constexpr int digits = 3, digit_bits = 8, integer_bits = 21;
// The groups' factors are smaller than one by some bits, so that their product with scales and sums
// is finite where the result is: many where x is small, since the largest scale may meet it, and
// none where it is large, since the product with the smallest scale must not lose bits either.
inline constexpr int most_headroom = 48;
inline int headroom_bits(int largest_exponent) {
  const int bits = integer_bits + 6 - largest_exponent;
  return bits < 0 ? 0 : bits < most_headroom ? bits : most_headroom;
}
// A group whose elements are all smaller than the largest of x by this would lose its factor.
inline constexpr int most_bits_apart = 40;

// value * 2^exponent; the power itself may be beyond float's range.
inline float times_power(float value, int exponent) {
  auto power = [](int e) { return bits_as<float>(static_cast<uint32_t>(e + 127) << 23); };
  int half = exponent / 2;
  return value * power(half) * power(exponent - half);
}

// Where the parts of simd::QuantizedKernels::prepare_vector's memory are.
struct PreparedVector {
  float* at;
  int64_t group_room;

  PreparedVector(const void* memory, int64_t depth, int64_t group)
      : at(const_cast<float*>(static_cast<const float*>(memory))),
        group_room(simd::round_up_to_line(depth / group)) {}
  // Of results, in the unit of the factors.
  int32_t& exponent() const { return reinterpret_cast<int32_t*>(at)[1]; }
  // Of a group's integers, in that unit.
  float* factors() const { return at + simd::prepared_header; }
  // Of a group's elements, in that unit.
  float* sums() const { return factors() + group_room; }
  // The elements of x, of which the digits take the place: of each block, from the highest digit
  // to the lowest, those of even elements, then those of odd ones.
  float* elements() const { return sums() + group_room; }
  int8_t* all_digits() const { return reinterpret_cast<int8_t*>(elements()); }
};

// The exponents of the largest elements of each group; false where x is not finite or the groups
// are too far apart.
inline bool find_exponents(const float* x, int64_t depth, int64_t group, float* exponents,
                           int& largest) {
  constexpr int none = -1000;
  constexpr uint32_t infinite = 0xff;
  largest = none;
  int smallest = -none;
  for (int64_t g = 0; g < depth / group; ++g) {
    uint32_t magnitude = 0;
    HOLDFAST_VECTORISE
    for (int64_t i = g * group; i < (g + 1) * group; ++i) {
      uint32_t of_one = bits_as<uint32_t>(x[i]) & 0x7fffffffu;
      magnitude = of_one > magnitude ? of_one : magnitude;
    }
    if (magnitude >> 23 == infinite) return false;
    // Subnormal numbers have the unit of the smallest others.
    int exponent = magnitude == 0 ? none : static_cast<int>(magnitude >> 23) - 127;
    exponents[g] = static_cast<float>(exponent);
    largest = exponent > largest ? exponent : largest;
    if (exponent != none && exponent < smallest) smallest = exponent;
  }
  if (largest == none) largest = 0;
  return largest - smallest <= most_bits_apart;
}

inline void prepare_digits(void* memory, int64_t depth, int64_t group) {
  PreparedVector prepared(memory, depth, group);
  float* x = prepared.elements();
  int largest = 0;
  bool fits = find_exponents(x, depth, group, prepared.factors(), largest);
  prepared.at[0] = fits ? simd::prepared_as_digits : simd::prepared_as_elements;
  if (!fits) return;
  const int headroom = headroom_bits(largest);
  prepared.exponent() = largest - integer_bits + headroom;
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = even + _mm512_set1_epi32(1);
  const __m512i half = _mm512_set1_epi32(1 << (digit_bits - 1));
  for (int64_t k = 0; k < depth; k += digit_block) {
    alignas(64) int32_t integers[digit_block];
    const int64_t run = group < digit_block ? group : digit_block;
    for (int64_t i = 0; i < digit_block; i += run) {
      float& factor = prepared.factors()[(k + i) / group];
      const auto exponent = static_cast<int>(factor);
      float sum = 0;
      if (exponent < -127) {  // zeros
        for (int64_t j = i; j < i + run; ++j) integers[j] = 0;
        factor = 0;
      } else {
        const float first = times_power(1, (integer_bits - exponent) / 2);
        const float second =
            times_power(1, integer_bits - exponent - (integer_bits - exponent) / 2);
        Lanes<float> lanes{};
        for (int64_t j = i; j < i + run; j += 16) {
          Lanes<float> scaled = load_lanes<float>(x + k + j) * first * second;
          lanes += scaled;
          _mm512_store_si512(integers + j, _mm512_maskz_cvtps_epi32(0xffff, (__m512)scaled));
        }
        factor = times_power(1, exponent - largest - headroom);
        sum = add_lanes<float>(lanes) * factor;
      }
      prepared.sums()[(k + i) / group] = sum;
    }
    int8_t* to = prepared.all_digits() + k * digits;
    for (int64_t i = 0; i < digit_block; i += 32) {
      __m512i a = _mm512_load_si512(integers + i), b = _mm512_load_si512(integers + i + 16);
      __m512i rest[2] = {_mm512_maskz_permutex2var_epi32(0xffff, a, even, b),
                         _mm512_maskz_permutex2var_epi32(0xffff, a, odd, b)};
      for (int d = digits - 1; d >= 0; --d) {
        for (int parity = 0; parity < 2; ++parity) {
          // The lowest byte, as a signed one, and what is left.
          auto* place = reinterpret_cast<__m128i*>(to + d * digit_block + parity * 64 + i / 2);
          _mm_storeu_si128(place, _mm512_maskz_cvtepi32_epi8(0xffff, rest[parity]));
          __m512i rounded = _mm512_add_epi32(rest[parity], half);
          rest[parity] = _mm512_maskz_srai_epi32(0xffff, rounded, digit_bits);
        }
      }
    }
  }
}

// sum[l] += the products of the four bytes of each lane, of which `codes` are at most 15.
template <bool in_one>
__attribute__((always_inline)) inline __m512i add_byte_products(__m512i sum, __m512i codes,
                                                                __m512i bytes) {
  if constexpr (in_one) {
    // Written out, since this file is compiled for processors that do not have it.
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(codes), "v"(bytes));
    return sum;
  } else {
    __m512i pairs = _mm512_maskz_maddubs_epi16(0xffffffff, codes, bytes);
    __m512i fours = _mm512_maskz_madd_epi16(0xffff, pairs, _mm512_set1_epi16(1));
    return _mm512_add_epi32(sum, fours);
  }
}

// How far ahead codes are asked for.
inline constexpr int64_t digit_fetch_bytes = 2048;

// `rows` rows, `apart` from each other, of which the first is `first`; the `after` rows behind each
// come next.
template <bool in_one, typename T, int group, int rows>
void dot_digit_rows(const PreparedVector& x, int64_t depth, const simd::QuantizedRow& matrix,
                    int64_t first, int64_t apart, int64_t after, float* out) {
  const int64_t groups = depth / group, row_bytes = depth / 2;
  const auto* codes = static_cast<const uint8_t*>(matrix.codes) + first * row_bytes;
  const auto* scales = static_cast<const T*>(matrix.scales) + first * groups;
  const auto* biases = static_cast<const T*>(matrix.biases) + first * groups;
  const int64_t rest = after * row_bytes;
  const int64_t ahead = rest < digit_fetch_bytes ? rest : digit_fetch_bytes;
  const int64_t groups_ahead = ahead / (group / 2);
  const int64_t groups_apart = apart * groups, bytes_apart = apart * row_bytes;
  const __m512i low_codes = _mm512_set1_epi8(15);
  // The group of each lane's codes in a block.
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i group_of_lane = _mm512_maskz_srli_epi32(0xffff, lane, __builtin_ctz(group / 8));
  __m512 total[rows];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) total[r] = _mm512_setzero_ps();
  for (int64_t g = 0; g < groups; g += 16) {
    const int64_t some = groups - g < 16 ? groups - g : 16;
    const __m512 factor = (__m512)load_some_lanes<float>(x.factors() + g, some);
    const __m512 sum = (__m512)load_some_lanes<float>(x.sums() + g, some);
    __m512 scale[rows];
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      auto widened = [&](const T* from) {
        __builtin_prefetch(from + groups_ahead);
        return (__m512)load_some_lanes<float>(from, some);
      };
      scale[r] = widened(scales + r * groups_apart + g) * factor;
      total[r] = _mm512_fmadd_ps(widened(biases + r * groups_apart + g), sum, total[r]);
    }
    for (int64_t k = g * group; k < (g + some) * group; k += digit_block) {
      __m512i low[rows], high[rows], sums[rows];
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const uint8_t* from = codes + r * bytes_apart + k / 2;
        __builtin_prefetch(from + ahead);
        __m512i word = _mm512_loadu_si512(from);
        low[r] = word & low_codes;
        high[r] = _mm512_maskz_srli_epi16(0xffffffff, word, 4) & low_codes;
        sums[r] = _mm512_setzero_si512();
      }
      const int8_t* digit = x.all_digits() + k * digits;
#pragma GCC unroll 3
      for (int d = 0; d < digits; ++d, digit += digit_block) {
        const __m512i even = _mm512_loadu_si512(digit), odd = _mm512_loadu_si512(digit + 64);
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r) {
          if (d > 0) sums[r] = _mm512_maskz_slli_epi32(0xffff, sums[r], digit_bits);
          sums[r] = add_byte_products<in_one>(sums[r], low[r], even);
          sums[r] = add_byte_products<in_one>(sums[r], high[r], odd);
        }
      }
      __m512i places = group_of_lane + _mm512_set1_epi32(static_cast<int>(k / group - g));
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        __m512 of_lane = _mm512_maskz_permutexvar_ps(0xffff, places, scale[r]);
        total[r] = _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(0xffff, sums[r]), of_lane, total[r]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
    out[first + r * apart] = times_power(add_lanes<float>((Lanes<float>)total[r]), x.exponent());
  }
}

// Four rows at once, each the next one of a quarter of all: four places in memory at which it is
// read on and on, as processors foresee it. Neighbouring rows would share pages, which they follow
// at one place each.
template <bool in_one, typename T, int group>
void dot_all_rows(const void* prepared, int64_t depth, const simd::QuantizedRow& matrix,
                  int64_t count, float* out) {
  PreparedVector x(prepared, depth, group);
  const int64_t quarter = count / 4;
  for (int64_t r = 0; r < quarter; ++r) {
    dot_digit_rows<in_one, T, group, 4>(x, depth, matrix, r, quarter, quarter - r - 1, out);
  }
  for (int64_t r = 4 * quarter; r < count; ++r) {
    dot_digit_rows<in_one, T, group, 1>(x, depth, matrix, r, 0, count - r - 1, out);
  }
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET

#endif
