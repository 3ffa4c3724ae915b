// Element types of arrays: 14 values, their kinds and categories, and the promotion lattice.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include <holdfast/types.h>

namespace holdfast {

struct Dtype {
  enum class Val : uint8_t {
    bool_,
    uint8,
    uint16,
    uint32,
    uint64,
    int8,
    int16,
    int32,
    int64,
    float16,
    float32,
    float64,
    bfloat16,
    complex64,
  };
  enum class Kind : uint8_t { b, u, i, f, c, V };
  enum class Category : uint8_t {
    complexfloating,
    floating,
    inexact,
    signedinteger,
    unsignedinteger,
    integer,
    number,
    generic,
  };

  constexpr explicit Dtype(Val val, uint8_t size) : val_(val), size_(size) {}
  constexpr operator Val() const { return val_; }
  constexpr Val val() const { return val_; }
  constexpr uint8_t size() const { return size_; }

 private:
  Val val_;
  uint8_t size_;
};

inline constexpr int dtype_count = 14;

inline constexpr Dtype bool_{Dtype::Val::bool_, 1};
inline constexpr Dtype uint8{Dtype::Val::uint8, 1};
inline constexpr Dtype uint16{Dtype::Val::uint16, 2};
inline constexpr Dtype uint32{Dtype::Val::uint32, 4};
inline constexpr Dtype uint64{Dtype::Val::uint64, 8};
inline constexpr Dtype int8{Dtype::Val::int8, 1};
inline constexpr Dtype int16{Dtype::Val::int16, 2};
inline constexpr Dtype int32{Dtype::Val::int32, 4};
inline constexpr Dtype int64{Dtype::Val::int64, 8};
inline constexpr Dtype float16{Dtype::Val::float16, 2};
inline constexpr Dtype float32{Dtype::Val::float32, 4};
inline constexpr Dtype float64{Dtype::Val::float64, 8};
inline constexpr Dtype bfloat16{Dtype::Val::bfloat16, 2};
inline constexpr Dtype complex64{Dtype::Val::complex64, 8};

inline constexpr Dtype::Category complexfloating = Dtype::Category::complexfloating;
inline constexpr Dtype::Category floating = Dtype::Category::floating;
inline constexpr Dtype::Category inexact = Dtype::Category::inexact;
inline constexpr Dtype::Category signedinteger = Dtype::Category::signedinteger;
inline constexpr Dtype::Category unsignedinteger = Dtype::Category::unsignedinteger;
inline constexpr Dtype::Category integer = Dtype::Category::integer;
inline constexpr Dtype::Category number = Dtype::Category::number;
inline constexpr Dtype::Category generic = Dtype::Category::generic;

bool issubdtype(const Dtype& a, const Dtype& b);
bool issubdtype(const Dtype::Category& a, const Dtype& b);
bool issubdtype(const Dtype& a, const Dtype::Category& b);
bool issubdtype(const Dtype::Category& a, const Dtype::Category& b);

// The smallest type that both convert to without surprise (the JAX lattice); symmetric.
Dtype promote_types(const Dtype& a, const Dtype& b);

inline constexpr uint8_t size_of(const Dtype& t) { return t.size(); }
Dtype::Kind kindof(const Dtype& t);

// The dtype object of a value: the inverse of `Dtype::val()`.
Dtype dtype_of(Dtype::Val val);
// "float32", "bool", ...: NumPy's names.
const char* dtype_name(Dtype::Val val);

// The dtype of a C++ scalar type. `double` maps to float32: literals are double.
template <typename T>
struct TypeToDtype {
  operator Dtype();
};
#define HOLDFAST_TYPE_TO_DTYPE(type, dtype)            \
  template <>                                          \
  struct TypeToDtype<type> {                           \
    static constexpr Dtype value = dtype;              \
    constexpr operator Dtype() const { return dtype; } \
  };
HOLDFAST_TYPE_TO_DTYPE(bool, bool_)
HOLDFAST_TYPE_TO_DTYPE(uint8_t, uint8)
HOLDFAST_TYPE_TO_DTYPE(uint16_t, uint16)
HOLDFAST_TYPE_TO_DTYPE(uint32_t, uint32)
HOLDFAST_TYPE_TO_DTYPE(unsigned long, uint64)
HOLDFAST_TYPE_TO_DTYPE(unsigned long long, uint64)
HOLDFAST_TYPE_TO_DTYPE(int8_t, int8)
HOLDFAST_TYPE_TO_DTYPE(int16_t, int16)
HOLDFAST_TYPE_TO_DTYPE(int32_t, int32)
HOLDFAST_TYPE_TO_DTYPE(long, int64)
HOLDFAST_TYPE_TO_DTYPE(long long, int64)
HOLDFAST_TYPE_TO_DTYPE(float16_t, float16)
HOLDFAST_TYPE_TO_DTYPE(bfloat16_t, bfloat16)
HOLDFAST_TYPE_TO_DTYPE(float, float32)
HOLDFAST_TYPE_TO_DTYPE(double, float32)
HOLDFAST_TYPE_TO_DTYPE(complex64_t, complex64)
HOLDFAST_TYPE_TO_DTYPE(std::complex<float>, complex64)
#undef HOLDFAST_TYPE_TO_DTYPE

// Calls `f(std::type_identity<T>{})` with the C++ element type of `val`: the one dtype dispatch.
// `double` stands for float64 here.
template <typename F>
decltype(auto) dispatch_dtype(Dtype::Val val, F&& f) {
  switch (val) {
    case Dtype::Val::bool_:
      return f(std::type_identity<bool>{});
    case Dtype::Val::uint8:
      return f(std::type_identity<uint8_t>{});
    case Dtype::Val::uint16:
      return f(std::type_identity<uint16_t>{});
    case Dtype::Val::uint32:
      return f(std::type_identity<uint32_t>{});
    case Dtype::Val::uint64:
      return f(std::type_identity<uint64_t>{});
    case Dtype::Val::int8:
      return f(std::type_identity<int8_t>{});
    case Dtype::Val::int16:
      return f(std::type_identity<int16_t>{});
    case Dtype::Val::int32:
      return f(std::type_identity<int32_t>{});
    case Dtype::Val::int64:
      return f(std::type_identity<int64_t>{});
    case Dtype::Val::float16:
      return f(std::type_identity<float16_t>{});
    case Dtype::Val::float32:
      return f(std::type_identity<float>{});
    case Dtype::Val::float64:
      return f(std::type_identity<double>{});
    case Dtype::Val::bfloat16:
      return f(std::type_identity<bfloat16_t>{});
    case Dtype::Val::complex64:
      break;
  }
  return f(std::type_identity<complex64_t>{});
}

std::ostream& operator<<(std::ostream& os, const Dtype& dtype);
std::ostream& operator<<(std::ostream& os, const Dtype::Kind& kind);

}  // namespace holdfast
