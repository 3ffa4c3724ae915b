// min, max, clamp and their kind for every scalar and vec; select, mix, step.
//
// Two scalars of different types meet in their common type. For floats min and max are fmin and
// fmax: they ignore NaN. Which of two zeros they give depends on the machine.
#pragma once

#include <holdfast/map.h>

namespace __hf {

template <class T>
HF_INLINE T smaller(T a, T b) {
  if constexpr (is_float<T>)
    return static_cast<T>(__builtin_fminf(static_cast<float>(a), static_cast<float>(b)));
  else
    return b < a ? b : a;
}

template <class T>
HF_INLINE T larger(T a, T b) {
  if constexpr (is_float<T>)
    return static_cast<T>(__builtin_fmaxf(static_cast<float>(a), static_cast<float>(b)));
  else
    return a < b ? b : a;
}

}  // namespace __hf

namespace metal {

#define HF_TWO(name, T_of, function)                                \
  template <class A, class B>                                       \
  HF_INLINE __hf::T_of<A, B> name(A a, B b) {                       \
    using T = __hf::T_of<A, B>;                                     \
    return __hf::function<T>(static_cast<T>(a), static_cast<T>(b)); \
  }                                                                 \
  HF_VECTOR2(name)
HF_TWO(min, common_t, smaller)
HF_TWO(max, common_t, larger)
HF_TWO(fmin, common_t, smaller)
HF_TWO(fmax, common_t, larger)
#undef HF_TWO

#define HF_THREE(name, ...)                                                \
  template <class A, class B, class C>                                     \
  HF_INLINE __hf::common3_t<A, B, C> name(A x, B y, C z) {                 \
    using T = __hf::common3_t<A, B, C>;                                    \
    T a = static_cast<T>(x), b = static_cast<T>(y), c = static_cast<T>(z); \
    return __VA_ARGS__;                                                    \
  }                                                                        \
  HF_VECTOR3(name)
HF_THREE(clamp, __hf::smaller<T>(__hf::larger<T>(a, b), c))
HF_THREE(min3, __hf::smaller<T>(a, __hf::smaller<T>(b, c)))
HF_THREE(max3, __hf::larger<T>(a, __hf::larger<T>(b, c)))
HF_THREE(fmin3, __hf::smaller<T>(a, __hf::smaller<T>(b, c)))
HF_THREE(fmax3, __hf::larger<T>(a, __hf::larger<T>(b, c)))
HF_THREE(median3,
         __hf::larger<T>(__hf::smaller<T>(a, b), __hf::smaller<T>(__hf::larger<T>(a, b), c)))
HF_THREE(fmedian3,
         __hf::larger<T>(__hf::smaller<T>(a, b), __hf::smaller<T>(__hf::larger<T>(a, b), c)))
HF_THREE(mix, static_cast<T>(a + (b - a) * c))
#undef HF_THREE

template <class T>
HF_INLINE __hf::real_t<T> saturate(T x) {
  using R = __hf::real_t<T>;
  return __hf::smaller<R>(__hf::larger<R>(static_cast<R>(x), R(0)), R(1));
}
HF_VECTOR1(saturate)

template <class T>
HF_INLINE __hf::real_t<T> sign(T x) {
  using R = __hf::real_t<T>;
  R result = x > T(0) ? R(1) : static_cast<R>(x);
  result = x < T(0) ? R(-1) : result;
  return x != x ? R(0) : result;
}
HF_VECTOR1(sign)

template <class A, class B>
HF_INLINE __hf::common_t<A, B> step(A edge, B x) {
  using T = __hf::common_t<A, B>;
  return static_cast<T>(x) < static_cast<T>(edge) ? T(0) : T(1);
}
template <class E, class T, int n>
HF_INLINE vec<T, n> step(E edge, vec<T, n> x) {
  vec<T, n> e(edge);
  HF_MAP2(T, step, e, x)
}

template <class A, class B, class C>
HF_INLINE __hf::common3_t<A, B, C> smoothstep(A edge0, B edge1, C x) {
  using T = __hf::common3_t<A, B, C>;
  T low = static_cast<T>(edge0), high = static_cast<T>(edge1);
  T t = saturate(static_cast<T>((static_cast<T>(x) - low) / (high - low)));
  return static_cast<T>(t * t * (T(3) - T(2) * t));
}
template <class T, int n>
HF_INLINE vec<T, n> smoothstep(__hf::same<vec<T, n>> edge0, __hf::same<vec<T, n>> edge1,
                               vec<T, n> x) {
  HF_MAP3(T, smoothstep, edge0, edge1, x)
}

// c ? b : a.
template <class A, class B, class C>
HF_INLINE __hf::common_t<A, B> select(A a, B b, C c) {
  using T = __hf::common_t<A, B>;
  T no = static_cast<T>(a), yes = static_cast<T>(b);
  return static_cast<bool>(c) ? yes : no;
}
template <class T, int n>
HF_INLINE vec<T, n> select(vec<T, n> a, __hf::same<vec<T, n>> b, __hf::same<vec<bool, n>> c) {
  HF_MAP3(T, select, a, b, c)
}
// As OpenCL has it: the top bit of each integer component decides.
template <class T, int n, class I, class = enable_if_t<__is_integral(I) && !__is_same(I, bool)>>
HF_INLINE vec<T, n> select(vec<T, n> a, __hf::same<vec<T, n>> b, vec<I, n> c) {
  vec<bool, n> choice = c < vec<I, n>(I(0));
  if constexpr (I(-1) > I(0)) choice = c >= vec<I, n>(I(I(-1) / 2 + 1));
  return select(a, b, choice);
}

}  // namespace metal
