// Division of a block by one number.
//
// x / d is x times the reciprocal of d in two parts, corrected once by the exact remainder: that is
// the correctly rounded quotient (Markstein; the first guess is right to the last place), bit for
// bit what the division gives, in less than half the time. Where a step could overflow or lose
// bits, and for zero, infinities and NaN, the division itself is done.
#include "kernels/cpu/simd/vector_math.h"

#include "kernels/cpu/simd/kernel_tables.h"
#include "kernels/cpu/simd/math.h"

namespace holdfast::cpu::HOLDFAST_SIMD_TARGET {

#if defined(__AVX512F__)
namespace {

// Exponent bits of magnitudes in [2^-60, 2^60): neither quotient nor remainder leaves the normal
// range.
constexpr uint32_t lowest = (127u - 60u) << 23, span = 120u << 23;

inline bool is_moderate(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return (bits & 0x7fffffffu) - lowest < span;
}

inline bool is_power_of_two(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return (bits & 0x7fffffu) == 0;
}

template <typename Function>
HOLDFAST_INLINE void for_each_vector(float* out, const float* x, int64_t n, Function function) {
  int64_t i = 0;
  for (; i + float_count <= n; i += float_count) store(out + i, function(load(x + i)));
  if (i == n) return;
  float chunk[float_count];
  pad(chunk, x + i, n - i, float_count);
  store(chunk, function(load(chunk)));
  __builtin_memcpy(out + i, chunk, static_cast<size_t>(n - i) * sizeof(float));
}

struct Divisor {
  FloatVector value, reciprocal, reciprocal_rest;
};

HOLDFAST_INLINE FloatVector quotient(FloatVector x, const Divisor& d) {
  __m512i magnitude = _mm512_maskz_and_epi32(0xffff, (__m512i)x, _mm512_set1_epi32(0x7fffffff));
  __m512i above = _mm512_maskz_sub_epi32(0xffff, magnitude, _mm512_set1_epi32(lowest));
  __mmask16 moderate = _mm512_cmplt_epu32_mask(above, _mm512_set1_epi32(span));
  if (moderate != 0xffff) return x / d.value;
  FloatVector q = multiply_add(x, d.reciprocal, x * d.reciprocal_rest);
  FloatVector remainder = multiply_add(-q, d.value, x);
  return multiply_add(remainder, d.reciprocal, q);
}

void divide_block(void* out_bytes, const void* const* in, int64_t n) {
  auto* out = static_cast<float*>(out_bytes);
  const auto* x = static_cast<const float*>(in[0]);
  float d = n > 0 ? static_cast<const float*>(in[1])[0] : 1.0f;
  if (!is_moderate(d)) {
    BinaryLoop<Divide, float>::run(out_bytes, in, n);
    return;
  }
  float reciprocal = 1.0f / d;
  if (is_power_of_two(d)) {  // the product is exact, or rounded as the quotient is
    FloatVector factor = broadcast(reciprocal);
    for_each_vector(out, x, n, [&](FloatVector v) { return v * factor; });
    return;
  }
  float rest = __builtin_fmaf(-reciprocal, d, 1.0f) / d;
  Divisor divisor{broadcast(d), broadcast(reciprocal), broadcast(rest)};
  for_each_vector(out, x, n, [&](FloatVector v) { return quotient(v, divisor); });
}

}  // namespace

BlockKernel float_divide_by_scalar() { return divide_block; }
#else
BlockKernel float_divide_by_scalar() { return BinaryLoop<Divide, float>::run; }
#endif

}  // namespace holdfast::cpu::HOLDFAST_SIMD_TARGET
