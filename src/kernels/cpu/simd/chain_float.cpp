// The chains of one instruction set: the stages that move data, division by a scalar, and the
// table.
#include "kernels/cpu/instruction_set.h"
#include "kernels/cpu/simd/chain_stages.h"
#include "kernels/cpu/simd/half_pairs.h"
#include "kernels/cpu/simd/kernel_tables.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {
namespace {

// How far ahead of the tile `fetch` goes, in bytes. Into the second-level cache: in the first one
// the lines of several inputs would displace each other before they are used.
constexpr int64_t fetch_ahead = 4096;

template <typename Element>
HOLDFAST_INLINE Element* address_of(const ChainStage* stage, int64_t offset) {
  return reinterpret_cast<Element*>(stage->address + offset * stage->step);
}

// --- Loads and stores. An encoding has `Element`, `decode` of a vector of elements, and `encode`;
// with `decode_two` and `encode_two` tiles are moved by two registers at a time.

struct Float32 {
  using Element = float;
  static FloatVector decode(const float* from) { return load(from); }
  static FloatVector encode(FloatVector v) { return v; }
};

// 16-bit values as 32-bit ones, and back. g++ would take __builtin_convertvector apart.
#if defined(__AVX512F__)
using Halves = __m256i;
HOLDFAST_INLINE Int32Vector widen(Halves halves) {
  return (Int32Vector)_mm512_maskz_cvtepu16_epi32(0xffff, halves);
}
HOLDFAST_INLINE Halves narrow(Int32Vector words) {
  return _mm512_maskz_cvtepi32_epi16(0xffff, (__m512i)words);
}
#elif defined(__AVX2__)
using Halves = __m128i;
HOLDFAST_INLINE Int32Vector widen(Halves halves) {
  return (Int32Vector)_mm256_cvtepu16_epi32(halves);
}
HOLDFAST_INLINE Halves narrow(Int32Vector words) {
  __m256i packed = _mm256_packus_epi32((__m256i)words, (__m256i)words);  // within each half
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
}
#else
typedef uint16_t Halves __attribute__((vector_size(register_size / 2)));
HOLDFAST_INLINE Int32Vector widen(Halves halves) {
  return __builtin_convertvector(halves, Int32Vector);
}
HOLDFAST_INLINE Halves narrow(Int32Vector words) { return __builtin_convertvector(words, Halves); }
#endif

struct BFloat16 {
  using Element = uint16_t;
  static FloatVector decode(const uint16_t* from) {
    Halves halves;
    __builtin_memcpy(&halves, from, sizeof(halves));
    return (FloatVector)(widen(halves) << 16);
  }
  // In the high half of each lane.
  static Int32Vector rounded(FloatVector v) {
    Int32Vector all = bits(v);
    Int32Vector nearest = all + 0x7fff + ((all >> 16) & 1);
    return v != v ? all | 0x400000 : nearest;
  }
  static Halves encode(FloatVector v) { return narrow((rounded(v) >> 16) & 0xffff); }
  static FloatVector round(FloatVector v) {
    return (FloatVector)(rounded(v) & static_cast<int32_t>(0xffff0000));
  }
#if defined(__AVX512F__)
  static FloatPair decode_two(const uint16_t* from) {
    return widen_bfloat16(_mm512_loadu_si512(from));
  }
  static __m512i encode_two(FloatPair values) { return narrow_bfloat16(values); }
#endif
};

#if defined(__F16C__)
struct Float16 {
  using Element = uint16_t;
#if defined(__AVX512F__)
  static FloatVector to_floats(__m256i halves) {
    return (FloatVector)_mm512_maskz_cvtph_ps(0xffff, halves);
  }
  static __m256i encode(FloatVector v) {
    return _mm512_maskz_cvtps_ph(0xffff, (__m512)v, _MM_FROUND_TO_NEAREST_INT);
  }
  static FloatVector decode(const uint16_t* from) {
    return to_floats(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static FloatPair decode_two(const uint16_t* from) { return widen_float16(from); }
  static __m512i encode_two(FloatPair values) { return narrow_float16(values); }
#else
  static FloatVector to_floats(__m128i halves) { return (FloatVector)_mm256_cvtph_ps(halves); }
  static __m128i encode(FloatVector v) {
    return _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT);
  }
  static FloatVector decode(const uint16_t* from) {
    return to_floats(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
#endif
  static FloatVector round(FloatVector v) { return to_floats(encode(v)); }
};
#endif

template <typename Encoding>
void load_tile(const ChainStage* stage, int64_t offset, FloatVector, FloatVector, FloatVector,
               FloatVector, FloatVector, FloatVector, FloatVector, FloatVector) {
  const auto* from = address_of<const typename Encoding::Element>(stage, offset);
#if defined(__AVX512F__)
  if constexpr (requires { Encoding::decode_two(from); }) {
    auto two = [from](int k) { return Encoding::decode_two(from + k * float_count); };
    FloatPair p0 = two(0), p2 = two(2), p4 = two(4), p6 = two(6);
    continue_tile(stage, offset, (FloatVector)p0.first, (FloatVector)p0.second,
                  (FloatVector)p2.first, (FloatVector)p2.second, (FloatVector)p4.first,
                  (FloatVector)p4.second, (FloatVector)p6.first, (FloatVector)p6.second);
    return;
  }
#endif
  auto part = [from](int k) { return Encoding::decode(from + k * float_count); };
  continue_tile(stage, offset, part(0), part(1), part(2), part(3), part(4), part(5), part(6),
                part(7));
}
template <typename Encoding>
void load_rest(const ChainStage* stage, int64_t offset, int64_t count, FloatVector) {
  typename Encoding::Element chunk[float_count];
  pad(chunk, address_of<const typename Encoding::Element>(stage, offset), count, float_count);
  continue_rest(stage, offset, count, Encoding::decode(chunk));
}

// The whole vector past the cache; `to` is aligned to its size.
template <typename Vector>
HOLDFAST_INLINE void store_past_cache(void* to, Vector v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Vector) == 64) return _mm512_stream_ps(static_cast<float*>(to), (__m512)v);
#endif
#if defined(__AVX2__)
  if constexpr (sizeof(Vector) == 32)
    return _mm256_stream_si256(static_cast<__m256i*>(to), (__m256i)v);
#endif
#if defined(__SSE2__)
  if constexpr (sizeof(Vector) == 16)
    return _mm_stream_si128(static_cast<__m128i*>(to), (__m128i)v);
#endif
  __builtin_memcpy(to, &v, sizeof(v));
}

template <bool past_cache, typename Vector>
HOLDFAST_INLINE void put(void* to, Vector v) {
  if constexpr (past_cache)
    store_past_cache(to, v);
  else
    __builtin_memcpy(to, &v, sizeof(v));
}

template <typename Encoding, bool past_cache>
void store_tile(const ChainStage* stage, int64_t offset, FloatVector v0, FloatVector v1,
                FloatVector v2, FloatVector v3, FloatVector v4, FloatVector v5, FloatVector v6,
                FloatVector v7) {
  auto* to = address_of<typename Encoding::Element>(stage, offset);
#if defined(__AVX512F__)
  if constexpr (requires(FloatPair values) { Encoding::encode_two(values); }) {
    auto put_two = [to](int part, FloatVector a, FloatVector b) {
      put<past_cache>(to + part * float_count, Encoding::encode_two({(__m512)a, (__m512)b}));
    };
    put_two(0, v0, v1);
    put_two(2, v2, v3);
    put_two(4, v4, v5);
    put_two(6, v6, v7);
    continue_tile(stage, offset, v0, v1, v2, v3, v4, v5, v6, v7);
    return;
  }
#endif
  auto put_one = [to](int part, FloatVector v) {
    put<past_cache>(to + part * float_count, Encoding::encode(v));
  };
  put_one(0, v0);
  put_one(1, v1);
  put_one(2, v2);
  put_one(3, v3);
  put_one(4, v4);
  put_one(5, v5);
  put_one(6, v6);
  put_one(7, v7);
  continue_tile(stage, offset, v0, v1, v2, v3, v4, v5, v6, v7);
}
template <typename Encoding>
void store_rest(const ChainStage* stage, int64_t offset, int64_t count, FloatVector v) {
  using Element = typename Encoding::Element;
  auto encoded = Encoding::encode(v);
  __builtin_memcpy(address_of<Element>(stage, offset), &encoded,
                   static_cast<size_t>(count) * sizeof(Element));
  continue_rest(stage, offset, count, v);
}

template <typename Encoding>
struct RoundTo {
  static FloatVector apply(FloatVector v) { return Encoding::round(v); }
};

#if defined(__AVX512F__)
// The same as store_tile<BFloat16> and RoundTo<BFloat16>, with the processor's conversion.

struct NarrowedTile {
  __m512i p0, p1, p2, p3;
};
HOLDFAST_NATIVE_BFLOAT16 HOLDFAST_INLINE NarrowedTile narrow_tile(FloatVector v0, FloatVector v1,
                                                                  FloatVector v2, FloatVector v3,
                                                                  FloatVector v4, FloatVector v5,
                                                                  FloatVector v6, FloatVector v7) {
  FloatPair p0{(__m512)v0, (__m512)v1}, p1{(__m512)v2, (__m512)v3};
  FloatPair p2{(__m512)v4, (__m512)v5}, p3{(__m512)v6, (__m512)v7};
  NarrowedTile tile{narrow_bfloat16_natively(p0), narrow_bfloat16_natively(p1),
                    narrow_bfloat16_natively(p2), narrow_bfloat16_natively(p3)};
  __mmask32 zero = _kor_mask32(_kor_mask32(zeros(tile.p0), zeros(tile.p1)),
                               _kor_mask32(zeros(tile.p2), zeros(tile.p3)));
  if (__builtin_expect(!_kortestz_mask32_u8(zero, zero), false)) {
    if (has_subnormal(p0) || has_subnormal(p1) || has_subnormal(p2) || has_subnormal(p3))
      tile = {narrow_bfloat16(p0), narrow_bfloat16(p1), narrow_bfloat16(p2), narrow_bfloat16(p3)};
  }
  return tile;
}

template <bool past_cache>
HOLDFAST_NATIVE_BFLOAT16 void store_tile_natively(const ChainStage* stage, int64_t offset,
                                                  FloatVector v0, FloatVector v1, FloatVector v2,
                                                  FloatVector v3, FloatVector v4, FloatVector v5,
                                                  FloatVector v6, FloatVector v7) {
  auto* to = address_of<uint16_t>(stage, offset);
  NarrowedTile tile = narrow_tile(v0, v1, v2, v3, v4, v5, v6, v7);
  put<past_cache>(to, tile.p0);
  put<past_cache>(to + 2 * float_count, tile.p1);
  put<past_cache>(to + 4 * float_count, tile.p2);
  put<past_cache>(to + 6 * float_count, tile.p3);
  continue_tile(stage, offset, v0, v1, v2, v3, v4, v5, v6, v7);
}

HOLDFAST_NATIVE_BFLOAT16 void round_tile_natively(const ChainStage* stage, int64_t offset,
                                                  FloatVector v0, FloatVector v1, FloatVector v2,
                                                  FloatVector v3, FloatVector v4, FloatVector v5,
                                                  FloatVector v6, FloatVector v7) {
  NarrowedTile tile = narrow_tile(v0, v1, v2, v3, v4, v5, v6, v7);
  FloatPair p0 = widen_bfloat16(tile.p0), p1 = widen_bfloat16(tile.p1);
  FloatPair p2 = widen_bfloat16(tile.p2), p3 = widen_bfloat16(tile.p3);
  continue_tile(stage, offset, (FloatVector)p0.first, (FloatVector)p0.second, (FloatVector)p1.first,
                (FloatVector)p1.second, (FloatVector)p2.first, (FloatVector)p2.second,
                (FloatVector)p3.first, (FloatVector)p3.second);
}
#endif

StageCode code_of(TileFunction tile, RestFunction rest) {
  return {reinterpret_cast<void (*)()>(tile), reinterpret_cast<void (*)()>(rest)};
}

template <typename Encoding>
simd::ChainEncoding encoding() {
  simd::ChainEncoding result{code_of(load_tile<Encoding>, load_rest<Encoding>),
                             code_of(store_tile<Encoding, false>, store_rest<Encoding>),
                             code_of(store_tile<Encoding, true>, store_rest<Encoding>),
                             {}};
  if constexpr (requires(FloatVector v) { Encoding::round(v); })
    result.round = stage_code<RoundTo<Encoding>>();
  return result;
}

simd::ChainEncoding bfloat16_encoding() {
  simd::ChainEncoding result = encoding<BFloat16>();
#if defined(__AVX512F__)
  if (has_bfloat16_dot()) {
    auto replace = [](StageCode& code, TileFunction tile) {
      code.tile = reinterpret_cast<void (*)()>(tile);
    };
    replace(result.store, store_tile_natively<false>);
    replace(result.store_past_cache, store_tile_natively<true>);
    replace(result.round, round_tile_natively);
  }
#endif
  return result;
}

// --- The other stages. ---

void fetch_tile(const ChainStage* stage, int64_t offset, FloatVector v0, FloatVector v1,
                FloatVector v2, FloatVector v3, FloatVector v4, FloatVector v5, FloatVector v6,
                FloatVector v7) {
  const char* from = stage->address + offset * stage->step;
  int64_t bytes = tile_size * stage->step;
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + fetch_ahead + i, 0, 2);
  continue_tile(stage, offset, v0, v1, v2, v3, v4, v5, v6, v7);
}

void fetch_rest(const ChainStage* stage, int64_t offset, int64_t count, FloatVector v) {
  continue_rest(stage, offset, count, v);
}

void end_tile(const ChainStage*, int64_t, FloatVector, FloatVector, FloatVector, FloatVector,
              FloatVector, FloatVector, FloatVector, FloatVector) {}
void end_rest(const ChainStage*, int64_t, int64_t, FloatVector) {}

// --- Division by a scalar. ---
//
// x / d is x times the reciprocal of d in two parts, corrected once by the exact remainder: that is
// the correctly rounded quotient (Markstein; the first guess is right to the last place), bit for
// bit what the division gives, and takes half the time where a processor divides slowly. Where a
// step could overflow or lose bits, and for zero, infinities and NaN, the division itself is done.

struct Divisor {
  FloatVector value, reciprocal, reciprocal_rest;
  bool is_power_of_two;  // the product with the reciprocal is the quotient
  bool is_moderate;
};

// Moderate are divisors between 2^-30 and 2^30, and operands with exponents in [-63, 64]: neither
// quotient nor remainder leaves the range of normal numbers.
HOLDFAST_INLINE Divisor prepare(float d) {
  uint32_t bits;
  __builtin_memcpy(&bits, &d, sizeof(bits));
  float magnitude = __builtin_fabsf(d);
  bool is_moderate = magnitude >= 0x1p-30f && magnitude <= 0x1p30f;
  float reciprocal = 1.0f / d;
  float rest = __builtin_fmaf(-reciprocal, d, 1.0f) * reciprocal;
  return {broadcast(d), broadcast(reciprocal), broadcast(rest),
          is_moderate && (bits & 0x7fffffu) == 0, is_moderate};
}

#if defined(__AVX512F__)
// Adding 64 to the exponent of an operand sets its highest bit for the moderate ones and no others.
constexpr int32_t moderate_offset = 0x20000000, moderate_bit = 0x40000000;

HOLDFAST_INLINE FloatVector quotient(FloatVector x, const Divisor& d) {
  FloatVector q = multiply_add(x, d.reciprocal, x * d.reciprocal_rest);
  FloatVector remainder = multiply_add(-q, d.value, x);
  return multiply_add(remainder, d.reciprocal, q);
}

HOLDFAST_INLINE bool all_moderate(Int32Vector bits_in_common) {
  return _mm512_testn_epi32_mask((__m512i)bits_in_common, _mm512_set1_epi32(moderate_bit)) == 0;
}
#endif

void divide_tile(const ChainStage* stage, int64_t offset, FloatVector v0, FloatVector v1,
                 FloatVector v2, FloatVector v3, FloatVector v4, FloatVector v5, FloatVector v6,
                 FloatVector v7) {
  Divisor d = prepare(*operand_of(stage, offset));
  auto each = [&](auto function) {
    v0 = function(v0);
    v1 = function(v1);
    v2 = function(v2);
    v3 = function(v3);
    v4 = function(v4);
    v5 = function(v5);
    v6 = function(v6);
    v7 = function(v7);
  };
  if (d.is_power_of_two) {
    each([&](FloatVector v) { return v * d.reciprocal; });
    continue_tile(stage, offset, v0, v1, v2, v3, v4, v5, v6, v7);
    return;
  }
#if defined(__AVX512F__)
  auto marked = [](FloatVector v) { return bits(v) + moderate_offset; };
  Int32Vector common = marked(v0) & marked(v1) & marked(v2) & marked(v3) & marked(v4) & marked(v5) &
                       marked(v6) & marked(v7);
  if (d.is_moderate && all_moderate(common)) {
    each([&](FloatVector v) { return quotient(v, d); });
    continue_tile(stage, offset, v0, v1, v2, v3, v4, v5, v6, v7);
    return;
  }
#endif
  each([&](FloatVector v) { return v / d.value; });
  continue_tile(stage, offset, v0, v1, v2, v3, v4, v5, v6, v7);
}

void divide_rest(const ChainStage* stage, int64_t offset, int64_t count, FloatVector v) {
  continue_rest(stage, offset, count, v / broadcast(*operand_of(stage, offset)));
}

// --- The table. ---

template <typename Op>
StageCode unary_stage() {
  if constexpr (ChainsUnary<Op>)
    return stage_code<UnaryBody<Op>>();
  else
    return {};
}
template <typename Op>
StageCode half_stage() {
  if constexpr (requires { typename HalfBody<Op>; })
    return stage_code<HalfBody<Op>>();
  else
    return {};
}
template <typename Op>
StageCode binary_stage() {
  if constexpr (ChainsBinary<Op>)
    return stage_code<BinaryBody<Op>>();
  else
    return {};
}
template <typename Op>
StageCode exchanged_stage() {
  if constexpr (ChainsBinary<Op>)
    return stage_code<ExchangedBody<Op>>();
  else
    return {};
}

}  // namespace

StageCode load_stage() { return encoding<Float32>().load; }
StageCode store_stage() { return encoding<Float32>().store; }
StageCode end_stage() { return code_of(end_tile, end_rest); }

void run_chain(const ChainStage* stages, int64_t begin, int64_t end) {
  const FloatVector zero = {};
  auto tile = reinterpret_cast<TileFunction>(stages->code.tile);
  int64_t offset = begin;
  for (; offset + tile_size <= end; offset += tile_size)
    tile(stages, offset, zero, zero, zero, zero, zero, zero, zero, zero);
  auto rest = reinterpret_cast<RestFunction>(stages->code.rest);
  for (; offset < end; offset += float_count)
    rest(stages, offset, smaller(float_count, end - offset), zero);
#if defined(__AVX__)
  // Of a function with vectors as arguments g++ takes it that its caller does this, and of its
  // caller that the function does. What stays behind in the upper halves slows down all code of
  // 128 bits, for as long as the thread runs.
  _mm256_zeroupper();
#endif
}

const simd::ChainKernels& chain_kernels() {
  static const StageCode ops[] = {
#define UNARY(function, Primitive, ...) unary_stage<Primitive>(),
#define BINARY(function, Primitive, ...) binary_stage<Primitive>(),
#define TERNARY(function, Primitive, ...) StageCode{},
#include <holdfast/elementwise.def>
  };
  static const StageCode half_ops[] = {
#define UNARY(function, Primitive, ...) half_stage<Primitive>(),
#define BINARY(function, Primitive, ...) StageCode{},
#define TERNARY(function, Primitive, ...) StageCode{},
#include <holdfast/elementwise.def>
  };
  static const StageCode exchanged_ops[] = {
#define UNARY(function, Primitive, ...) StageCode{},
#define BINARY(function, Primitive, ...) exchanged_stage<Primitive>(),
#define TERNARY(function, Primitive, ...) StageCode{},
#include <holdfast/elementwise.def>
  };
  static const simd::ChainKernels kernels{.tile = tile_size,
                                          .float32 = encoding<Float32>(),
                                          .bfloat16 = bfloat16_encoding(),
#if defined(__F16C__)
                                          .float16 = encoding<Float16>(),
#else
                                          .float16 = {},
#endif
                                          .fetch = code_of(fetch_tile, fetch_rest),
                                          .divide_by_scalar = code_of(divide_tile, divide_rest),
                                          .end = end_stage(),
                                          .ops = ops,
                                          .half_ops = half_ops,
                                          .exchanged_ops = exchanged_ops,
                                          .run = run_chain};
  return kernels;
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
