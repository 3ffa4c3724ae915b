// The integer functions of namespace metal.
#pragma once

#include <holdfast/common.h>

namespace __hf {

template <class T>
using unsigned_t = __make_unsigned(T);

// A function of integers that arithmetic in a wider type gives.
template <class T>
struct wider {
  using type = metal::conditional_t<__is_signed(T), long, ulong>;
};
template <class T>
using wider_t = typename wider<T>::type;

// The high half of a product of 64 bits each, from four products of 32 bits.
HF_INLINE ulong high_product(ulong a, ulong b) {
  ulong a0 = a & 0xFFFFFFFFul, a1 = a >> 32, b0 = b & 0xFFFFFFFFul, b1 = b >> 32;
  ulong middle = a1 * b0 + ((a0 * b0) >> 32);
  ulong low_middle = (middle & 0xFFFFFFFFul) + a0 * b1;
  return a1 * b1 + (middle >> 32) + (low_middle >> 32);
}

template <class T>
HF_INLINE T mulhi(T a, T b) {
  if constexpr (sizeof(T) < 8) {
    using W = wider_t<T>;
    return static_cast<T>((static_cast<W>(a) * static_cast<W>(b)) >> (8 * sizeof(T)));
  } else {
    ulong high = high_product(static_cast<ulong>(a), static_cast<ulong>(b));
    if constexpr (__is_signed(T)) {
      high -= a < 0 ? static_cast<ulong>(b) : 0ul;
      high -= b < 0 ? static_cast<ulong>(a) : 0ul;
    }
    return static_cast<T>(high);
  }
}

template <class T>
inline constexpr T lowest =
    __is_signed(T) ? static_cast<T>(unsigned_t<T>(1) << (8 * sizeof(T) - 1)) : T(0);
template <class T>
inline constexpr T highest = static_cast<T>(~lowest<T>);

template <class T>
HF_INLINE T addsat(T a, T b) {
  using U = unsigned_t<T>;
  T sum = static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  if constexpr (__is_signed(T)) {
    bool overflows = ((a ^ sum) & (b ^ sum)) < 0;
    return overflows ? (a < 0 ? lowest<T> : highest<T>) : sum;
  } else {
    return sum < a ? highest<T> : sum;
  }
}

template <class T>
HF_INLINE T subsat(T a, T b) {
  using U = unsigned_t<T>;
  T difference = static_cast<T>(static_cast<U>(static_cast<U>(a) - static_cast<U>(b)));
  if constexpr (__is_signed(T)) {
    bool overflows = ((a ^ b) & (a ^ difference)) < 0;
    return overflows ? (a < 0 ? lowest<T> : highest<T>) : difference;
  } else {
    return b > a ? T(0) : difference;
  }
}

template <class T>
HF_INLINE T wrapping_add(T a, T b) {
  using U = unsigned_t<T>;
  return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
}

template <class T>
HF_INLINE T madsat(T a, T b, T c) {
  if constexpr (sizeof(T) < 8) {
    using W = wider_t<T>;
    W value = static_cast<W>(a) * static_cast<W>(b) + static_cast<W>(c);
    W low = static_cast<W>(lowest<T>), high = static_cast<W>(highest<T>);
    value = value < low ? low : value;
    return static_cast<T>(value > high ? high : value);
  } else if constexpr (__is_signed(T)) {
    T high = mulhi(a, b);
    ulong low = static_cast<ulong>(a) * static_cast<ulong>(b);
    ulong sum = low + static_cast<ulong>(c);
    // The 128-bit sum: its high half takes the carry and the sign of c.
    long top = static_cast<long>(static_cast<ulong>(high) + (sum < low ? 1ul : 0ul) +
                                 static_cast<ulong>(c >> 63));
    bool fits = top == (static_cast<long>(sum) >> 63);
    return fits ? static_cast<T>(sum) : (top < 0 ? lowest<T> : highest<T>);
  } else {
    T product = a * b;
    return mulhi(a, b) != 0 ? highest<T> : addsat(product, c);
  }
}

template <class T>
HF_INLINE unsigned_t<T> absdiff(T a, T b) {
  using U = unsigned_t<T>;
  return a > b ? static_cast<U>(static_cast<U>(a) - static_cast<U>(b))
               : static_cast<U>(static_cast<U>(b) - static_cast<U>(a));
}

template <class T>
HF_INLINE T clz(T x) {
  using U = unsigned_t<T>;
  U u = static_cast<U>(x);
  if constexpr (sizeof(T) == 8)
    return u == 0 ? T(64) : static_cast<T>(__builtin_clzl(u));
  else
    return u == 0 ? static_cast<T>(8 * sizeof(T))
                  : static_cast<T>(__builtin_clz(u) - (32 - 8 * static_cast<int>(sizeof(T))));
}

template <class T>
HF_INLINE T ctz(T x) {
  using U = unsigned_t<T>;
  U u = static_cast<U>(x);
  if constexpr (sizeof(T) == 8)
    return u == 0 ? T(64) : static_cast<T>(__builtin_ctzl(u));
  else
    return u == 0 ? static_cast<T>(8 * sizeof(T)) : static_cast<T>(__builtin_ctz(u));
}

template <class T>
HF_INLINE T popcount(T x) {
  using U = unsigned_t<T>;
  return static_cast<T>(sizeof(T) == 8 ? __builtin_popcountl(static_cast<U>(x))
                                       : __builtin_popcount(static_cast<U>(x)));
}

template <class T>
HF_INLINE T reverse_bits(T x) {
  if constexpr (sizeof(T) == 8)
    return static_cast<T>(__builtin_bitreverse64(static_cast<ulong>(x)));
  else if constexpr (sizeof(T) == 4)
    return static_cast<T>(__builtin_bitreverse32(static_cast<uint>(x)));
  else if constexpr (sizeof(T) == 2)
    return static_cast<T>(__builtin_bitreverse16(static_cast<ushort>(x)));
  else
    return static_cast<T>(__builtin_bitreverse8(static_cast<uchar>(x)));
}

template <class T>
HF_INLINE T rotate(T x, T count) {
  using U = unsigned_t<T>;
  constexpr uint bits = 8 * sizeof(T);
  uint left = static_cast<uint>(static_cast<U>(count)) & (bits - 1),
       right = (bits - left) & (bits - 1);
  U u = static_cast<U>(x);
  return static_cast<T>(static_cast<U>(static_cast<U>(u << left) | static_cast<U>(u >> right)));
}

}  // namespace __hf

namespace metal {

#define HF_INTEGER1(name)                   \
  template <class T>                        \
  HF_INLINE __hf::if_integer<T> name(T x) { \
    return __hf::name<T>(x);                \
  }                                         \
  HF_VECTOR1(name)
#define HF_INTEGER2(name, function)                           \
  template <class A, class B, class T = __hf::common_t<A, B>> \
  HF_INLINE __hf::if_integer<T> name(A x, B y) {              \
    T a = static_cast<T>(x), b = static_cast<T>(y);           \
    return static_cast<T>(function);                          \
  }                                                           \
  HF_VECTOR2(name)
#define HF_INTEGER3(name, function)                                        \
  template <class A, class B, class C, class T = __hf::common3_t<A, B, C>> \
  HF_INLINE __hf::if_integer<T> name(A x, B y, C z) {                      \
    T a = static_cast<T>(x), b = static_cast<T>(y), c = static_cast<T>(z); \
    return static_cast<T>(function);                                       \
  }                                                                        \
  HF_VECTOR3(name)

HF_INTEGER1(clz)
HF_INTEGER1(ctz)
HF_INTEGER1(popcount)
HF_INTEGER1(reverse_bits)
HF_INTEGER2(mulhi, __hf::mulhi<T>(a, b))
HF_INTEGER2(addsat, __hf::addsat<T>(a, b))
HF_INTEGER2(subsat, __hf::subsat<T>(a, b))
HF_INTEGER2(rotate, __hf::rotate<T>(a, b))
HF_INTEGER2(hadd, (a >> 1) + (b >> 1) + (a & b & 1))
HF_INTEGER2(rhadd, (a >> 1) + (b >> 1) + ((a | b) & 1))
HF_INTEGER3(madhi, __hf::wrapping_add<T>(__hf::mulhi<T>(a, b), c))
HF_INTEGER3(madsat, __hf::madsat<T>(a, b, c))
#undef HF_INTEGER1
#undef HF_INTEGER2
#undef HF_INTEGER3

template <class A, class B, class T = __hf::common_t<A, B>>
HF_INLINE __hf::unsigned_t<__hf::if_integer<T>> absdiff(A a, B b) {
  return __hf::absdiff<T>(static_cast<T>(a), static_cast<T>(b));
}
template <class T, int n>
HF_INLINE vec<__hf::unsigned_t<T>, n> absdiff(vec<T, n> a, __hf::same<vec<T, n>> b){
    HF_MAP2(__hf::unsigned_t<T>, absdiff, a, b)}

// Of 24-bit operands: any product that wraps is one.
HF_INLINE int mul24(int a, int b) {
  return static_cast<int>(static_cast<uint>(a) * static_cast<uint>(b));
}
HF_INLINE uint mul24(uint a, uint b) { return a * b; }
HF_INLINE int mad24(int a, int b, int c) {
  return static_cast<int>(static_cast<uint>(mul24(a, b)) + static_cast<uint>(c));
}
HF_INLINE uint mad24(uint a, uint b, uint c) { return a * b + c; }

// `count` bits from `offset` on; signed types take the sign from the top one. None for count 0.
template <class T>
HF_INLINE __hf::if_integer<T> extract_bits(T x, uint offset, uint count) {
  constexpr uint size = 8 * sizeof(T);
  using W = conditional_t<(size < 32), conditional_t<__is_signed(T), int, uint>, T>;
  using U = __hf::unsigned_t<W>;
  constexpr uint width = 8 * sizeof(W);
  uint up = (width - offset - count) & (width - 1), down = (width - count) & (width - 1);
  W moved = static_cast<W>(static_cast<U>(static_cast<U>(x) << up));
  return count == 0 ? T(0) : static_cast<T>(moved >> down);
}
template <class T, int n>
HF_INLINE vec<T, n> extract_bits(vec<T, n> x, uint offset, uint count) {
  vec<uint, n> o(offset), c(count);
  HF_MAP3(T, extract_bits, x, o, c)
}

template <class T>
HF_INLINE __hf::if_integer<T> insert_bits(T base, __hf::same<T> insert, uint offset, uint count) {
  using U = __hf::unsigned_t<T>;
  constexpr uint size = 8 * sizeof(T);
  U ones =
      count >= size ? static_cast<U>(~U(0)) : static_cast<U>((U(1) << (count & (size - 1))) - 1);
  U mask = static_cast<U>(ones << (offset & (size - 1)));
  mask = count == 0 ? U(0) : mask;
  U moved = static_cast<U>(static_cast<U>(insert) << (offset & (size - 1)));
  return static_cast<T>(
      static_cast<U>((static_cast<U>(base) & static_cast<U>(~mask)) | (moved & mask)));
}
template <class T, int n>
HF_INLINE vec<T, n> insert_bits(vec<T, n> base, __hf::same<vec<T, n>> insert, uint offset,
                                uint count) {
  vec<T, n> result;
  for (int i = 0; i < n; ++i) result[i] = insert_bits(base[i], insert[i], offset, count);
  return result;
}

}  // namespace metal
