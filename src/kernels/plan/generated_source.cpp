#include "kernels/plan/generated_source.h"

#include <algorithm>

#include "kernels/plan/elementwise.h"

namespace holdfast::kernels {
namespace {

// The exponential of the block engine (kernels/cpu/simd/vector_math.h), number for number.
constexpr const char* exponential_source = R"(
static inline float exponential(float x) {
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
static inline float sigmoid(float x) {
  float e = exponential(-abs(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}
)";

// How a dtype is written; null for those that kernels do not compute in.
const char* type_name(Dtype dtype) {
  switch (dtype.val()) {
    case Dtype::Val::bool_:
      return "bool";
    case Dtype::Val::uint8:
      return "uchar";
    case Dtype::Val::uint16:
      return "ushort";
    case Dtype::Val::uint32:
      return "uint";
    case Dtype::Val::uint64:
      return "ulong";
    case Dtype::Val::int8:
      return "char";
    case Dtype::Val::int16:
      return "short";
    case Dtype::Val::int32:
      return "int";
    case Dtype::Val::int64:
      return "long";
    case Dtype::Val::float32:
      return "float";
    case Dtype::Val::float64:
      return "double";
    default:
      return nullptr;
  }
}

bool is_floating(Dtype dtype) { return dtype == float32 || dtype == float64; }
bool is_signed(Dtype dtype) {
  return dtype == int8 || dtype == int16 || dtype == int32 || dtype == int64;
}

// Puts operands into a pattern: $a, $b and $c, $T for their type, $U for the unsigned type that
// integers wrap in, $W for the bits of the type.
std::string filled(const char* pattern, Dtype dtype, std::span<const std::string> operands) {
  std::string result;
  for (const char* at = pattern; *at; ++at) {
    if (*at != '$') {
      result += *at;
      continue;
    }
    ++at;
    if (*at == 'T')
      result += type_name(dtype);
    else if (*at == 'U')
      result += dtype.size() == 8 ? "ulong" : "uint";
    else if (*at == 'W')
      result += std::to_string(8 * dtype.size());
    else
      result += operands[static_cast<size_t>(*at - 'a')];
  }
  return result;
}

struct Patterns {
  const char* boolean;
  const char* integer;
  const char* floating;
};

// One a row of elementwise.def, as the math of the block engine (kernels/cpu/simd/math.h) has it.
Patterns patterns_of(ElementwiseOp op, Dtype dtype) {
  switch (op) {
    case ElementwiseOp::Abs:
      return {"$a", is_signed(dtype) ? "$T($a < 0 ? $U(0) - $U($a) : $U($a))" : "$a",
              "__builtin_elementwise_abs($a)"};
    case ElementwiseOp::Negative:
      return {nullptr, "$T($U(0) - $U($a))", "-$a"};
    case ElementwiseOp::Sign:
      return {"$a", "$T(($a > 0) - ($a < 0))",
              "($a > 0 ? $T(1) : $a < 0 ? $T(-1) : $a == 0 ? $T(0) : $a)"};
    case ElementwiseOp::Floor:
      return {"$a", "$a", "__builtin_elementwise_floor($a)"};
    case ElementwiseOp::Ceil:
      return {"$a", "$a", "__builtin_elementwise_ceil($a)"};
    case ElementwiseOp::Trunc:
      return {"$a", "$a", "__builtin_elementwise_trunc($a)"};
    case ElementwiseOp::Round:
      return {"$a", "$a", "__builtin_elementwise_rint($a)"};
    case ElementwiseOp::Square:
      return {"$a", "$T($U($a) * $U($a))", "$a * $a"};
    case ElementwiseOp::Sqrt:
      return {nullptr, nullptr, "__builtin_elementwise_sqrt($a)"};
    case ElementwiseOp::Rsqrt:
      return {nullptr, nullptr, "$T(1) / __builtin_elementwise_sqrt($a)"};
    case ElementwiseOp::Exp:
      return {nullptr, nullptr, dtype == float32 ? "exponential($a)" : nullptr};
    case ElementwiseOp::Sigmoid:
      return {nullptr, nullptr, dtype == float32 ? "sigmoid($a)" : nullptr};
    case ElementwiseOp::BitwiseInvert:
      return {"!$a", "$T(~$a)", nullptr};
    case ElementwiseOp::LogicalNot:
      return {"!$a", nullptr, nullptr};
    case ElementwiseOp::IsNaN:
      return {"false", "false", "$a != $a"};
    case ElementwiseOp::IsInf:
      return {"false", "false", "__builtin_elementwise_abs($a) == $T(INFINITY)"};
    case ElementwiseOp::IsFinite:
      return {"true", "true", "__builtin_elementwise_abs($a) < $T(INFINITY)"};
    case ElementwiseOp::IsPosInf:
      return {"false", "false", "$a == $T(INFINITY)"};
    case ElementwiseOp::IsNegInf:
      return {"false", "false", "$a == -$T(INFINITY)"};
    case ElementwiseOp::Add:
      return {"$a | $b", "$T($U($a) + $U($b))", "$a + $b"};
    case ElementwiseOp::Subtract:
      return {"$a != $b", "$T($U($a) - $U($b))", "$a - $b"};
    case ElementwiseOp::Multiply:
      return {"$a & $b", "$T($U($a) * $U($b))", "$a * $b"};
    case ElementwiseOp::Divide:
      return {nullptr, nullptr, "$a / $b"};
    case ElementwiseOp::Maximum:
      return {"$a | $b", "$a > $b ? $a : $b", "$a != $a ? $a : $a > $b ? $a : $b"};
    case ElementwiseOp::Minimum:
      return {"$a & $b", "$a < $b ? $a : $b", "$a != $a ? $a : $a < $b ? $a : $b"};
    case ElementwiseOp::BitwiseAnd:
    case ElementwiseOp::LogicalAnd:
      return {"$a & $b", "$T($a & $b)", nullptr};
    case ElementwiseOp::BitwiseOr:
    case ElementwiseOp::LogicalOr:
      return {"$a | $b", "$T($a | $b)", nullptr};
    case ElementwiseOp::BitwiseXor:
    case ElementwiseOp::LogicalXor:
      return {"$a != $b", "$T($a ^ $b)", nullptr};
    case ElementwiseOp::LeftShift:
      return {nullptr, "$U($b) < $W ? $T($U($a) << ($U($b) & ($W - 1))) : $T(0)", nullptr};
    case ElementwiseOp::Equal:
      return {"$a == $b", "$a == $b", "$a == $b"};
    case ElementwiseOp::NotEqual:
      return {"$a != $b", "$a != $b", "$a != $b"};
    case ElementwiseOp::Greater:
      return {"$a & !$b", "$a > $b", "$a > $b"};
    case ElementwiseOp::GreaterEqual:
      return {"$a | !$b", "$a >= $b", "$a >= $b"};
    case ElementwiseOp::Less:
      return {"!$a & $b", "$a < $b", "$a < $b"};
    case ElementwiseOp::LessEqual:
      return {"!$a | $b", "$a <= $b", "$a <= $b"};
    case ElementwiseOp::Select:
      return {"$a ? $b : $c", "$a ? $b : $c", "$a ? $b : $c"};
    default:
      return {};
  }
}

const char* conversion(Dtype from, Dtype to) {
  if (to == bool_) return "$a != 0";
  // Floats to integers saturate.
  return is_floating(from) && !is_floating(to) ? nullptr : "$T($a)";
}

// The right side of the assignment that a step is; empty where there is none.
std::string expression(const FusedStep& step, std::span<const std::string> operands) {
  if (!type_name(step.dtype) || !type_name(step.operand_dtype)) return {};
  if (step.op == conversion_code) {
    const char* pattern = conversion(step.operand_dtype, step.dtype);
    return pattern ? filled(pattern, step.dtype, operands) : std::string();
  }
  Dtype dtype = step.operand_dtype;
  Patterns patterns = patterns_of(static_cast<ElementwiseOp>(step.op), dtype);
  const char* pattern = dtype == bool_       ? patterns.boolean
                        : is_floating(dtype) ? patterns.floating
                                             : patterns.integer;
  return pattern ? filled(pattern, dtype, operands) : std::string();
}

// `part`: of the elements of a thread.
std::string index_of(InputAccess access, const std::string& part) {
  switch (access) {
    case InputAccess::element:
      return "[i" + part + "]";
    case InputAccess::column:
      return "[position.x]";
    case InputAccess::row:
      return "[position.y + " + part + " * size.y]";
    case InputAccess::scalar:
      break;
  }
  return "[0]";
}

std::string numbered(const char* name, size_t number) { return name + std::to_string(number); }

bool has_rows(std::span<const GeneratedInput> inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const GeneratedInput& input) {
    return input.access == InputAccess::row || input.access == InputAccess::column;
  });
}

bool needs_exponential(const FusedStep& step) {
  return step.op == static_cast<int16_t>(ElementwiseOp::Exp) ||
         step.op == static_cast<int16_t>(ElementwiseOp::Sigmoid);
}

}  // namespace

std::optional<std::string> generated_source(std::span<const FusedStep> steps,
                                            std::span<const char> is_output,
                                            std::span<const GeneratedInput> inputs, int per_thread,
                                            bool fuses_multiplication) {
  std::string parameters, body, stores;
  size_t buffers = 0;
  auto add_parameter = [&](const char* constness, Dtype dtype, const std::string& name) {
    parameters += std::string(constness) + "device " + type_name(dtype) + "* " + name +
                  " [[buffer(" + std::to_string(buffers++) + ")]],\n    ";
  };
  auto for_each_part = [&](auto&& add) {
    for (int part = 0; part < per_thread; ++part) add(std::to_string(part));
  };
  for_each_part([&](const std::string& part) {
    const char* threads = has_rows(inputs) ? " * size.x * size.y" : " * size";
    body += "  uint i" + part + " = i + " + part + threads + ";\n";
  });
  // All inputs are read before anything is written: an output may take the place of one.
  for (size_t i = 0; i < inputs.size(); ++i) {
    const char* type = type_name(inputs[i].dtype);
    if (!type) return std::nullopt;
    add_parameter("const ", inputs[i].dtype, numbered("in", i));
    for_each_part([&](const std::string& part) {
      body += std::string("  ") + type + " " + numbered("a", i) + "_" + part + " = " +
              numbered("in", i) + index_of(inputs[i].access, part) + ";\n";
    });
  }
  for (size_t k = 0; k < steps.size(); ++k) {
    const FusedStep& step = steps[k];
    std::string names[3];
    for (int i = 0; i < step.arity; ++i) {
      uint16_t value = step.values[i];
      names[i] = value >= FusedStep::result ? numbered("v", size_t{value} - FusedStep::result)
                                            : numbered("a", value);
    }
    bool is_possible = true;
    for_each_part([&](const std::string& part) {
      std::string operands[] = {names[0] + "_" + part, names[1] + "_" + part,
                                names[2] + "_" + part};
      std::string right = expression(step, operands);
      is_possible &= !right.empty();
      if (!is_possible) return;
      body += std::string("  ") + type_name(step.dtype) + " " + numbered("v", k) + "_" + part +
              " = " + right + ";\n";
    });
    if (!is_possible) return std::nullopt;
    if (!is_output[k]) continue;
    add_parameter("", step.dtype, numbered("out", k));
    for_each_part([&](const std::string& part) {
      stores +=
          "  " + numbered("out", k) + "[i" + part + "] = " + numbered("v", k) + "_" + part + ";\n";
    });
  }
  constexpr size_t most_buffers = 30;
  if (buffers > most_buffers) return std::nullopt;
  bool uses_exponential = std::any_of(steps.begin(), steps.end(), needs_exponential);
  if (uses_exponential && !fuses_multiplication) return std::nullopt;
  // Kernels of users have no double.
  std::string text = "#include <holdfast/custom_kernel.h>\n#undef double\n";
  if (uses_exponential) text += exponential_source;
  text += "[[kernel]] void compiled(\n    " + parameters;
  if (has_rows(inputs)) {
    text +=
        "uint2 position [[thread_position_in_grid]],\n    uint2 size [[threads_per_grid]]) {\n"
        "  uint i = position.y * size.x + position.x;\n";
  } else {
    text += "uint i [[thread_position_in_grid]],\n    uint size [[threads_per_grid]]) {\n";
  }
  return text + body + stores + "}\n";
}

}  // namespace holdfast::kernels
