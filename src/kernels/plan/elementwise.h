// What element-wise ops there are: the rows of elementwise.def.
#pragma once

#include <cstdint>

namespace holdfast::kernels {

// One value a row, in table order. Files name rows by their primitives, never by these numbers.
enum class ElementwiseOp : uint8_t {
#define UNARY(function, Primitive, ...) Primitive,
#define BINARY(function, Primitive, ...) Primitive,
#define TERNARY(function, Primitive, ...) Primitive,
#include <holdfast/elementwise.def>
  count
};

// The code of a conversion (AsType) in a fused group; the step's dtypes say from what to what.
inline constexpr int16_t conversion_code = static_cast<int16_t>(ElementwiseOp::count);

int elementwise_operand_count(ElementwiseOp op);
// The Primitive's name in the table: "Add".
const char* elementwise_name(ElementwiseOp op);

}  // namespace holdfast::kernels
