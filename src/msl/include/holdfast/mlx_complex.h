// complex64_t: MLX's complex number of kernels.
#pragma once

#include <metal_stdlib>

struct complex64_t;

namespace __hf {
template <class T>
inline constexpr bool makes_complex = __is_arithmetic(T) || is_float<T>;
}

struct complex64_t {
  float real;
  float imag;

  complex64_t() = default;
  HF_INLINE constexpr complex64_t(float r, float i) : real(r), imag(i) {}
  HF_INLINE constexpr complex64_t(const complex64_t& other) : real(other.real), imag(other.imag) {}
  template <class T, class = metal::enable_if_t<__hf::makes_complex<T>>>
  HF_INLINE constexpr complex64_t(T x) : real(static_cast<float>(x)), imag(0.0f) {}
  HF_INLINE constexpr complex64_t& operator=(const complex64_t& other) {
    real = other.real;
    imag = other.imag;
    return *this;
  }
  // The real part, as a cast writes it.
  template <class T, class = metal::enable_if_t<__hf::makes_complex<T>>>
  HF_INLINE explicit constexpr operator T() const {
    return static_cast<T>(real);
  }

  friend HF_INLINE constexpr complex64_t operator-(complex64_t x) { return {-x.real, -x.imag}; }
  friend HF_INLINE constexpr complex64_t operator+(complex64_t a, complex64_t b) {
    return {a.real + b.real, a.imag + b.imag};
  }
  friend HF_INLINE constexpr complex64_t operator-(complex64_t a, complex64_t b) {
    return {a.real - b.real, a.imag - b.imag};
  }
  friend HF_INLINE constexpr complex64_t operator*(complex64_t a, complex64_t b) {
    return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
  }
  friend HF_INLINE constexpr complex64_t operator/(complex64_t a, complex64_t b) {
    float square = b.real * b.real + b.imag * b.imag;
    return {(a.real * b.real + a.imag * b.imag) / square,
            (a.imag * b.real - a.real * b.imag) / square};
  }
  // The remainder of each part, with the sign of the divisor's.
  friend HF_INLINE complex64_t operator%(complex64_t a, complex64_t b) {
    float r = a.real - metal::floor(a.real / b.real) * b.real;
    float i = a.imag - metal::floor(a.imag / b.imag) * b.imag;
    return {r, i};
  }
  // In order of the real parts, then of the imaginary ones.
  friend HF_INLINE constexpr bool operator==(complex64_t a, complex64_t b) {
    return (a.real == b.real) & (a.imag == b.imag);
  }
  friend HF_INLINE constexpr bool operator!=(complex64_t a, complex64_t b) { return !(a == b); }
  friend HF_INLINE constexpr bool operator>(complex64_t a, complex64_t b) {
    return (a.real > b.real) | ((a.real == b.real) & (a.imag > b.imag));
  }
  friend HF_INLINE constexpr bool operator<(complex64_t a, complex64_t b) { return b > a; }
  friend HF_INLINE constexpr bool operator>=(complex64_t a, complex64_t b) {
    return (a.real > b.real) | ((a.real == b.real) & (a.imag >= b.imag));
  }
  friend HF_INLINE constexpr bool operator<=(complex64_t a, complex64_t b) { return b >= a; }
  HF_INLINE constexpr complex64_t& operator+=(complex64_t b) { return *this = *this + b; }
  HF_INLINE constexpr complex64_t& operator-=(complex64_t b) { return *this = *this - b; }
  HF_INLINE constexpr complex64_t& operator*=(complex64_t b) { return *this = *this * b; }
  HF_INLINE constexpr complex64_t& operator/=(complex64_t b) { return *this = *this / b; }
};
static_assert(sizeof(complex64_t) == 8 && alignof(complex64_t) == 4);

HF_INLINE bool isnan(complex64_t x) { return (x.real != x.real) | (x.imag != x.imag); }
