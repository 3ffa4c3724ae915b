// The words of the Metal Shading Language that C++ does not have. Everything else includes this
// file first.
//
// Headers of this folder are read by clang as they are, without the token pass over user sources
// (msl/frontend/token_pass.h): float literals are written with an f, address spaces stand on no
// array parameter and no member function, and Metal's
// [[attributes]] do not occur.
#pragma once

#define __METAL__ 1
#define __METAL_VERSION__ 320
#define __METAL_MACOS__ 1
#define __HAVE_BFLOAT__ 1

// Address spaces: types of their own that convert to the generic space (no word). A variable in
// threadgroup or constant memory is static wherever it is declared: holdfast_static is our
// attribute (msl/frontend/attributes.h).
#define device __attribute__((opencl_global))
#define constant const __attribute__((opencl_global_device)) __attribute__((holdfast_static))
#define threadgroup __attribute__((opencl_local)) __attribute__((holdfast_static))
#define thread

#define kernel __attribute__((holdfast("kernel")))
#define METAL_FUNC inline __attribute__((always_inline))
#define METAL_INTERNAL inline __attribute__((always_inline))

typedef char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef unsigned long uintptr_t;
typedef long intptr_t;

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

typedef _Float16 half;
typedef __bf16 bfloat;

// The functions of the device.
extern "C" {
#define X(name, result, parameters, behaviour) result __hf_##name parameters;
#include <holdfast/intrinsics.def>
#undef X
// True in the fast math mode: what `exp` means there is `fast::exp`. The front-end gives it its
// value, so that one precompiled prelude serves all modes.
bool __hf_is_fast_math();
// True where the lowering has approximate exp2 and log2 of its own, for what needs no more: then
// they are left as LLVM's intrinsics.
bool __hf_has_approximations();
#define HF_HAS_APPROXIMATIONS __hf_has_approximations()
// True where the lowering has the functions of tile.h as instructions: those that touch no memory,
// and those that do.
bool __hf_has_tile_instructions();
bool __hf_has_tile_memory();
// True where messages of kernels are shown.
bool __hf_has_log();
}

// The type of parameter I of a function type: for the wrapper around a kernel
// (msl/frontend/entries.cpp).
template <unsigned I, class F>
struct __hf_parameter_of;
template <unsigned I, class R, class... P>
struct __hf_parameter_of<I, R(P...)> {
  using type = __type_pack_element<I, P...>;
};
template <unsigned I, class R, class... P>
struct __hf_parameter_of<I, R(P...) noexcept> {
  using type = __type_pack_element<I, P...>;
};
template <unsigned I, class F>
using __hf_parameter = typename __hf_parameter_of<I, F>::type;

namespace metal {
template <class T, int n>
struct vec;
}

// Function constants: the front-end specialises the value for those that it was given; the others
// are an error where they are used, or 0 where the front-end specialises __hf_missing_constant (its
// second parameter is there to be specialised for all I).
template <unsigned I>
struct __hf_function_constant_value {
  static constexpr bool defined = false;
};
extern "C" unsigned long __hf_undefined_function_constant(unsigned index);
template <unsigned I, bool>
struct __hf_missing_constant {
  static constexpr unsigned long bits() { return __hf_undefined_function_constant(I); }
};
template <unsigned I>
struct __hf_function_constant {
  template <class T>
  constexpr operator T() const {
    static_assert(sizeof(T) <= 8, "function constants are scalars or vectors");
    return take<T, 0>();
  }
  template <class T, int N>
  constexpr operator metal::vec<T, N>() const {
    if constexpr (N == 2) {
      return metal::vec<T, N>{take<T, 0>(), take<T, 1>()};
    } else if constexpr (N == 3) {
      return metal::vec<T, N>{take<T, 0>(), take<T, 1>(), take<T, 2>()};
    } else {
      return metal::vec<T, N>{take<T, 0>(), take<T, 1>(), take<T, 2>(), take<T, 3>()};
    }
  }

 private:
  // Component `i` of a value whose components are T.
  template <class T, unsigned i>
  static constexpr T take() {
    constexpr unsigned byte = i * sizeof(T);
    unsigned long from = 0;
    if constexpr (__hf_function_constant_value<I>::defined)
      from = __hf_function_constant_value<I>::bits[byte / 8] >> byte % 8 * 8;
    else
      from = __hf_missing_constant<I, true>::bits();
    if constexpr (__is_same(T, bool)) {
      return (from & 255) != 0;
    } else if constexpr (sizeof(T) == 1) {
      return __builtin_bit_cast(T, static_cast<unsigned char>(from));
    } else if constexpr (sizeof(T) == 2) {
      return __builtin_bit_cast(T, static_cast<unsigned short>(from));
    } else if constexpr (sizeof(T) == 4) {
      return __builtin_bit_cast(T, static_cast<unsigned int>(from));
    } else {
      return __builtin_bit_cast(T, from);
    }
  }
};

// One with a default, `__hf_function_constant_with_default<0>() = 3`.
template <unsigned I, class D>
struct __hf_function_constant_or {
  D fallback;
  template <class T>
  constexpr operator T() const {
    if constexpr (__hf_function_constant_value<I>::defined)
      return __hf_function_constant<I>();
    else
      return static_cast<T>(fallback);
  }
  template <class T, int N>
  constexpr operator metal::vec<T, N>() const {
    if constexpr (__hf_function_constant_value<I>::defined)
      return __hf_function_constant<I>();
    else
      return static_cast<metal::vec<T, N>>(fallback);
  }
};
template <unsigned I>
struct __hf_function_constant_with_default {
  template <class D>
  constexpr __hf_function_constant_or<I, D> operator=(D fallback) const {
    return {fallback};
  }
};
