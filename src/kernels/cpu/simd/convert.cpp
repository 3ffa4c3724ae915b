// Conversions between lanes, and between the half types and their lane.
#include "kernels/cpu/simd/half.h"
#include "kernels/cpu/simd/kernel_tables.h"
#include "kernels/cpu/simd/math.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

namespace {

// --- One element from one type to another; the rules are those of convert_kernel (elementwise.h).

template <typename To>
struct Limits;
#define HOLDFAST_LIMITS(type, lowest_value, highest_value)                \
  template <>                                                             \
  struct Limits<type> {                                                   \
    static constexpr type lowest = lowest_value, highest = highest_value; \
  };
HOLDFAST_LIMITS(uint8_t, 0, UINT8_MAX)
HOLDFAST_LIMITS(uint16_t, 0, UINT16_MAX)
HOLDFAST_LIMITS(uint32_t, 0, UINT32_MAX)
HOLDFAST_LIMITS(uint64_t, 0, UINT64_MAX)
HOLDFAST_LIMITS(int8_t, INT8_MIN, INT8_MAX)
HOLDFAST_LIMITS(int16_t, INT16_MIN, INT16_MAX)
HOLDFAST_LIMITS(int32_t, INT32_MIN, INT32_MAX)
HOLDFAST_LIMITS(int64_t, INT64_MIN, INT64_MAX)
#undef HOLDFAST_LIMITS

// Below: the value converts, since it lies strictly between lowest - 1 and highest + 1. `highest +
// 1` is a power of two, so exact in every float type.
template <typename To, typename From>
HOLDFAST_INLINE To float_to_integer(From a) {
  constexpr From end = static_cast<From>(Limits<To>::highest / 2 + 1) * 2;
  constexpr From begin = static_cast<From>(Limits<To>::lowest);
  bool low = !(a > begin), high = a >= end;  // NaN is low
  From inside = either(low, high) ? From(0) : a;
  To converted;
  if constexpr (sizeof(To) < 4) {
    converted = static_cast<To>(static_cast<int32_t>(inside));
  } else if constexpr (std::is_same_v<To, uint32_t>) {
    // There is no vector conversion to unsigned before AVX-512: convert the upper half moved down.
    bool upper = inside >= From(2147483648.0);
    int32_t moved = static_cast<int32_t>(upper ? inside - From(2147483648.0) : inside);
    converted = static_cast<uint32_t>(moved) + (upper ? 0x80000000u : 0u);
  } else {
    converted = static_cast<To>(inside);
  }
  To limit = high ? Limits<To>::highest : (a == a ? Limits<To>::lowest : To(0));
  return either(low, high) ? limit : converted;
}

template <typename To, typename From>
HOLDFAST_INLINE To convert_element(From a) {
  if constexpr (is_bool<From>) {
    return convert_element<To>(a.value);
  } else if constexpr (is_complex<From>) {
    if constexpr (is_bool<To>)
      return {static_cast<uint8_t>(either(a.real != 0, a.imag != 0))};
    else
      return convert_element<To>(a.real);
  } else if constexpr (is_bool<To>) {
    return {static_cast<uint8_t>(a != 0)};
  } else if constexpr (is_complex<To>) {
    return {static_cast<float>(a), 0.0f};
  } else if constexpr (is_float<From> && is_integer<To>) {
    return float_to_integer<To>(a);
  } else {
    return static_cast<To>(a);
  }
}

// --- Loops.

template <typename To, typename From>
struct Conversion {
  static auto apply(From a) { return convert_element<To>(a); }
};

template <typename To, typename From>
void run(void* out, const void* in, int64_t n) {
  UnaryLoop<Conversion<To, From>, From>::run(out, &in, n);
}

template <size_t size>
void copy(void* out, const void* in, int64_t n) {
  if (out != in) __builtin_memcpy(out, in, static_cast<size_t>(n) * size);
}

// In two steps, through `Middle`, in pieces that stay in the cache.
template <typename Middle, ConvertKernel first, ConvertKernel second, size_t from_size,
          size_t to_size>
void run_in_two_steps(void* out, const void* in, int64_t n) {
  constexpr int64_t piece = 512;
  Middle middle[piece];
  for (int64_t begin = 0; begin < n; begin += piece) {
    int64_t count = smaller(piece, n - begin);
    first(middle, static_cast<const char*>(in) + begin * static_cast<int64_t>(from_size), count);
    second(static_cast<char*>(out) + begin * static_cast<int64_t>(to_size), middle, count);
  }
}

template <typename T>
inline constexpr bool is_signed_type = false;
template <AnyInteger T>
inline constexpr bool is_signed_type<T> = std::is_signed_v<T>;

template <typename From, typename To>
constexpr ConvertKernel converter() {
  // Bool converts like uint8_t, and narrowing is the same for signed and unsigned integers.
  if constexpr (is_bool<From> && !is_bool<To>) {
    return converter<uint8_t, To>();
  } else if constexpr (std::is_same_v<From, To>) {
    return &copy<sizeof(From)>;
  } else if constexpr (is_integer<From> && is_integer<To>) {
    if constexpr (sizeof(From) == sizeof(To))
      return &copy<sizeof(From)>;
    else if constexpr (sizeof(To) < sizeof(From))
      return &run<std::make_unsigned_t<To>, std::make_unsigned_t<From>>;
    else
      return &run<std::make_unsigned_t<To>, From>;
  } else if constexpr (is_integer<From> && is_bool<To>) {
    return &run<Bool, std::make_unsigned_t<From>>;
  } else if constexpr (is_complex<From> && !is_bool<To> && !std::is_same_v<To, float>) {
    return &run_in_two_steps<float, &run<float, Complex>, converter<float, To>(), 8, sizeof(To)>;
  } else if constexpr (is_complex<To> && !std::is_same_v<From, float>) {
    return &run_in_two_steps<float, converter<From, float>(), &run<Complex, float>, sizeof(From),
                             8>;
  } else {
    return &run<To, From>;
  }
}

// --- Half types. A half takes part in any conversion as a float32.

template <typename Half>
void load_half(void* out, const void* in, int64_t n) {
  UnaryLoop<LoadHalf<Half>, uint16_t>::run(out, &in, n);
}
template <typename Half>
void store_half(void* out, const void* in, int64_t n) {
  UnaryLoop<StoreHalf<Half>, float>::run(out, &in, n);
}
template <typename Half>
void round_half(void* out, const void* in, int64_t n) {
  UnaryLoop<RoundHalf<Half>, float>::run(out, &in, n);
}

template <typename Half, typename To>
constexpr ConvertKernel from_half() {
  if constexpr (std::is_same_v<To, float>)
    return &load_half<Half>;
  else
    return &run_in_two_steps<float, &load_half<Half>, converter<float, To>(), 2, sizeof(To)>;
}
template <typename From, typename Half>
constexpr ConvertKernel to_half() {
  if constexpr (std::is_same_v<From, float>)
    return &store_half<Half>;
  else
    return &run_in_two_steps<float, converter<From, float>(), &store_half<Half>, sizeof(From), 2>;
}

// All types in the order of Lane.
#define HOLDFAST_LANE_TYPES(f)                                                                   \
  f(Bool), f(uint8_t), f(uint16_t), f(uint32_t), f(uint64_t), f(int8_t), f(int16_t), f(int32_t), \
      f(int64_t), f(float), f(double), f(Complex)

template <typename From>
constexpr ConvertKernel converters_from(Lane to) {
#define HOLDFAST_CONVERTER(To) converter<From, To>()
  constexpr ConvertKernel kernels[] = {HOLDFAST_LANE_TYPES(HOLDFAST_CONVERTER)};
#undef HOLDFAST_CONVERTER
  return kernels[static_cast<size_t>(to)];
}

template <typename Half>
ConvertKernel converter_from_half(Lane to) {
#define HOLDFAST_CONVERTER(To) from_half<Half, To>()
  static constexpr ConvertKernel kernels[] = {HOLDFAST_LANE_TYPES(HOLDFAST_CONVERTER)};
#undef HOLDFAST_CONVERTER
  return kernels[static_cast<size_t>(to)];
}

template <typename Half>
ConvertKernel converter_to_half(Lane from) {
#define HOLDFAST_CONVERTER(From) to_half<From, Half>()
  static constexpr ConvertKernel kernels[] = {HOLDFAST_LANE_TYPES(HOLDFAST_CONVERTER)};
#undef HOLDFAST_CONVERTER
  return kernels[static_cast<size_t>(from)];
}

bool is_half(Dtype::Val dtype) {
  return dtype == Dtype::Val::float16 || dtype == Dtype::Val::bfloat16;
}

}  // namespace

ConvertKernel lane_converter(Lane from, Lane to) {
#define HOLDFAST_ROW(From) &converters_from<From>
  static constexpr ConvertKernel (*rows[])(Lane) = {HOLDFAST_LANE_TYPES(HOLDFAST_ROW)};
#undef HOLDFAST_ROW
  return rows[static_cast<size_t>(from)](to);
}

ConvertKernel half_loader(Dtype::Val from) {
  return from == Dtype::Val::float16 ? &load_half<Float16> : &load_half<BFloat16>;
}
ConvertKernel half_storer(Dtype::Val to) {
  return to == Dtype::Val::float16 ? &store_half<Float16> : &store_half<BFloat16>;
}
ConvertKernel half_rounder(Dtype::Val half) {
  return half == Dtype::Val::float16 ? &round_half<Float16> : &round_half<BFloat16>;
}

ConvertKernel half_converter(Dtype::Val from, Dtype::Val to) {
  if (from == to) return &copy<2>;
  if (is_half(from) && is_half(to)) {
    return from == Dtype::Val::float16
               ? &run_in_two_steps<float, &load_half<Float16>, &store_half<BFloat16>, 2, 2>
               : &run_in_two_steps<float, &load_half<BFloat16>, &store_half<Float16>, 2, 2>;
  }
  if (is_half(from)) {
    return from == Dtype::Val::float16 ? converter_from_half<Float16>(lane_of(to))
                                       : converter_from_half<BFloat16>(lane_of(to));
  }
  return to == Dtype::Val::float16 ? converter_to_half<Float16>(lane_of(from))
                                   : converter_to_half<BFloat16>(lane_of(from));
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
