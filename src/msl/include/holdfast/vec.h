// metal::vec<T, n>, n = 2, 3, 4: constructors, swizzles, operators per component.
//
// A class and not a vector type of the compiler, because float4(a, b, c, d) has to be a
// constructor. Copies are written out, so that they become scalar loads and stores and never a
// memcpy. A swizzle is a property: v.xy = w calls __put_xy.
#pragma once

#include <holdfast/swizzles.h>
#include <holdfast/traits.h>

// What a row of swizzles.h becomes.
#define HF_GET(n, name, ...) \
  HF_INLINE constexpr vec<T, n> __get_##name() const { return vec<T, n>(__VA_ARGS__); }
#define HF_READ(n, name, colour) __declspec(property(get = __get_##name)) vec<T, n> name, colour;
#define HF_WRITE(n, name, colour) \
  __declspec(property(get = __get_##name, put = __put_##name)) vec<T, n> name, colour;
#define HF_READ2(a, b, A, B) HF_GET(2, a##b, a, b) HF_READ(2, a##b, A##B)
#define HF_READ3(a, b, c, A, B, C) HF_GET(3, a##b##c, a, b, c) HF_READ(3, a##b##c, A##B##C)
#define HF_READ4(a, b, c, d, A, B, C, D) \
  HF_GET(4, a##b##c##d, a, b, c, d) HF_READ(4, a##b##c##d, A##B##C##D)
#define HF_WRITE2(a, b, A, B)                          \
  HF_GET(2, a##b, a, b)                                \
  HF_INLINE constexpr void __put_##a##b(vec<T, 2> v) { \
    a = v.x;                                           \
    b = v.y;                                           \
  }                                                    \
  HF_WRITE(2, a##b, A##B)
#define HF_WRITE3(a, b, c, A, B, C)                       \
  HF_GET(3, a##b##c, a, b, c)                             \
  HF_INLINE constexpr void __put_##a##b##c(vec<T, 3> v) { \
    a = v.x;                                              \
    b = v.y;                                              \
    c = v.z;                                              \
  }                                                       \
  HF_WRITE(3, a##b##c, A##B##C)
#define HF_WRITE4(a, b, c, d, A, B, C, D)                    \
  HF_GET(4, a##b##c##d, a, b, c, d)                          \
  HF_INLINE constexpr void __put_##a##b##c##d(vec<T, 4> v) { \
    a = v.x;                                                 \
    b = v.y;                                                 \
    c = v.z;                                                 \
    d = v.w;                                                 \
  }                                                          \
  HF_WRITE(4, a##b##c##d, A##B##C##D)

// The components of a vec of n, each through F(component, argument), with commas between.
#define HF_EACH2(F, ...) F(x, __VA_ARGS__), F(y, __VA_ARGS__)
#define HF_EACH3(F, ...) F(x, __VA_ARGS__), F(y, __VA_ARGS__), F(z, __VA_ARGS__)
#define HF_EACH4(F, ...) F(x, __VA_ARGS__), F(y, __VA_ARGS__), F(z, __VA_ARGS__), F(w, __VA_ARGS__)
#define HF_COPY(c, from) c(from.c)
#define HF_CONVERT(c, from) c(__hf::convert<T>(from.c))
#define HF_FILL(c, value) c(value)
#define HF_APPLY(c, op) static_cast<T>(a.c op b.c)
#define HF_COMPARE(c, op) static_cast<bool>(a.c op b.c)
#define HF_PREFIX(c, op) static_cast<T>(op a.c)
#define HF_NOT(c, unused) !a.c

// Operators are friends that take vecs: a scalar operand becomes a vec, as the language says.
#define HF_BINARY(each, op)                                                                    \
  friend HF_INLINE constexpr vec operator op(vec a, vec b) { return vec(each(HF_APPLY, op)); } \
  HF_INLINE constexpr vec& operator op##=(vec b) { return *this = *this op b; }
#define HF_COMPARISON(n, each, op)                                    \
  friend HF_INLINE constexpr vec<bool, n> operator op(vec a, vec b) { \
    return vec<bool, n>(each(HF_COMPARE, op));                        \
  }
#define HF_VEC_MEMBERS(n, each)                                                         \
  vec() = default;                                                                      \
  HF_INLINE constexpr vec(const vec& other) : each(HF_COPY, other) {}                   \
  HF_INLINE constexpr vec(T value) : each(HF_FILL, value) {}                            \
  template <class U>                                                                    \
  HF_INLINE explicit constexpr vec(const vec<U, n>& other) : each(HF_CONVERT, other) {} \
  HF_INLINE constexpr T& operator[](int i) { return (&x)[i]; }                          \
  HF_INLINE constexpr const T& operator[](int i) const { return (&x)[i]; }              \
  HF_BINARY(each, +)                                                                    \
  HF_BINARY(each, -)                                                                    \
  HF_BINARY(each, *)                                                                    \
  HF_BINARY(each, /)                                                                    \
  HF_BINARY(each, %)                                                                    \
  HF_BINARY(each, &)                                                                    \
  HF_BINARY(each, |)                                                                    \
  HF_BINARY(each, ^)                                                                    \
  HF_BINARY(each, <<)                                                                   \
  HF_BINARY(each, >>)                                                                   \
  HF_COMPARISON(n, each, ==)                                                            \
  HF_COMPARISON(n, each, !=)                                                            \
  HF_COMPARISON(n, each, <)                                                             \
  HF_COMPARISON(n, each, <=)                                                            \
  HF_COMPARISON(n, each, >)                                                             \
  HF_COMPARISON(n, each, >=)                                                            \
  HF_COMPARISON(n, each, &&)                                                            \
  HF_COMPARISON(n, each, ||)                                                            \
  friend HF_INLINE constexpr vec operator+(vec a) { return a; }                         \
  friend HF_INLINE constexpr vec operator-(vec a) { return vec(each(HF_PREFIX, -)); }   \
  friend HF_INLINE constexpr vec operator~(vec a) { return vec(each(HF_PREFIX, ~)); }   \
  friend HF_INLINE constexpr vec<bool, n> operator!(vec a) {                            \
    return vec<bool, n>(each(HF_NOT, ));                                                \
  }                                                                                     \
  HF_INLINE constexpr vec& operator++() { return *this = *this + vec(T(1)); }           \
  HF_INLINE constexpr vec& operator--() { return *this = *this - vec(T(1)); }           \
  HF_INLINE constexpr vec operator++(int) {                                             \
    vec previous = *this;                                                               \
    ++*this;                                                                            \
    return previous;                                                                    \
  }                                                                                     \
  HF_INLINE constexpr vec operator--(int) {                                             \
    vec previous = *this;                                                               \
    --*this;                                                                            \
    return previous;                                                                    \
  }

// r, g, b, a name the same components as x, y, z, w.
#define HF_COLOUR(c, colour)                            \
  HF_INLINE constexpr T __get_##c() const { return c; } \
  HF_INLINE constexpr void __put_##c(T v) { c = v; }    \
  __declspec(property(get = __get_##c, put = __put_##c)) T colour;

namespace metal {

template <class T>
struct alignas(2 * sizeof(T)) vec<T, 2> {
  T x, y;
  HF_VEC_MEMBERS(2, HF_EACH2)
  HF_INLINE constexpr vec(T a, T b) : x(a), y(b) {}
  HF_INLINE constexpr vec& operator=(const vec& other) {
    x = other.x;
    y = other.y;
    return *this;
  }
  HF_COLOUR(x, r)
  HF_COLOUR(y, g)
  HF_SWIZZLES2
};

template <class T>
struct alignas(4 * sizeof(T)) vec<T, 3> {
  T x, y, z;
  HF_VEC_MEMBERS(3, HF_EACH3)
  HF_INLINE constexpr vec(T a, T b, T c) : x(a), y(b), z(c) {}
  HF_INLINE constexpr vec(vec<T, 2> a, T b) : x(a.x), y(a.y), z(b) {}
  HF_INLINE constexpr vec(T a, vec<T, 2> b) : x(a), y(b.x), z(b.y) {}
  HF_INLINE constexpr vec& operator=(const vec& other) {
    x = other.x;
    y = other.y;
    z = other.z;
    return *this;
  }
  HF_COLOUR(x, r)
  HF_COLOUR(y, g)
  HF_COLOUR(z, b)
  HF_SWIZZLES3
};

template <class T>
struct alignas(4 * sizeof(T)) vec<T, 4> {
  T x, y, z, w;
  HF_VEC_MEMBERS(4, HF_EACH4)
  HF_INLINE constexpr vec(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
  HF_INLINE constexpr vec(vec<T, 2> a, T b, T c) : x(a.x), y(a.y), z(b), w(c) {}
  HF_INLINE constexpr vec(T a, vec<T, 2> b, T c) : x(a), y(b.x), z(b.y), w(c) {}
  HF_INLINE constexpr vec(T a, T b, vec<T, 2> c) : x(a), y(b), z(c.x), w(c.y) {}
  HF_INLINE constexpr vec(vec<T, 2> a, vec<T, 2> b) : x(a.x), y(a.y), z(b.x), w(b.y) {}
  HF_INLINE constexpr vec(vec<T, 3> a, T b) : x(a.x), y(a.y), z(a.z), w(b) {}
  HF_INLINE constexpr vec(T a, vec<T, 3> b) : x(a), y(b.x), z(b.y), w(b.z) {}
  HF_INLINE constexpr vec& operator=(const vec& other) {
    x = other.x;
    y = other.y;
    z = other.z;
    w = other.w;
    return *this;
  }
  HF_COLOUR(x, r)
  HF_COLOUR(y, g)
  HF_COLOUR(z, b)
  HF_COLOUR(w, a)
  HF_SWIZZLES4
};

}  // namespace metal

// The sizes are Metal's; asking for them instantiates each type once, in the precompiled prelude.
#define HF_VECTORS(T)                                                             \
  typedef metal::vec<T, 2> T##2;                                                  \
  typedef metal::vec<T, 3> T##3;                                                  \
  typedef metal::vec<T, 4> T##4;                                                  \
  static_assert(sizeof(T##2) == 2 * sizeof(T) && sizeof(T##3) == 4 * sizeof(T) && \
                sizeof(T##4) == 4 * sizeof(T));                                   \
  namespace metal {                                                               \
  using ::T##2;                                                                   \
  using ::T##3;                                                                   \
  using ::T##4;                                                                   \
  }
HF_VECTORS(bool)
HF_VECTORS(char)
HF_VECTORS(uchar)
HF_VECTORS(short)
HF_VECTORS(ushort)
HF_VECTORS(int)
HF_VECTORS(uint)
HF_VECTORS(long)
HF_VECTORS(ulong)
HF_VECTORS(half)
HF_VECTORS(bfloat)
HF_VECTORS(float)
#undef HF_VECTORS

#undef HF_GET
#undef HF_READ
#undef HF_WRITE
#undef HF_READ2
#undef HF_READ3
#undef HF_READ4
#undef HF_WRITE2
#undef HF_WRITE3
#undef HF_WRITE4
#undef HF_SWIZZLES2
#undef HF_SWIZZLES3
#undef HF_SWIZZLES4
#undef HF_EACH2
#undef HF_EACH3
#undef HF_EACH4
#undef HF_COPY
#undef HF_CONVERT
#undef HF_FILL
#undef HF_APPLY
#undef HF_COMPARE
#undef HF_PREFIX
#undef HF_NOT
#undef HF_BINARY
#undef HF_COMPARISON
#undef HF_VEC_MEMBERS
#undef HF_COLOUR
