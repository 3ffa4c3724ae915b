// Functions per component: each macro returns what F gives for the components of one, two or three
// vecs of n. R is the element type of the result.
#pragma once

#include <holdfast/vec.h>

#define HF_MAP1(R, F, a)                             \
  if constexpr (n == 2)                              \
    return metal::vec<R, n>(F(a.x), F(a.y));         \
  else if constexpr (n == 3)                         \
    return metal::vec<R, n>(F(a.x), F(a.y), F(a.z)); \
  else                                               \
    return metal::vec<R, n>(F(a.x), F(a.y), F(a.z), F(a.w));
#define HF_MAP2(R, F, a, b)                                         \
  if constexpr (n == 2)                                             \
    return metal::vec<R, n>(F(a.x, b.x), F(a.y, b.y));              \
  else if constexpr (n == 3)                                        \
    return metal::vec<R, n>(F(a.x, b.x), F(a.y, b.y), F(a.z, b.z)); \
  else                                                              \
    return metal::vec<R, n>(F(a.x, b.x), F(a.y, b.y), F(a.z, b.z), F(a.w, b.w));
#define HF_MAP3(R, F, a, b, c)                                                     \
  if constexpr (n == 2)                                                            \
    return metal::vec<R, n>(F(a.x, b.x, c.x), F(a.y, b.y, c.y));                   \
  else if constexpr (n == 3)                                                       \
    return metal::vec<R, n>(F(a.x, b.x, c.x), F(a.y, b.y, c.y), F(a.z, b.z, c.z)); \
  else                                                                             \
    return metal::vec<R, n>(F(a.x, b.x, c.x), F(a.y, b.y, c.y), F(a.z, b.z, c.z), F(a.w, b.w, c.w));

// The overloads of a function of one, two or three arguments for vecs, given the one for scalars.
// A scalar beside a vec becomes a vec.
#define HF_VECTOR1(name)                                \
  template <class T, int n>                             \
  HF_INLINE metal::vec<T, n> name(metal::vec<T, n> a) { \
    HF_MAP1(T, name, a)                                 \
  }
#define HF_VECTOR2(name)                                                                \
  template <class T, int n>                                                             \
  HF_INLINE metal::vec<T, n> name(metal::vec<T, n> a, __hf::same<metal::vec<T, n>> b) { \
    HF_MAP2(T, name, a, b)                                                              \
  }                                                                                     \
  template <class S, class T, int n, class = __hf::scalar_t<S>>                         \
  HF_INLINE metal::vec<T, n> name(S s, metal::vec<T, n> b) {                            \
    metal::vec<T, n> a(static_cast<T>(s));                                              \
    HF_MAP2(T, name, a, b)                                                              \
  }
#define HF_VECTOR3(name)                                                              \
  template <class T, int n>                                                           \
  HF_INLINE metal::vec<T, n> name(metal::vec<T, n> a, __hf::same<metal::vec<T, n>> b, \
                                  __hf::same<metal::vec<T, n>> c) {                   \
    HF_MAP3(T, name, a, b, c)                                                         \
  }
