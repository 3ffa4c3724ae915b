// dot, length, cross and their kind. Sums run over the components in order; half and bfloat compute
// in their own type, as their operators do.
#pragma once

#include <holdfast/math.h>

namespace metal {

template <class T, int n>
HF_INLINE T dot(vec<T, n> a, __hf::same<vec<T, n>> b) {
  T sum = static_cast<T>(a.x * b.x) + static_cast<T>(a.y * b.y);
  if constexpr (n > 2) sum = static_cast<T>(sum + static_cast<T>(a.z * b.z));
  if constexpr (n > 3) sum = static_cast<T>(sum + static_cast<T>(a.w * b.w));
  return sum;
}

template <class T>
HF_INLINE vec<T, 3> cross(vec<T, 3> a, __hf::same<vec<T, 3>> b) {
  return vec<T, 3>(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}

template <class T, int n>
HF_INLINE T length_squared(vec<T, n> a) {
  return dot(a, a);
}
template <class T, int n>
HF_INLINE T length(vec<T, n> a) {
  return sqrt(dot(a, a));
}
template <class T, int n>
HF_INLINE T distance_squared(vec<T, n> a, __hf::same<vec<T, n>> b) {
  return length_squared(a - b);
}
template <class T, int n>
HF_INLINE T distance(vec<T, n> a, __hf::same<vec<T, n>> b) {
  return length(a - b);
}
template <class T, int n>
HF_INLINE vec<T, n> normalize(vec<T, n> a) {
  return a * rsqrt(dot(a, a));
}
template <class T, int n>
HF_INLINE vec<T, n> faceforward(vec<T, n> normal, __hf::same<vec<T, n>> incident,
                                __hf::same<vec<T, n>> reference) {
  return dot(reference, incident) < T(0) ? normal : -normal;
}
template <class T, int n>
HF_INLINE vec<T, n> reflect(vec<T, n> incident, __hf::same<vec<T, n>> normal) {
  return incident - T(2) * dot(normal, incident) * normal;
}
template <class T, int n>
HF_INLINE vec<T, n> refract(vec<T, n> incident, __hf::same<vec<T, n>> normal, __hf::same<T> ratio) {
  T cosine = dot(normal, incident);
  T k = T(1) - ratio * ratio * (T(1) - cosine * cosine);
  vec<T, n> result = ratio * incident - (ratio * cosine + sqrt(max(k, T(0)))) * normal;
  return k < T(0) ? vec<T, n>(T(0)) : result;
}

namespace precise {
using metal::distance;
using metal::length;
using metal::normalize;
}  // namespace precise
namespace fast {
using metal::distance;
using metal::length;
using metal::normalize;
}  // namespace fast

}  // namespace metal
