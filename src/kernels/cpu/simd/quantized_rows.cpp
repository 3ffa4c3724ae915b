// Low-bit weights, compiled once per instruction set.
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/matmul_vector.h"
#include "kernels/cpu/simd/quantized_kernels.h"

namespace holdfast::cpu::HOLDFAST_SIMD_TARGET {
namespace {

using simd::QuantizedRow;

// What the codes of a 4-bit format stand for.
alignas(64) constexpr float integers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
alignas(64) constexpr float e2m1[16] = {0,     0.5f,  1,     1.5f,  2,     3,     4,     6,
                                        -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

float e4m3_value(uint8_t code) {
  // Exponent and fraction at their places in a float, re-biased by an exact multiplication.
  uint32_t magnitude = static_cast<uint32_t>(code & 0x7f) << 20;
  float value = bits_as<float>(magnitude) * 0x1p120f;
  if ((code & 0x7f) == 0x7f) value = __builtin_nanf("");
  return (code & 0x80) != 0 ? -value : value;
}

// 16 neighbouring 4-bit codes, from the 8 bytes at `codes`.
inline void unpack_nibbles(const uint8_t* codes, const float* table, float* out) {
#if defined(__AVX512F__)
  __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes));
  __m128i low = _mm_and_si128(bytes, _mm_set1_epi8(15));
  __m128i high = _mm_and_si128(_mm_srli_epi16(bytes, 4), _mm_set1_epi8(15));
  __m512i index = _mm512_maskz_cvtepu8_epi32(0xffff, _mm_unpacklo_epi8(low, high));
  _mm512_storeu_ps(out, _mm512_maskz_permutexvar_ps(0xffff, index, _mm512_load_ps(table)));
#else
  for (int i = 0; i < 8; ++i) {
    out[2 * i] = table[codes[i] & 15];
    out[2 * i + 1] = table[codes[i] >> 4];
  }
#endif
}

// 8 neighbouring codes of any width.
template <int bits>
inline void unpack_eight(const uint8_t* codes, float* out) {
  uint64_t word = 0;
  std::memcpy(&word, codes, bits);
  constexpr uint64_t mask = (uint64_t{1} << bits) - 1;
  for (int i = 0; i < 8; ++i) {
    out[i] = static_cast<float>(static_cast<int32_t>(word >> (bits * i) & mask));
  }
}

template <int bits>
void unpack_integers(const uint8_t* codes, int64_t count, float* out) {
  for (int64_t i = 0; i < count; i += 8) unpack_eight<bits>(codes + i / 8 * bits, out + i);
}

// The numbers that the codes of whole groups stand for, without scale; `codes` is where they start.
void unpack(const QuantizedFormat& format, const uint8_t* codes, int64_t count, float* out) {
  if (format.mode == QuantizationMode::mxfp8) {
    for (int64_t i = 0; i < count; ++i) out[i] = e4m3_value(codes[i]);
    return;
  }
  if (format.bits == 4) {
    const float* table = format.mode == QuantizationMode::affine ? integers : e2m1;
    for (int64_t i = 0; i < count; i += 16) unpack_nibbles(codes + i / 2, table, out + i);
    return;
  }
  switch (format.bits) {
    case 1:
      return unpack_integers<1>(codes, count, out);
    case 2:
      return unpack_integers<2>(codes, count, out);
    case 3:
      return unpack_integers<3>(codes, count, out);
    case 5:
      return unpack_integers<5>(codes, count, out);
    case 6:
      return unpack_integers<6>(codes, count, out);
    default:
      for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(codes[i]);
  }
}

float one_of(Dtype::Val dtype, const void* from, int64_t index) {
  switch (dtype) {
    case Dtype::Val::float16:
      return to_float(static_cast<const Float16*>(from)[index]);
    case Dtype::Val::bfloat16:
      return to_float(static_cast<const BFloat16*>(from)[index]);
    default:
      return static_cast<const float*>(from)[index];
  }
}

void widen_values(Dtype::Val dtype, const void* from, int64_t count, float* to) {
  switch (dtype) {
    case Dtype::Val::float16:
      return widen(static_cast<const Float16*>(from), count, to);
    case Dtype::Val::bfloat16:
      return widen(static_cast<const BFloat16*>(from), count, to);
    default:
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
  }
}

void narrow_values(Dtype::Val dtype, const float* from, int64_t count, void* to) {
  switch (dtype) {
    case Dtype::Val::float16:
      return narrow(from, count, static_cast<Float16*>(to));
    case Dtype::Val::bfloat16:
      return narrow(from, count, static_cast<BFloat16*>(to));
    default:
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
  }
}

#if defined(__AVX512F__)
// A group of 4-bit codes: the 16 numbers they stand for are made once, then looked up.
void dequantize_nibbles(const uint8_t* codes, int64_t count, const float* numbers, float scale,
                        float bias, Dtype::Val to, char* out) {
  Lanes<float> table = load_lanes<float>(numbers) * scale + bias;
  if (to == Dtype::Val::float32) {
    alignas(64) float values[16];
    store_lanes(values, table);
    for (int64_t i = 0; i < count; i += 16) {
      unpack_nibbles(codes + i / 2, values, reinterpret_cast<float*>(out) + i);
    }
    return;
  }
  // Twice, in a register: what goes through memory here, in parts, would have to wait for it.
  __m512i lookup = to == Dtype::Val::bfloat16 ? narrow_two(BFloat16{}, table, table)
                                              : narrow_two(Float16{}, table, table);
  auto look_up = [&](__m512i bytes) {
    // The low halves of the lanes have the low codes in their lowest bits, the high ones the high
    // codes; the fifth bit, which the lookup sees too, does not matter.
    __m512i index = _mm512_or_si512(bytes, _mm512_maskz_slli_epi32(0xffff, bytes, 12));
    return _mm512_maskz_permutexvar_epi16(0xffffffff, index, lookup);
  };
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + i / 2));
    _mm512_storeu_si512(out + 2 * i, look_up(_mm512_maskz_cvtepu8_epi32(0xffff, bytes)));
  }
  if (i < count) {  // groups of 16
    __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes + i / 2));
    __m512i found = look_up(_mm512_maskz_cvtepu8_epi32(0xffff, bytes));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 2 * i), _mm512_castsi512_si256(found));
  }
}
#endif

void dequantize(const QuantizedFormat& format, Dtype::Val dtype, const QuantizedRow& row,
                int64_t first, int64_t count, Dtype::Val to, void* out) {
  constexpr int64_t largest_group = 128;
  alignas(64) float values[largest_group];
  int64_t size = format.group_size;
  const auto* codes = static_cast<const uint8_t*>(row.codes);
  int64_t item = to == Dtype::Val::float32 ? 4 : 2;
  int64_t group = first / size;
  for (int64_t i = 0; i < count; i += size, ++group) {
    float scale, bias = 0;
    switch (format.mode) {
      case QuantizationMode::affine:
        scale = one_of(dtype, row.scales, group);
        bias = one_of(dtype, row.biases, group);
        break;
      case QuantizationMode::nvfp4:
        scale = e4m3_value(static_cast<const uint8_t*>(row.scales)[group]);
        break;
      default: {
        // A power of two; 2^-127 is subnormal.
        uint32_t exponent = static_cast<const uint8_t*>(row.scales)[group];
        scale = exponent == 0 ? 0x1p-127f : bits_as<float>(exponent << 23);
      }
    }
#if defined(__AVX512F__)
    if (format.bits == 4) {
      dequantize_nibbles(codes + (first + i) / 2, size,
                         format.mode == QuantizationMode::affine ? integers : e2m1, scale, bias, to,
                         static_cast<char*>(out) + i * item);
      continue;
    }
#endif
    unpack(format, codes + (first + i) * format.bits / 8, size, values);
    float* target = values;
    char* end = static_cast<char*>(out) + i * item;
    if (to == Dtype::Val::float32) target = reinterpret_cast<float*>(end);
    for (int64_t j = 0; j < size; ++j) target[j] = values[j] * scale + bias;
    if (to != Dtype::Val::float32) narrow_values(to, values, size, end);
  }
}

float dot(const float* x, const float* y, int64_t count) { return dot_piece(x, y, count); }

void add_scaled(float factor, const float* x, int64_t count, float* out) {
  HOLDFAST_VECTORISE
  for (int64_t i = 0; i < count; ++i) out[i] += factor * x[i];
}

#if defined(__AVX512F__)

// --- a vector against 4-bit affine codes ---
//
// A block of 128 codes is 64 bytes, read as 16 words of 8 codes each: the j-th codes of all words
// meet the elements 8 i + j of x, which is stored in that order. A word is moved so that two of its
// codes lie where a float has its highest fraction bits; then one logical operation each makes
// 16 + c and 256 + c of them. A block's sum begins below zero by what that is too much. x is made
// smaller, exactly, so that this does not overflow where the product does not. Infinities would
// meet their opposites: with them it goes element by element.

constexpr int64_t block = 128;
constexpr float high_offset = 16, low_offset = 256;
constexpr float smaller = 0x1p-12f, larger = 0x1p12f;

void prepare_vector(Dtype::Val dtype, const void* from, int64_t depth, int64_t group,
                    void* prepared) {
  auto* ordered = static_cast<float*>(prepared);
  float* starts = ordered + depth;
  float* sums = starts + depth / 8;
  const int64_t item = dtype == Dtype::Val::float32 ? 4 : 2;
  const __m512i eighths =
      _mm512_setr_epi32(0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120);
  const __m512 infinity = _mm512_set1_ps(__builtin_inff());
  __mmask16 infinite = 0, undefined = 0;
  for (int64_t k = 0; k < depth; k += block) {
    alignas(64) float wide[block];
    widen_values(dtype, static_cast<const char*>(from) + k * item, block, wide);
    for (int64_t i = 0; i < block; i += 16) {
      __m512 elements = _mm512_load_ps(wide + i) * _mm512_set1_ps(smaller);
      infinite |= _mm512_cmp_ps_mask(_mm512_abs_ps(elements), infinity, _CMP_EQ_OQ);
      undefined |= _mm512_cmp_ps_mask(elements, elements, _CMP_UNORD_Q);
      _mm512_store_ps(wide + i, elements);
    }
    __m512 start = _mm512_setzero_ps();
    for (int64_t j = 0; j < 8; ++j) {
      __m512 elements = _mm512_i32gather_ps(eighths, wide + j, sizeof(float));
      _mm512_storeu_ps(ordered + k + j * 16, elements);
      start -= elements * _mm512_set1_ps(j % 2 == 1 ? high_offset : low_offset);
    }
    _mm512_storeu_ps(starts + k / 8, start);
    for (int64_t i = 0; i < block; i += group < block ? group : block) {
      Lanes<float> sum{};
      for (int64_t at = i; at < i + group; at += 16) sum += load_lanes<float>(wide + at);
      sums[(k + i) / group] = add_lanes<float>(sum);
    }
  }
  sums[depth / group] = infinite != 0 && undefined == 0;
}

// The product with one row, as it is written.
template <typename T, int group>
float dot_elements(const float* x, int64_t depth, const QuantizedRow& matrix, int64_t row) {
  const auto* codes = static_cast<const uint8_t*>(matrix.codes) + row * (depth / 2);
  float total = 0;
  for (int64_t k = 0; k < depth; ++k) {
    const auto code = static_cast<float>(codes[k / 2] >> (k % 2 * 4) & 15);
    const int64_t g = row * (depth / group) + k / group;
    const float scale = to_float(static_cast<const T*>(matrix.scales)[g]);
    const float bias = to_float(static_cast<const T*>(matrix.biases)[g]);
    total += x[k / block * block + k % 8 * 16 + k % block / 8] * (code * scale + bias);
  }
  return total * larger;
}

// How far ahead codes are asked for, into the second level: the first can wait for too few lines.
constexpr int64_t fetch_bytes = 8192;

// parts[r] += the codes 2 pair and 2 pair + 1 of each word of row r, plus their offsets, times x.
// The rows go side by side: each is a chain.
template <int pair, int rows>
__attribute__((always_inline)) inline void add_codes(const __m512i* words, const float* x,
                                                     __m512* parts) {
  const __m512i high_bits = _mm512_set1_epi32(0x780000), low_bits = _mm512_set1_epi32(0x78000);
  const __m512i high_one = (__m512i)_mm512_set1_ps(high_offset);
  const __m512i low_one = (__m512i)_mm512_set1_ps(low_offset);
  const __m512 low = _mm512_loadu_ps(x + 32 * pair), high = _mm512_loadu_ps(x + 32 * pair + 16);
  constexpr int lowest = 8 * pair;  // bit of the words; it is to become the 15th
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
    __m512i word = lowest < 15 ? _mm512_maskz_slli_epi32(0xffff, words[r], 15 - lowest)
                               : _mm512_maskz_srli_epi32(0xffff, words[r], lowest - 15);
    // (word & bits) | one
    auto number = [&](__m512i bits, __m512i one) {
      return (__m512)_mm512_ternarylogic_epi32(word, bits, one, 0xea);
    };
    parts[r] = _mm512_fmadd_ps(number(low_bits, low_one), low, parts[r]);
    parts[r] = _mm512_fmadd_ps(number(high_bits, high_one), high, parts[r]);
  }
}

// Rows from `first` on, of a matrix of `count`.
template <typename T, int group, int rows>
void dot_rows(const void* prepared, int64_t depth, const QuantizedRow& matrix, int64_t first,
              int64_t count, float* out) {
  const auto* x = static_cast<const float*>(prepared);
  const float* starts = x + depth;
  const float* sums = starts + depth / 8;
  const int64_t groups = depth / group, row_bytes = depth / 2;
  const auto* codes = static_cast<const uint8_t*>(matrix.codes) + first * row_bytes;
  const auto* scales = static_cast<const T*>(matrix.scales) + first * groups;
  const auto* biases = static_cast<const T*>(matrix.biases) + first * groups;
  // Not beyond the last row, where others may be at work.
  const int64_t rest = (count - first - rows) * row_bytes;
  const int64_t ahead = rest < fetch_bytes ? rest : fetch_bytes;
  const int64_t groups_ahead = ahead / (group / 2);
  // The group of each lane's codes in a block.
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i group_of_lane = _mm512_maskz_srli_epi32(0xffff, lane, __builtin_ctz(group / 8));
  __m512 total[rows];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) total[r] = _mm512_setzero_ps();
  for (int64_t g = 0; g < groups; g += 16) {
    const int64_t some = groups - g < 16 ? groups - g : 16;
    const __m512 sum = (__m512)load_some_lanes<float>(sums + g, some);
    __m512 scale[rows];
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      auto widened = [&](const T* from) {
        __builtin_prefetch(from + groups_ahead, 0, 2);
        return (__m512)load_some_lanes<float>(from, some);
      };
      scale[r] = widened(scales + r * groups + g);
      total[r] = _mm512_fmadd_ps(widened(biases + r * groups + g), sum, total[r]);
    }
    for (int64_t k = g * group; k < (g + some) * group; k += block) {
      __m512i words[rows];
      __m512 parts[rows];
      const __m512 start = _mm512_loadu_ps(starts + k / 8);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const uint8_t* from = codes + r * row_bytes + k / 2;
        __builtin_prefetch(from + ahead, 0, 2);
        words[r] = _mm512_loadu_si512(from);
        parts[r] = start;
      }
      add_codes<0, rows>(words, x + k, parts);
      add_codes<1, rows>(words, x + k, parts);
      add_codes<2, rows>(words, x + k, parts);
      add_codes<3, rows>(words, x + k, parts);
      __m512i places = group_of_lane + _mm512_set1_epi32(static_cast<int>(k / group - g));
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        __m512 factor = _mm512_maskz_permutexvar_ps(0xffff, places, scale[r]);
        total[r] = _mm512_fmadd_ps(parts[r], factor, total[r]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
    out[first + r] = add_lanes<float>((Lanes<float>)total[r]) * larger;
  }
}

template <typename T, int group>
void dot_all_rows(const void* prepared, int64_t depth, const QuantizedRow& matrix, int64_t count,
                  float* out) {
  const auto* x = static_cast<const float*>(prepared);
  int64_t r = 0;
  if (x[depth + depth / 8 + depth / group] != 0) {
    for (; r < count; ++r) out[r] = dot_elements<T, group>(x, depth, matrix, r);
  }
  for (; r + 4 <= count; r += 4) dot_rows<T, group, 4>(prepared, depth, matrix, r, count, out);
  for (; r < count; ++r) dot_rows<T, group, 1>(prepared, depth, matrix, r, count, out);
}

void dot_vector(Dtype::Val dtype, const void* prepared, int64_t depth, int64_t group,
                const QuantizedRow& matrix, int64_t count, float* out) {
  auto of_type = [&](auto type) {
    using T = decltype(type);
    auto* run = group == 32   ? dot_all_rows<T, 32>
                : group == 64 ? dot_all_rows<T, 64>
                              : dot_all_rows<T, 128>;
    run(prepared, depth, matrix, count, out);
  };
  if (dtype == Dtype::Val::bfloat16) {
    of_type(BFloat16{});
  } else {
    of_type(Float16{});
  }
}

constexpr auto prepare_or_null = prepare_vector;
constexpr auto dot_or_null = dot_vector;
#else
constexpr decltype(simd::QuantizedKernels::prepare_vector) prepare_or_null = nullptr;
constexpr decltype(simd::QuantizedKernels::dot_vector) dot_or_null = nullptr;
#endif

}  // namespace

extern const simd::QuantizedKernels quantized_kernels;
const simd::QuantizedKernels quantized_kernels{
    dequantize, dot, add_scaled, widen_values, narrow_values, prepare_or_null, dot_or_null};

}  // namespace holdfast::cpu::HOLDFAST_SIMD_TARGET
