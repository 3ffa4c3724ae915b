// metal::packed_vec<T, n>: a vec with the alignment and the size of its components.
#pragma once

#include <holdfast/vec.h>

namespace metal {

template <class T, int n>
struct packed_vec;

// A packed_vec converts to a vec wherever one is wanted; operators work on these.
#define HF_PACKED_MEMBERS(n)                                                                \
  packed_vec() = default;                                                                   \
  HF_INLINE constexpr packed_vec(T value) : packed_vec(vec<T, n>(value)) {}                 \
  template <class U>                                                                        \
  HF_INLINE explicit constexpr packed_vec(const vec<U, n>& v) : packed_vec(vec<T, n>(v)) {} \
  HF_INLINE constexpr T& operator[](int i) { return (&x)[i]; }                              \
  HF_INLINE constexpr const T& operator[](int i) const { return (&x)[i]; }                  \
  template <class U>                                                                        \
  HF_INLINE explicit constexpr operator vec<U, n>() const {                                 \
    return vec<U, n>(static_cast<vec<T, n>>(*this));                                        \
  }
#define HF_PACKED_PART(name, m)                        \
  HF_INLINE constexpr vec<T, m> __get_##name() const { \
    return static_cast<vec<T, size>>(*this).name;      \
  }                                                    \
  HF_INLINE constexpr void __put_##name(vec<T, m> v) { \
    vec<T, size> whole = *this;                        \
    whole.name = v;                                    \
    *this = packed_vec(whole);                         \
  }                                                    \
  __declspec(property(get = __get_##name, put = __put_##name)) vec<T, m> name;

template <class T>
struct packed_vec<T, 2> {
  T x, y;
  static constexpr int size = 2;
  HF_PACKED_MEMBERS(2)
  HF_INLINE constexpr packed_vec(T a, T b) : x(a), y(b) {}
  HF_INLINE constexpr packed_vec(const vec<T, 2>& v) : x(v.x), y(v.y) {}
  HF_INLINE constexpr operator vec<T, 2>() const { return vec<T, 2>(x, y); }
  HF_PACKED_PART(xy, 2)
  HF_PACKED_PART(yx, 2)
};

template <class T>
struct packed_vec<T, 3> {
  T x, y, z;
  static constexpr int size = 3;
  HF_PACKED_MEMBERS(3)
  HF_INLINE constexpr packed_vec(T a, T b, T c) : x(a), y(b), z(c) {}
  HF_INLINE constexpr packed_vec(const vec<T, 3>& v) : x(v.x), y(v.y), z(v.z) {}
  HF_INLINE constexpr operator vec<T, 3>() const { return vec<T, 3>(x, y, z); }
  HF_PACKED_PART(xy, 2)
  HF_PACKED_PART(yz, 2)
  HF_PACKED_PART(xyz, 3)
  HF_PACKED_PART(zyx, 3)
};

template <class T>
struct packed_vec<T, 4> {
  T x, y, z, w;
  static constexpr int size = 4;
  HF_PACKED_MEMBERS(4)
  HF_INLINE constexpr packed_vec(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
  HF_INLINE constexpr packed_vec(const vec<T, 4>& v) : x(v.x), y(v.y), z(v.z), w(v.w) {}
  HF_INLINE constexpr operator vec<T, 4>() const { return vec<T, 4>(x, y, z, w); }
  HF_PACKED_PART(xy, 2)
  HF_PACKED_PART(zw, 2)
  HF_PACKED_PART(xyz, 3)
  HF_PACKED_PART(xyzw, 4)
};
#undef HF_PACKED_MEMBERS
#undef HF_PACKED_PART

#define HF_PACKED_OPERATOR(op)                                                        \
  template <class T, int n>                                                           \
  HF_INLINE constexpr auto operator op(packed_vec<T, n> a, packed_vec<T, n> b) {      \
    return static_cast<vec<T, n>>(a) op static_cast<vec<T, n>>(b);                    \
  }                                                                                   \
  template <class T, int n>                                                           \
  HF_INLINE constexpr auto operator op(packed_vec<T, n> a, __hf::same<vec<T, n>> b) { \
    return static_cast<vec<T, n>>(a) op b;                                            \
  }                                                                                   \
  template <class T, int n>                                                           \
  HF_INLINE constexpr auto operator op(__hf::same<vec<T, n>> a, packed_vec<T, n> b) { \
    return a op static_cast<vec<T, n>>(b);                                            \
  }
#define HF_PACKED_ASSIGN(op)                                                      \
  template <class T, int n>                                                       \
  HF_INLINE constexpr packed_vec<T, n>& operator op##=(packed_vec<T, n>& a,       \
                                                       __hf::same<vec<T, n>> b) { \
    return a = packed_vec<T, n>(static_cast<vec<T, n>>(a) op b);                  \
  }
#define HF_PACKED_BOTH(op) HF_PACKED_OPERATOR(op) HF_PACKED_ASSIGN(op)
HF_PACKED_BOTH(+)
HF_PACKED_BOTH(-)
HF_PACKED_BOTH(*)
HF_PACKED_BOTH(/)
HF_PACKED_BOTH(%)
HF_PACKED_BOTH(&)
HF_PACKED_BOTH(|)
HF_PACKED_BOTH(^)
HF_PACKED_BOTH(<<)
HF_PACKED_BOTH(>>)
HF_PACKED_OPERATOR(==)
HF_PACKED_OPERATOR(!=)
HF_PACKED_OPERATOR(<)
HF_PACKED_OPERATOR(<=)
HF_PACKED_OPERATOR(>)
HF_PACKED_OPERATOR(>=)
template <class T, int n>
HF_INLINE constexpr vec<T, n> operator-(packed_vec<T, n> a) {
  return -static_cast<vec<T, n>>(a);
}
#undef HF_PACKED_OPERATOR
#undef HF_PACKED_ASSIGN
#undef HF_PACKED_BOTH

}  // namespace metal

#define HF_PACKED(T)                             \
  typedef metal::packed_vec<T, 2> packed_##T##2; \
  typedef metal::packed_vec<T, 3> packed_##T##3; \
  typedef metal::packed_vec<T, 4> packed_##T##4; \
  static_assert(sizeof(packed_##T##3) == 3 * sizeof(T));
HF_PACKED(bool)
HF_PACKED(char)
HF_PACKED(uchar)
HF_PACKED(short)
HF_PACKED(ushort)
HF_PACKED(int)
HF_PACKED(uint)
HF_PACKED(long)
HF_PACKED(ulong)
HF_PACKED(half)
HF_PACKED(bfloat)
HF_PACKED(float)
#undef HF_PACKED
