#include "kernels/cpu/elementwise.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/instruction_set.h"
#include "kernels/cpu/simd/kernel_tables.h"

namespace holdfast::kernels::cpu {

namespace {

// How the result type follows from the operand type: the `rule` column of elementwise.def.
enum class Rule : uint8_t { same, inexact, predicate, logical, part, select };

constexpr Rule rules[] = {
#define UNARY(function, Primitive, rule, ...) Rule::rule,
#define BINARY UNARY
#define TERNARY UNARY
#include <holdfast/elementwise.def>
};
static_assert(sizeof(rules) / sizeof(rules[0]) == static_cast<size_t>(ElementwiseOp::count));

bool is_half(Dtype::Val dtype) {
  return dtype == Dtype::Val::float16 || dtype == Dtype::Val::bfloat16;
}

template <typename T>
void fill(void* out, const void* scalar, int64_t n) {
  T value;
  std::memcpy(&value, scalar, sizeof(T));
  std::fill_n(static_cast<T*>(out), n, value);
}

}  // namespace

// Calls `function` of the build for the instruction set in use.
#ifdef HOLDFAST_SIMD_ONLY_BASELINE
#define HOLDFAST_CALL_TARGET(function, ...) return baseline::function(__VA_ARGS__)
#else
#define HOLDFAST_CALL_TARGET(function, ...) \
  switch (instruction_set()) {              \
    case InstructionSet::avx512:            \
      return avx512::function(__VA_ARGS__); \
    case InstructionSet::avx2:              \
      return avx2::function(__VA_ARGS__);   \
    case InstructionSet::baseline:          \
      break;                                \
  }                                         \
  return baseline::function(__VA_ARGS__)
#endif

static const BlockKernel* kernels_of(Lane lane) {
  switch (lane) {
    case Lane::b8:
    case Lane::u8:
    case Lane::i8:
    case Lane::u16:
    case Lane::i16: {
      HOLDFAST_CALL_TARGET(narrow_integer_kernels, lane);
    }
    case Lane::f32: {
      HOLDFAST_CALL_TARGET(float_kernels);
    }
    case Lane::f64: {
      HOLDFAST_CALL_TARGET(double_kernels);
    }
    case Lane::c64: {
      HOLDFAST_CALL_TARGET(complex_kernels);
    }
    default: {
      HOLDFAST_CALL_TARGET(wide_integer_kernels, lane);
    }
  }
}

Lane lane_of(Dtype::Val dtype) {
  switch (dtype) {
    case Dtype::Val::bool_:
      return Lane::b8;
    case Dtype::Val::uint8:
      return Lane::u8;
    case Dtype::Val::uint16:
      return Lane::u16;
    case Dtype::Val::uint32:
      return Lane::u32;
    case Dtype::Val::uint64:
      return Lane::u64;
    case Dtype::Val::int8:
      return Lane::i8;
    case Dtype::Val::int16:
      return Lane::i16;
    case Dtype::Val::int32:
      return Lane::i32;
    case Dtype::Val::int64:
      return Lane::i64;
    case Dtype::Val::float16:
    case Dtype::Val::bfloat16:
    case Dtype::Val::float32:
      return Lane::f32;
    case Dtype::Val::float64:
      return Lane::f64;
    case Dtype::Val::complex64:
      break;
  }
  return Lane::c64;
}

size_t lane_size(Lane lane) {
  constexpr uint8_t sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8};
  static_assert(sizeof(sizes) == static_cast<size_t>(Lane::count));
  return sizes[static_cast<size_t>(lane)];
}

BlockKernel elementwise_kernel(ElementwiseOp op, Lane lane) {
  return kernels_of(lane)[static_cast<size_t>(op)];
}

const simd::ChainKernels& simd::chain_kernels() { HOLDFAST_CALL_TARGET(chain_kernels); }

Lane elementwise_result_lane(ElementwiseOp op, Lane lane) {
  switch (rules[static_cast<size_t>(op)]) {
    case Rule::predicate:
    case Rule::logical:
      return Lane::b8;
    case Rule::part:
      return lane == Lane::c64 ? Lane::f32 : lane;
    default:
      return lane;
  }
}

ConvertKernel lane_convert_kernel(Lane from, Lane to) {
  HOLDFAST_CALL_TARGET(lane_converter, from, to);
}

ConvertKernel convert_kernel(Dtype::Val from, Dtype::Val to) {
  if (!is_half(from) && !is_half(to)) return lane_convert_kernel(lane_of(from), lane_of(to));
  HOLDFAST_CALL_TARGET(half_converter, from, to);
}

ConvertKernel load_kernel(Dtype::Val from) {
  if (!is_half(from)) return nullptr;
  HOLDFAST_CALL_TARGET(half_loader, from);
}

ConvertKernel store_kernel(Dtype::Val to) {
  if (!is_half(to)) return nullptr;
  HOLDFAST_CALL_TARGET(half_storer, to);
}

ConvertKernel round_kernel(Dtype::Val half) {
  if (!is_half(half)) return nullptr;
  HOLDFAST_CALL_TARGET(half_rounder, half);
}

void fill_block(void* out, const void* scalar, size_t itemsize, int64_t n) {
  switch (itemsize) {
    case 1:
      return fill<uint8_t>(out, scalar, n);
    case 2:
      return fill<uint16_t>(out, scalar, n);
    case 4:
      return fill<uint32_t>(out, scalar, n);
    default:
      return fill<uint64_t>(out, scalar, n);
  }
}

}  // namespace holdfast::kernels::cpu
