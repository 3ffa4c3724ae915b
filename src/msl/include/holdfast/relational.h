// isnan and its kind, any, all.
#pragma once

#include <holdfast/map.h>

namespace metal {

#define HF_TEST(name, ...)                            \
  template <class T, class = __hf::scalar_t<T>>       \
  HF_INLINE bool name(T x) {                          \
    [[maybe_unused]] float f = static_cast<float>(x); \
    return __VA_ARGS__;                               \
  }                                                   \
  template <class T, int n>                           \
  HF_INLINE vec<bool, n> name(vec<T, n> a) {          \
    HF_MAP1(bool, name, a)                            \
  }
HF_TEST(isnan, x != x)
HF_TEST(isinf, __builtin_fabsf(f) == __builtin_inff())
HF_TEST(isfinite, __builtin_fabsf(f) < __builtin_inff())
HF_TEST(signbit, (__builtin_bit_cast(uint, f) >> 31) != 0)
#undef HF_TEST

namespace __hf_relational {
template <class T>
inline constexpr float least_normal = __is_same(T, half) ? 0x1p-14f : 0x1p-126f;
}
template <class T>
HF_INLINE bool isnormal(T x) {
  float a = __builtin_fabsf(static_cast<float>(x));
  return (a >= __hf_relational::least_normal<T>)&(a < __builtin_inff());
}
template <class T, int n>
HF_INLINE vec<bool, n> isnormal(vec<T, n> a){HF_MAP1(bool, isnormal, a)}
#define HF_COMPARISON(name, ...)                                      \
  template <class A, class B, class = __hf::common_t<A, B>>           \
  HF_INLINE bool name(A x, B y) {                                     \
    using T = __hf::common_t<A, B>;                                   \
    T a = static_cast<T>(x), b = static_cast<T>(y);                   \
    return __VA_ARGS__;                                               \
  }                                                                   \
  template <class T, int n>                                           \
  HF_INLINE vec<bool, n> name(vec<T, n> a, __hf::same<vec<T, n>> b) { \
    HF_MAP2(bool, name, a, b)                                         \
  }
HF_COMPARISON(isequal, a == b) HF_COMPARISON(isnotequal, a != b) HF_COMPARISON(isgreater, a > b)
    HF_COMPARISON(isgreaterequal, a >= b) HF_COMPARISON(isless, a < b)
        HF_COMPARISON(islessequal, a <= b) HF_COMPARISON(islessgreater, (a < b) | (a > b))
            HF_COMPARISON(isordered, (a == a) & (b == b))
                HF_COMPARISON(isunordered, (a != a) | (b != b))
#undef HF_COMPARISON

                    HF_INLINE bool any(bool a) {
  return a;
}
HF_INLINE bool all(bool a) { return a; }
HF_INLINE bool any(vec<bool, 2> a) { return a.x | a.y; }
HF_INLINE bool any(vec<bool, 3> a) { return a.x | a.y | a.z; }
HF_INLINE bool any(vec<bool, 4> a) { return a.x | a.y | a.z | a.w; }
HF_INLINE bool all(vec<bool, 2> a) { return a.x & a.y; }
HF_INLINE bool all(vec<bool, 3> a) { return a.x & a.y & a.z; }
HF_INLINE bool all(vec<bool, 4> a) { return a.x & a.y & a.z & a.w; }

}  // namespace metal
