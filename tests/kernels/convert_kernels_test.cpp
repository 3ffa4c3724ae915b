// Conversions between all dtypes, against a scalar reference; the half types against types.h for
// every half.
#include <bit>

#include "elementwise_test_support.h"

using namespace holdfast;
using namespace holdfast::kernels;
using namespace holdfast::kernels::cpu;
using namespace holdfast::kernels::cpu::test;

namespace {

template <typename To, typename From>
To convert_reference(From a) {
  if constexpr (std::is_same_v<From, complex64_t>) {
    if constexpr (std::is_same_v<To, bool>)
      return a.real() != 0 || a.imag() != 0;
    else if constexpr (std::is_same_v<To, complex64_t>)
      return a;
    else
      return convert_reference<To>(a.real());
  } else if constexpr (std::is_same_v<From, float16_t> || std::is_same_v<From, bfloat16_t>) {
    if constexpr (std::is_same_v<From, To>)
      return a;
    else
      return convert_reference<To>(static_cast<float>(a));
  } else if constexpr (std::is_same_v<To, bool>) {
    return a != 0;
  } else if constexpr (std::is_same_v<To, complex64_t>) {
    return complex64_t(static_cast<float>(a), 0.0f);
  } else if constexpr (std::is_same_v<To, float16_t> || std::is_same_v<To, bfloat16_t>) {
    return To(static_cast<float>(a));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(a)) return 0;
    Long truncated = std::trunc(static_cast<Long>(a));
    if (truncated <= static_cast<Long>(std::numeric_limits<To>::min()))
      return std::numeric_limits<To>::min();
    if (truncated >= static_cast<Long>(std::numeric_limits<To>::max()))
      return std::numeric_limits<To>::max();
    return static_cast<To>(truncated);
  } else {
    return static_cast<To>(a);
  }
}

template <typename T>
std::vector<T> conversion_operands() {
  std::vector<T> values;
  if constexpr (std::is_same_v<T, bool>) {
    for (int i = 0; i < 70; ++i) values.push_back(i % 3 == 0);
  } else if constexpr (std::is_integral_v<T>) {
    values = integer_operands<T>();
  } else if constexpr (std::is_same_v<T, complex64_t>) {
    std::vector<float> parts = float_operands<float>(300);
    for (size_t i = 0; i < parts.size(); ++i)
      values.push_back({parts[i], parts[(i * 7 + 3) % parts.size()]});
    values.push_back({0, 1});
  } else {
    using Source = std::conditional_t<std::is_same_v<T, double>, double, float>;
    for (Source value : float_operands<Source>(600)) values.push_back(T(value));
    // The limits of every integer type, and their neighbours.
    for (int bits : {7, 8, 15, 16, 31, 32, 63, 64}) {
      for (Source sign : {Source(1), Source(-1)}) {
        Source limit = sign * std::ldexp(Source(1), bits);
        for (Source value :
             {limit, std::nextafter(limit, Source(0)), std::nextafter(limit, 2 * limit),
              limit - Source(0.5), limit + Source(0.5), limit - 1, limit + 1}) {
          values.push_back(T(value));
        }
      }
    }
  }
  return values;
}

// Bit patterns, with all NaNs of a type as one.
template <typename T>
uint64_t comparable(T value) {
  if constexpr (std::is_same_v<T, complex64_t>) {
    return comparable(value.real()) << 32 | comparable(value.imag());
  } else if constexpr (!std::is_integral_v<T>) {
    if (std::isnan(static_cast<double>(value))) return 0x7fc00000;
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
  } else {
    return static_cast<uint64_t>(value);
  }
}

template <typename From, typename To>
void check_conversion(Val from, Val to) {
  // std::vector<bool> has no data(), so values travel as bytes.
  auto values = conversion_operands<From>();
  std::vector<unsigned char> in(values.size() * sizeof(From));
  for (size_t i = 0; i < values.size(); ++i) {
    From value = values[i];
    std::memcpy(in.data() + i * sizeof(From), &value, sizeof(From));
  }
  int64_t n = static_cast<int64_t>(values.size());
  std::vector<unsigned char> out(values.size() * sizeof(To) + 16, canary);
  convert_kernel(from, to)(out.data(), in.data(), n);
  int wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    To got;
    std::memcpy(&got, out.data() + i * sizeof(To), sizeof(To));
    wrong += comparable(got) != comparable(convert_reference<To, From>(values[i]));
  }
  for (size_t i = values.size() * sizeof(To); i < out.size(); ++i) wrong += out[i] != canary;

  // The parts of a fused group give the same bits: load, convert between lanes, round, store.
  std::vector<unsigned char> lanes(values.size() * 8), converted(values.size() * 8),
      stored(out.size(), canary);
  if (ConvertKernel load = load_kernel(from))
    load(lanes.data(), in.data(), n);
  else
    std::memcpy(lanes.data(), in.data(), in.size());
  lane_convert_kernel(lane_of(from), lane_of(to))(converted.data(), lanes.data(), n);
  if (ConvertKernel round = round_kernel(to)) round(converted.data(), converted.data(), n);
  if (ConvertKernel store = store_kernel(to))
    store(stored.data(), converted.data(), n);
  else
    std::memcpy(stored.data(), converted.data(), values.size() * sizeof(To));
  if (from != to) wrong += stored != out;  // a copy keeps signalling NaNs, a load quiets them

  // One element at a time, and in place where the sizes agree.
  std::vector<unsigned char> one(out.size(), canary);
  for (size_t i = 0; i < values.size(); ++i) {
    convert_kernel(from, to)(one.data() + i * sizeof(To), in.data() + i * sizeof(From), 1);
  }
  wrong += one != out;
  if (sizeof(From) == sizeof(To)) {
    convert_kernel(from, to)(in.data(), in.data(), n);
    wrong += std::memcmp(in.data(), out.data(), in.size()) != 0;
  }
  INFO(std::string(dtype_name(from)), " to ", std::string(dtype_name(to)));
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("conversions between all pairs of dtypes") {
  for_each_instruction_set([] {
    for (int i = 0; i < dtype_count; ++i) {
      for (int j = 0; j < dtype_count; ++j) {
        Val from = static_cast<Val>(i), to = static_cast<Val>(j);
        dispatch_dtype(from, [&](auto from_type) {
          dispatch_dtype(to, [&](auto to_type) {
            check_conversion<typename decltype(from_type)::type, typename decltype(to_type)::type>(
                from, to);
          });
        });
      }
    }
  });
}

TEST_CASE("conversions of float to integer saturate, NaN gives 0") {
  for_each_instruction_set([] {
    std::vector<float> in = {NAN, INFINITY, -INFINITY, 3e9f, -3e9f, -1.9f, 1.9f, -0.0f, 300.0f};
    std::vector<int32_t> signed_out(in.size());
    std::vector<uint8_t> unsigned_out(in.size());
    convert_kernel(Val::float32, Val::int32)(signed_out.data(), in.data(),
                                             static_cast<int64_t>(in.size()));
    convert_kernel(Val::float32, Val::uint8)(unsigned_out.data(), in.data(),
                                             static_cast<int64_t>(in.size()));
    CHECK(signed_out ==
          std::vector<int32_t>{0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, -1, 1, 0, 300});
    CHECK(unsigned_out == std::vector<uint8_t>{0, 255, 0, 255, 0, 0, 1, 0, 255});
  });
}

TEST_CASE("loading every half, and storing the floats around every half, agrees with types.h") {
  for_each_instruction_set([] {
    for (Val dtype : {Val::float16, Val::bfloat16}) {
      bool is_float16 = dtype == Val::float16;
      auto encode = is_float16 ? detail::float_to_half_bits : detail::float_to_bfloat_bits;
      auto decode = is_float16 ? detail::half_bits_to_float : detail::bfloat_bits_to_float;
      std::vector<uint16_t> halves(65536);
      for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
      std::vector<float> loaded(halves.size());
      load_kernel(dtype)(loaded.data(), halves.data(), 65536);
      int wrong = 0;
      std::vector<float> around;
      for (uint16_t half : halves) {
        uint32_t expected = std::bit_cast<uint32_t>(decode(half)),
                 got = std::bit_cast<uint32_t>(loaded[half]);
        bool quieted = std::isnan(decode(half)) && got == (expected | 0x400000u);
        wrong += got != expected && !(is_float16 && quieted);
        // The float itself, the middle to the next half, and the neighbours of both.
        uint32_t step = is_float16 ? 0x1000u : 0x8000u;
        for (uint32_t bits : {expected, expected + 1, expected - 1, expected + step,
                              expected + step + 1, expected + step - 1}) {
          around.push_back(std::bit_cast<float>(bits));
        }
      }
      // Subnormal float16: the middles are elsewhere.
      for (int i = 0; i < 4096; ++i) {
        float middle = std::ldexp(static_cast<float>(i), -25);
        for (float value : {middle, std::nextafterf(middle, 0.0f), std::nextafterf(middle, 1.0f)}) {
          around.push_back(value);
          around.push_back(-value);
        }
      }
      int64_t n = static_cast<int64_t>(around.size());
      std::vector<uint16_t> stored(around.size()), stored_rounded(around.size());
      std::vector<float> rounded(around.size());
      store_kernel(dtype)(stored.data(), around.data(), n);
      round_kernel(dtype)(rounded.data(), around.data(), n);
      store_kernel(dtype)(stored_rounded.data(), rounded.data(), n);
      for (size_t i = 0; i < around.size(); ++i) {
        wrong += stored[i] != encode(around[i]);
        wrong += std::bit_cast<uint32_t>(rounded[i]) !=
                 std::bit_cast<uint32_t>(decode(encode(around[i])));
      }
      wrong += stored_rounded != stored;
      std::vector<float> in_place = around;
      round_kernel(dtype)(in_place.data(), in_place.data(), n);
      wrong += std::memcmp(in_place.data(), rounded.data(), rounded.size() * 4) != 0;
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("load, store and round exist for the half types only") {
  for (int i = 0; i < dtype_count; ++i) {
    Val dtype = static_cast<Val>(i);
    bool is_half = dtype == Val::float16 || dtype == Val::bfloat16;
    CHECK((load_kernel(dtype) != nullptr) == is_half);
    CHECK((store_kernel(dtype) != nullptr) == is_half);
    CHECK((round_kernel(dtype) != nullptr) == is_half);
    CHECK(lane_size(lane_of(dtype)) == (is_half ? 4u : dtype_of(dtype).size()));
  }
}
