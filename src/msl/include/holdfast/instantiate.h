// What most kernels use of the templates above, instantiated once: the precompiled prelude keeps
// it, so that compiling a kernel does not do it again. Nothing here is called.
#pragma once

namespace __hf {

#define HF_USE_VEC(T, n)                                           \
  inline void use(metal::vec<T, n> a, const metal::vec<T, n>& b) { \
    metal::vec<T, n> c(b), d(T(1));                                \
    c = a + b;                                                     \
    d = c * T(2) - b;                                              \
    d += a;                                                        \
    d *= c;                                                        \
    d[0] = c.x + b[1];                                             \
    device metal::vec<T, n>* from = nullptr;                       \
    c = *from;                                                     \
    *from = d;                                                     \
  }
#define HF_USE(T)                   \
  HF_USE_VEC(T, 2)                  \
  HF_USE_VEC(T, 3)                  \
  HF_USE_VEC(T, 4)                  \
  inline void use_parts(T a) {      \
    metal::vec<T, 2> b(a, a);       \
    metal::vec<T, 3> c(a, a, a);    \
    metal::vec<T, 4> d(a, a, a, a); \
    use(b, b);                      \
    use(c, c);                      \
    use(d, d);                      \
  }
HF_USE(float)
HF_USE(half)
HF_USE(bfloat)
HF_USE(int)
HF_USE(uint)
HF_USE(short)
HF_USE(ushort)
HF_USE(char)
HF_USE(uchar)
#undef HF_USE
#undef HF_USE_VEC

template <class T>
inline void use_functions(T a) {
  a = metal::exp(a) + metal::log(a) + metal::sqrt(a) + metal::rsqrt(a) + metal::tanh(a);
  a = metal::max(a, metal::min(a, T(1))) + metal::abs(a) + metal::clamp(a, a, a);
  a = metal::floor(a) + metal::rint(a) + metal::fma(a, a, a) + metal::pow(a, a) + metal::sin(a) +
      metal::cos(a);
  a = metal::simd_sum(a) + metal::simd_max(a) + metal::simd_min(a) +
      metal::simd_shuffle(a, ushort(1)) + metal::simd_shuffle_xor(a, ushort(1)) +
      metal::simd_shuffle_down(a, ushort(1));
  (void)(a + metal::fast::exp(a) + metal::precise::exp(a));
}
inline void use_all() {
  use_functions(1.0f);
  use_functions(half(1.0f));
  metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
  (void)(metal::simd_sum(1) + metal::simd_max(1) + metal::min(1, 2) + metal::max(1u, 2u) +
         metal::abs(1));
  (void)metal::as_type<float>(1u);
  (void)metal::as_type<uint>(1.0f);
}

}  // namespace __hf

// MSL has no double; the headers before this line do.
typedef double __hf_double
    __attribute__((unavailable("the Metal Shading Language has no double, use float")));
#define double __hf_double
