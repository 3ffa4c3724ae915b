// Low-bit weights, compiled once per instruction set.
#include "kernels/cpu/instruction_set.h"
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/matmul_vector.h"
#include "kernels/cpu/simd/quantized_digits.h"
#include "kernels/cpu/simd/quantized_kernels.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
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
template <bool b>
struct Constant {
  static constexpr bool value = b;
};

void prepare_vector(Dtype::Val dtype, const void* from, int64_t depth, int64_t group,
                    void* prepared) {
  widen_values(dtype, from, depth, PreparedVector(prepared, depth, group).elements());
  prepare_digits(prepared, depth, group);
}

void dot_vector(Dtype::Val dtype, const void* prepared, int64_t depth, int64_t group,
                const QuantizedRow& matrix, int64_t count, float* out) {
  auto with = [&](auto in_one, auto type) {
    constexpr bool one = decltype(in_one)::value;
    using T = decltype(type);
    auto* run = group == 32   ? dot_all_rows<one, T, 32>
                : group == 64 ? dot_all_rows<one, T, 64>
                              : dot_all_rows<one, T, 128>;
    run(prepared, depth, matrix, count, out);
  };
  auto of_type = [&](auto type) {
    if (has_byte_dot()) {
      with(Constant<true>{}, type);
    } else {
      with(Constant<false>{}, type);
    }
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

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
