#include "kernels/elementwise/step_source.h"

#include <algorithm>

#include "base/text.h"

namespace holdfast::kernels {
namespace {

constexpr const char* op_names[] = {
#define NAME(Primitive) #Primitive,
#define UNARY(function, Primitive, ...) NAME(Primitive)
#define BINARY(function, Primitive, ...) NAME(Primitive)
#define TERNARY(function, Primitive, ...) NAME(Primitive)
#include <holdfast/elementwise.def>
    FUSED_CONVERSIONS(NAME)
#undef NAME
};

const char* finish_name(Finish finish) {
  constexpr const char* names[] = {"",
                                   "finish_float16",
                                   "finish_bfloat16",
                                   "finish_int8",
                                   "finish_int16",
                                   "finish_uint8",
                                   "finish_uint16"};
  return names[static_cast<size_t>(finish)];
}

std::string expression(const LoweredStep& step, std::string_view suffix) {
  auto operand = [&](int i) { return text('v', step.operands[i], suffix); };
  switch (step.op) {
    case FusedOp::Copy:
      return operand(0);
    case FusedOp::Zero:
      return "0";
    case FusedOp::One:
      return "1";
    case FusedOp::Select:
      return text(operand(0), " != 0 ? ", operand(1), " : ", operand(2));
    default:
      return text(op_names[static_cast<size_t>(step.op)], '(', operand(0),
                  step.arity > 1 ? ", " + operand(1) : std::string(), ')');
  }
}

}  // namespace

const char* lane_type(Lane lane) {
  constexpr const char* names[] = {"float", "int", "uint", "long", "ulong", "Complex", "double"};
  return names[static_cast<size_t>(lane)];
}

const char* memory_type(Dtype::Val dtype) {
  constexpr const char* names[] = {"uchar", "char", "ushort", "short", "half", "bfloat"};
  const ElementType type = element_type_of(dtype);
  return type < ElementType::b32 ? names[static_cast<size_t>(type)] : lane_type(lane_of(dtype));
}

std::string statements_of(std::span<const LoweredStep> steps, size_t inputs,
                          std::string_view suffix) {
  std::string statements;
  for (size_t k = 0; k < steps.size(); ++k) {
    const char* type = lane_type(steps[k].result);
    statements +=
        text("    const ", type, " v", inputs + k, suffix, " = ", finish_name(steps[k].finish), '(',
             type, '(', expression(steps[k], suffix), "));\n");
  }
  return statements;
}

std::string math_of(std::span<const LoweredStep> steps) {
  const bool has_complex = std::any_of(steps.begin(), steps.end(), [](const LoweredStep& step) {
    return step.lane == Lane::c64 || step.result == Lane::c64;
  });
  return text(embedded_header("elementwise/math.h"),
              has_complex ? embedded_header("elementwise/complex.h") : std::string_view());
}

}  // namespace holdfast::kernels
