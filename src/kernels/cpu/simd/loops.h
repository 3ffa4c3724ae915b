// The loops that run one op over a dense block.
//
// Everything in simd/ is compiled once per instruction set into the namespace HOLDFAST_SIMD_TARGET.
// Rule for these files: call no inline function or template that lives outside that namespace (no
// std:: algorithms, no arithmetic of types.h). The linker keeps one copy of such a function, and it
// could be the one compiled for a processor that this machine does not have.
//
// An op (math.h, half.h) is a struct with one of
//   apply(T...)   one element; the loop is vectorised by the compiler
//   vector(V...)  one vector register of floats or doubles; the struct sets `is_vector`
//   chunks(out, a, n)  its own loop over whole chunks
// All run in a function that only takes whole chunks; what is left over at the end is copied to a
// full chunk and goes through that same function. So an element's result cannot depend on its
// position.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cpu/complex_math.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/simd/vectorise.h"

#ifndef HOLDFAST_SIMD_TARGET
#error "compile the files in simd/ with HOLDFAST_SIMD_TARGET defined as baseline, avx2 or avx512"
#endif

#define HOLDFAST_INLINE static inline __attribute__((always_inline))

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

// One element of the b8 lane, 0 or 1: a type of its own, so that ops can tell it from uint8_t.
struct Bool {
  uint8_t value;
};

template <typename T>
inline constexpr bool is_bool = std::is_same_v<T, Bool>;
template <typename T>
inline constexpr bool is_complex = std::is_same_v<T, Complex>;
template <typename T>
inline constexpr bool is_integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <typename T>
inline constexpr bool is_float = std::is_floating_point_v<T>;

template <typename T>
concept AnyInteger = is_integer<T>;
template <typename T>
concept AnyFloat = is_float<T>;
template <typename T>
concept AnyReal = is_integer<T> || is_float<T>;

// What a result of type T is stored as.
template <typename T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

// Vector registers.
#if defined(__AVX512F__)
inline constexpr int register_size = 64;
#elif defined(__AVX2__)
inline constexpr int register_size = 32;
#else
inline constexpr int register_size = 16;
#endif
typedef float FloatVector __attribute__((vector_size(register_size)));
typedef double DoubleVector __attribute__((vector_size(register_size)));
typedef int32_t Int32Vector __attribute__((vector_size(register_size)));
typedef int64_t Int64Vector __attribute__((vector_size(register_size)));

HOLDFAST_INLINE FloatVector load(const float* from) {
  FloatVector result;
  __builtin_memcpy(&result, from, sizeof(result));
  return result;
}
HOLDFAST_INLINE DoubleVector load(const double* from) {
  DoubleVector result;
  __builtin_memcpy(&result, from, sizeof(result));
  return result;
}
template <typename T, typename V>
HOLDFAST_INLINE void store(T* to, V value) {
  __builtin_memcpy(to, &value, sizeof(value));
}

template <typename Op>
concept IsVectorOp = requires { requires Op::is_vector; };
template <typename Op, typename T>
concept HasVector = is_float<T> && IsVectorOp<Op>;
// Ops with a fast formula that holds for most operands only, for the type `EasyType`: `is_easy(a,
// b)` says for which, and there `apply_easy(a, b)` gives exactly the bits that `apply(a, b)` does.
template <typename Op, typename T>
concept HasEasyPath = std::is_same_v<T, typename Op::EasyType>;
// Vector ops call a function for each element of other types: padding would only add calls.
template <typename Op, typename T>
inline constexpr bool is_scalar_loop = IsVectorOp<Op> && !is_float<T>;

// The type an op gives for operands of type T.
template <typename Op, typename... T>
struct ResultOf {
  using Type = Stored<decltype(Op::apply(T{}...))>;
};
template <typename Op, typename T, typename... Rest>
  requires HasVector<Op, T>
struct ResultOf<Op, T, Rest...> {
  using Type = T;
};

inline constexpr int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Elements of a chunk: fills a register of the narrowest type involved.
template <typename Op, typename T, typename R>
inline constexpr int64_t chunk_of =
    HasVector<Op, T> ? register_size / static_cast<int64_t>(sizeof(T))
                     : 64 / smaller(sizeof(T), sizeof(R));

// Copies the `count` elements that are left over and repeats the first one up to `chunk`.
template <typename T>
HOLDFAST_INLINE void pad(T* chunk_begin, const T* from, int64_t count, int64_t chunk) {
  __builtin_memcpy(chunk_begin, from, static_cast<size_t>(count) * sizeof(T));
  for (int64_t i = count; i < chunk; ++i) chunk_begin[i] = from[0];
}

template <typename Op, typename T>
struct UnaryLoop {
  using R = typename ResultOf<Op, T>::Type;
  static constexpr int64_t chunk = chunk_of<Op, T, R>;

  __attribute__((noinline)) static void body(R* out, const T* a, int64_t n) {
    if constexpr (is_scalar_loop<Op, T>) {
      for (int64_t i = 0; i < n; ++i) out[i] = Op::apply(a[i]);
    } else if constexpr (HasVector<Op, T>) {
      for (int64_t i = 0; i < n; i += chunk) store(out + i, Op::vector(load(a + i)));
    } else if constexpr (requires { Op::chunks(out, a, n); }) {
      Op::chunks(out, a, n);
    } else {
      n &= -chunk;
      HOLDFAST_VECTORISE
      for (int64_t i = 0; i < n; ++i) out[i] = Op::apply(a[i]);
    }
  }

  static void run(void* out_bytes, const void* const* in, int64_t n) {
    R* out = static_cast<R*>(out_bytes);
    const T* a = static_cast<const T*>(in[0]);
    if constexpr (is_scalar_loop<Op, T>) {
      body(out, a, n);
    } else {
      int64_t whole = n & -chunk, rest = n - whole;
      if (whole > 0) body(out, a, whole);
      if (rest > 0) {
        R out_chunk[chunk];
        T a_chunk[chunk];
        pad(a_chunk, a + whole, rest, chunk);
        body(out_chunk, a_chunk, chunk);
        __builtin_memcpy(out + whole, out_chunk, static_cast<size_t>(rest) * sizeof(R));
      }
    }
  }
};

template <typename Op, typename T>
struct BinaryLoop {
  using R = typename ResultOf<Op, T, T>::Type;
  static constexpr int64_t chunk = chunk_of<Op, T, R>;

  __attribute__((noinline)) static void body(R* out, const T* a, const T* b, int64_t n) {
    if constexpr (is_scalar_loop<Op, T>) {
      for (int64_t i = 0; i < n; ++i) out[i] = Op::apply(a[i], b[i]);
    } else if constexpr (HasVector<Op, T>) {
      for (int64_t i = 0; i < n; i += chunk) store(out + i, Op::vector(load(a + i), load(b + i)));
    } else if constexpr (HasEasyPath<Op, T>) {
      for (int64_t begin = 0; begin < n; begin += chunk) {
        int hard = 0;
        for (int64_t i = begin; i < begin + chunk; ++i) hard |= !Op::is_easy(a[i], b[i]);
        if (hard == 0) {
          HOLDFAST_VECTORISE
          for (int64_t i = begin; i < begin + chunk; ++i) out[i] = Op::apply_easy(a[i], b[i]);
        } else {
          for (int64_t i = begin; i < begin + chunk; ++i) out[i] = Op::apply(a[i], b[i]);
        }
      }
    } else {
      n &= -chunk;
      HOLDFAST_VECTORISE
      for (int64_t i = 0; i < n; ++i) out[i] = Op::apply(a[i], b[i]);
    }
  }

  static void run_on(R* out, const T* a, const T* b, int64_t n) {
    if constexpr (is_scalar_loop<Op, T>) {
      body(out, a, b, n);
    } else {
      int64_t whole = n & -chunk, rest = n - whole;
      if (whole > 0) body(out, a, b, whole);
      if (rest > 0) {
        R out_chunk[chunk];
        T a_chunk[chunk], b_chunk[chunk];
        pad(a_chunk, a + whole, rest, chunk);
        pad(b_chunk, b + whole, rest, chunk);
        body(out_chunk, a_chunk, b_chunk, chunk);
        __builtin_memcpy(out + whole, out_chunk, static_cast<size_t>(rest) * sizeof(R));
      }
    }
  }

  static void run(void* out, const void* const* in, int64_t n) {
    run_on(static_cast<R*>(out), static_cast<const T*>(in[0]), static_cast<const T*>(in[1]), n);
  }
  // The operands exchanged: greater is less with its operands exchanged.
  static void run_exchanged(void* out, const void* const* in, int64_t n) {
    run_on(static_cast<R*>(out), static_cast<const T*>(in[1]), static_cast<const T*>(in[0]), n);
  }
};

// Operands: condition, x, y. Moves bits only, so one instance a width serves all types.
template <typename Op, typename T>
struct TernaryLoop {
  static constexpr int64_t chunk = 64;

  __attribute__((noinline)) static void body(T* out, const uint8_t* condition, const T* x,
                                             const T* y, int64_t n) {
    n &= -chunk;
    HOLDFAST_VECTORISE
    for (int64_t i = 0; i < n; ++i) out[i] = Op::apply(condition[i], x[i], y[i]);
  }

  static void run(void* out_bytes, const void* const* in, int64_t n) {
    T* out = static_cast<T*>(out_bytes);
    const uint8_t* condition = static_cast<const uint8_t*>(in[0]);
    const T* x = static_cast<const T*>(in[1]);
    const T* y = static_cast<const T*>(in[2]);
    int64_t whole = n & -chunk, rest = n - whole;
    if (whole > 0) body(out, condition, x, y, whole);
    if (rest > 0) {
      T out_chunk[chunk], x_chunk[chunk], y_chunk[chunk];
      uint8_t condition_chunk[chunk];
      pad(condition_chunk, condition + whole, rest, chunk);
      pad(x_chunk, x + whole, rest, chunk);
      pad(y_chunk, y + whole, rest, chunk);
      body(out_chunk, condition_chunk, x_chunk, y_chunk, chunk);
      __builtin_memcpy(out + whole, out_chunk, static_cast<size_t>(rest) * sizeof(T));
    }
  }
};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
