#include "kernels/cpu/generated_source.h"

#include <algorithm>

#include "base/text.h"
#include "kernels/elementwise/step_source.h"
#include "kernels/plan/elementwise.h"

namespace holdfast::kernels::cpu {
namespace {

// The exponential of the block engine (kernels/cpu/simd/vector_math.h), number for number, in place
// of that of kernels/elementwise/math.h.
constexpr const char* exponential_source = R"(
static inline float block_exponential(float x) {
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  float shifted = fma(x, 1.44269504089f, 12582912.0f);
  float n = shifted - 12582912.0f;
  float r = fma(n, -0.693359375f, x);
  r = fma(n, 2.12194440e-4f, r);
  float p = 0.001381388092f;
  p = fma(p, r, 0.008369063458f);
  p = fma(p, r, 0.04166842181f);
  p = fma(p, r, 0.1666651776f);
  p = fma(p, r, 0.4999999325f);
  p = fma(p, r, 1.0f);
  p = fma(p, r, 1.0f);
  return __hf::scale(p, __hf::integer_of_sum(shifted));
}
static inline float block_sigmoid(float x) {
  float e = block_exponential(-abs(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}
#define Exp block_exponential
#define Sigmoid block_sigmoid
)";

bool is_floating(Dtype dtype) { return dtype == float32 || dtype == float64; }
bool is_computed(Dtype dtype) { return is_floating(dtype) || !issubdtype(dtype, inexact); }

bool is_exponential(const FusedStep& step) {
  return step.op == static_cast<int16_t>(ElementwiseOp::Exp) ||
         step.op == static_cast<int16_t>(ElementwiseOp::Sigmoid);
}

// Do the functions of kernels/elementwise/math.h give the bits of the block engine?
bool has_the_bits(const FusedStep& step) {
  if (!is_computed(step.dtype) || !is_computed(step.operand_dtype)) return false;
  // Floats to integers saturate.
  if (step.op == conversion_code)
    return step.dtype == bool_ || !is_floating(step.operand_dtype) || is_floating(step.dtype);
  switch (static_cast<ElementwiseOp>(step.op)) {
    case ElementwiseOp::Exp:
    case ElementwiseOp::Sigmoid:
      return step.operand_dtype == float32;
    case ElementwiseOp::Abs:
    case ElementwiseOp::Negative:
    case ElementwiseOp::Sign:
    case ElementwiseOp::Floor:
    case ElementwiseOp::Ceil:
    case ElementwiseOp::Trunc:
    case ElementwiseOp::Round:
    case ElementwiseOp::Square:
    case ElementwiseOp::Sqrt:
    case ElementwiseOp::Rsqrt:
    case ElementwiseOp::BitwiseInvert:
    case ElementwiseOp::LogicalNot:
    case ElementwiseOp::IsNaN:
    case ElementwiseOp::IsInf:
    case ElementwiseOp::IsFinite:
    case ElementwiseOp::IsPosInf:
    case ElementwiseOp::IsNegInf:
    case ElementwiseOp::Add:
    case ElementwiseOp::Subtract:
    case ElementwiseOp::Multiply:
    case ElementwiseOp::Divide:
    case ElementwiseOp::Maximum:
    case ElementwiseOp::Minimum:
    case ElementwiseOp::BitwiseAnd:
    case ElementwiseOp::LogicalAnd:
    case ElementwiseOp::BitwiseOr:
    case ElementwiseOp::LogicalOr:
    case ElementwiseOp::BitwiseXor:
    case ElementwiseOp::LogicalXor:
    case ElementwiseOp::LeftShift:
    case ElementwiseOp::Equal:
    case ElementwiseOp::NotEqual:
    case ElementwiseOp::Greater:
    case ElementwiseOp::GreaterEqual:
    case ElementwiseOp::Less:
    case ElementwiseOp::LessEqual:
    case ElementwiseOp::Select:
      return true;
    default:
      return false;
  }
}

// `part`: of the elements of a thread.
std::string index_of(InputAccess access, const std::string& part) {
  switch (access) {
    case InputAccess::element:
      return text("[i", part, ']');
    case InputAccess::column:
      return "[position.x]";
    case InputAccess::row:
      return text("[position.y + ", part, " * size.y]");
    case InputAccess::scalar:
      break;
  }
  return "[0]";
}

}  // namespace

std::optional<std::string> generated_source(std::span<const FusedStep> steps,
                                            std::span<const char> is_output,
                                            std::span<const GeneratedInput> inputs, int per_thread,
                                            bool fuses_multiplication) {
  constexpr size_t most_buffers = 30;
  if (!std::all_of(steps.begin(), steps.end(), has_the_bits)) return std::nullopt;
  const bool uses_exponential = std::any_of(steps.begin(), steps.end(), is_exponential);
  if (uses_exponential && !fuses_multiplication) return std::nullopt;
  const bool has_rows = std::any_of(inputs.begin(), inputs.end(), [](const GeneratedInput& input) {
    return input.access == InputAccess::row || input.access == InputAccess::column;
  });
  const LoweredGroup group = lower(steps, inputs.size());
  std::string parameters, loads, computation, stores;
  size_t buffers = 0;
  auto add_parameter = [&](const char* constness, Dtype dtype, const char* name, size_t number) {
    parameters += text(constness, "device ", memory_type(dtype), "* ", name, number, " [[buffer(",
                       buffers++, ")]],\n    ");
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_computed(inputs[i].dtype)) return std::nullopt;
    add_parameter("const ", inputs[i].dtype, "in", i);
  }
  for (size_t k = 0; k < steps.size(); ++k) {
    if (is_output[k]) add_parameter("", steps[k].dtype, "out", k);
  }
  if (buffers > most_buffers) return std::nullopt;
  std::vector<std::string> parts;
  for (int part = 0; part < per_thread; ++part) {
    const std::string number = std::to_string(part);
    parts.push_back('_' + number);
    loads += text("  uint i", number, " = i + ", number,
                  has_rows ? " * size.x * size.y;\n" : " * size;\n");
  }
  // All inputs are read before anything is written: an output may take the place of one.
  for (size_t i = 0; i < inputs.size(); ++i) {
    const char* lane = kernels::lane_type(kernels::lane_of(inputs[i].dtype));
    for (const std::string& part : parts)
      loads += text("  const ", lane, " v", i, part, " = ", lane, "(in", i,
                    index_of(inputs[i].access, part.substr(1)), ");\n");
  }
  for (size_t k = 0; k < group.steps.size(); ++k) {
    for (const std::string& part : parts)
      computation += statements_of({&group.steps[k], 1}, inputs.size() + k, part);
  }
  for (size_t k = 0; k < steps.size(); ++k) {
    for (const std::string& part : parts) {
      if (is_output[k])
        stores += text("  out", k, "[i", part.substr(1), "] = ", memory_type(steps[k].dtype), "(v",
                       group.results[k], part, ");\n");
    }
  }
  return text(math_of(group.steps), uses_exponential ? exponential_source : "",
              "[[kernel]] void compiled(\n    ", parameters,
              has_rows ? "uint2 position [[thread_position_in_grid]],\n"
                         "    uint2 size [[threads_per_grid]]) {\n"
                         "  uint i = position.y * size.x + position.x;\n"
                       : "uint i [[thread_position_in_grid]],\n"
                         "    uint size [[threads_per_grid]]) {\n",
              loads, computation, stores, "}\n");
}

}  // namespace holdfast::kernels::cpu
