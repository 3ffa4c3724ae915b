// The kernels of all ops for one element type, made from elementwise.def and math.h.
#pragma once

#include "kernels/cpu/simd/chain_stages.h"
#include "kernels/cpu/simd/kernel_tables.h"
#include "kernels/cpu/simd/math.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

// in_types of elementwise.def, as a question about the element type of a lane.
namespace accepts {
template <typename T>
inline constexpr bool any = true;
template <typename T>
inline constexpr bool real = !is_complex<T>;
template <typename T>
inline constexpr bool number = !is_bool<T>;
template <typename T>
inline constexpr bool float_ = is_float<T>;
template <typename T>
inline constexpr bool inexact = is_float<T> || is_complex<T>;
template <typename T>
inline constexpr bool integral = is_integer<T> || is_bool<T>;
template <typename T>
inline constexpr bool integer = is_integer<T>;
template <typename T>
inline constexpr bool boolean = is_bool<T>;
}  // namespace accepts

template <size_t size>
using Bits = std::conditional_t<
    size == 1, uint8_t,
    std::conditional_t<size == 2, uint16_t, std::conditional_t<size == 4, uint32_t, uint64_t>>>;

// The type whose code T uses for Op: fewer instances where signs do not matter.
template <typename Op, typename T>
struct CodeType {
  using Type = T;
};
template <typename Op, typename T>
  requires(is_integer<T> && requires { requires Op::is_bitwise; })
struct CodeType<Op, T> {
  using Type = std::make_unsigned_t<T>;
};

template <typename Op, typename T, bool accepted>
constexpr BlockKernel unary_kernel() {
  if constexpr (!accepted)
    return nullptr;
  else if constexpr (std::is_same_v<T, float> && ChainsUnary<Op>)
    return &run_as_chain<UnaryBody<Op>>;
  else
    return &UnaryLoop<Op, typename CodeType<Op, T>::Type>::run;
}

template <typename Op, typename T, bool accepted>
constexpr BlockKernel binary_kernel() {
  if constexpr (!accepted)
    return nullptr;
  else if constexpr (requires { typename Op::Exchanged; })
    return &BinaryLoop<typename Op::Exchanged, T>::run_exchanged;
  else if constexpr (std::is_same_v<T, float> && ChainsBinary<Op>)
    return &run_as_chain<BinaryBody<Op>>;
  else
    return &BinaryLoop<Op, typename CodeType<Op, T>::Type>::run;
}

template <typename Op, typename T, bool accepted>
constexpr BlockKernel ternary_kernel() {
  if constexpr (accepted)
    return &TernaryLoop<Op, Bits<sizeof(T)>>::run;
  else
    return nullptr;
}

template <typename T>
const BlockKernel* lane_kernels() {
// `float` in the table is a keyword here.
#define HOLDFAST_ACCEPTS_float accepts::float_
#define HOLDFAST_ACCEPTS_any accepts::any
#define HOLDFAST_ACCEPTS_real accepts::real
#define HOLDFAST_ACCEPTS_number accepts::number
#define HOLDFAST_ACCEPTS_inexact accepts::inexact
#define HOLDFAST_ACCEPTS_integral accepts::integral
#define HOLDFAST_ACCEPTS_integer accepts::integer
#define HOLDFAST_ACCEPTS_boolean accepts::boolean
  static constexpr BlockKernel kernels[] = {
#define UNARY(function, Primitive, rule, in_types, description) \
  unary_kernel<Primitive, T, HOLDFAST_ACCEPTS_##in_types<T>>(),
#define BINARY(function, Primitive, rule, in_types, description) \
  binary_kernel<Primitive, T, HOLDFAST_ACCEPTS_##in_types<T>>(),
#define TERNARY(function, Primitive, rule, in_types, description) \
  ternary_kernel<Primitive, T, HOLDFAST_ACCEPTS_##in_types<T>>(),
#include <holdfast/elementwise.def>
  };
  static_assert(sizeof(kernels) / sizeof(kernels[0]) == static_cast<size_t>(ElementwiseOp::count));
  return kernels;
}

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
