#include "kernels/metal/generated_source.h"

#include <algorithm>
#include <stdexcept>

#include "base/text.h"
#include "kernels/metal/entries.h"
#include "kernels/plan/layout.h"

namespace holdfast::kernels::metal {
namespace {

constexpr int block_bytes = 16, most_bytes = 64;

constexpr const char* op_names[] = {
#define UNARY(function, Primitive, ...) #Primitive,
#define BINARY UNARY
#define TERNARY UNARY
#include <holdfast/elementwise.def>
    "Copy",    "Zero",    "One",      "ToBool",   "ToFloat",  "ToInt8",    "ToInt16", "ToInt32",
    "ToInt64", "ToUint8", "ToUint16", "ToUint32", "ToUint64", "ToComplex", "Turn",    "TurnBack"};
static_assert(std::size(op_names) == static_cast<size_t>(FusedOp::TurnBack) + 1);

const char* memory_type(Dtype::Val dtype) {
  switch (element_type_of(dtype)) {
    case ElementType::u8:
      return "uchar";
    case ElementType::i8:
      return "char";
    case ElementType::u16:
      return "ushort";
    case ElementType::i16:
      return "short";
    case ElementType::f16:
      return "half";
    case ElementType::bf16:
      return "bfloat";
    default:
      break;
  }
  constexpr const char* names[] = {"float", "int", "uint", "long", "ulong", "Complex"};
  return names[static_cast<size_t>(lane_of(dtype))];
}

const char* lane_type(Lane lane) {
  constexpr const char* names[] = {"float", "int", "uint", "long", "ulong", "Complex"};
  return names[static_cast<size_t>(lane)];
}

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

std::string_view header(std::string_view name) {
  for (const EmbeddedSource& one : embedded_headers()) {
    if (one.name == name) return one.text;
  }
  throw std::logic_error(text("there is no header ", name));
}

std::string expression(const LoweredStep& step) {
  auto operand = [&](int i) { return text('v', step.operands[i]); };
  std::string value;
  switch (step.op) {
    case FusedOp::Copy:
      value = operand(0);
      break;
    case FusedOp::Zero:
      value = "0";
      break;
    case FusedOp::One:
      value = "1";
      break;
    case FusedOp::Select:
      value = text(operand(0), " != 0 ? ", operand(1), " : ", operand(2));
      break;
    default:
      value = text(op_names[static_cast<size_t>(step.op)], '(', operand(0),
                   step.arity > 1 ? ", " + operand(1) : std::string(), ')');
  }
  return text(finish_name(step.finish), '(', lane_type(step.result), '(', value, "))");
}

}  // namespace

int elements_per_thread(const GeneratedGroup& group) {
  size_t least = 8, most = 1;
  auto add = [&](Dtype::Val dtype) {
    least = std::min(least, item_size(dtype));
    most = std::max(most, item_size(dtype));
  };
  for (const GeneratedGroup::Input& input : group.inputs) {
    if (input.access != FusedAccess::scalar) add(input.dtype);
  }
  for (uint16_t value : group.outputs) add(group.steps[value - group.inputs.size()].dtype);
  int count = block_bytes / static_cast<int>(least);
  while (count * static_cast<int>(most) > most_bytes) count /= 2;
  return std::max(count, 2);
}

std::string key_of(const GeneratedGroup& group) {
  std::string key;
  auto add = [&](auto... numbers) { (key.push_back(static_cast<char>(numbers)), ...); };
  add(group.is_large, group.inputs.size(), group.steps.size());
  for (const GeneratedGroup::Input& input : group.inputs)
    add(input.dtype, input.access, input.dimensions);
  for (const LoweredStep& step : group.steps) {
    add(step.op, step.lane, step.dtype, step.arity);
    for (int i = 0; i < step.arity; ++i) add(step.operands[i], step.operands[i] >> 8);
  }
  for (uint16_t value : group.outputs) add(value, value >> 8);
  return key;
}

std::string source_of(const GeneratedGroup& group) {
  bool has_complex = false;
  std::string parameters, loads, steps, stores;
  const char* index = group.is_large ? "ulong" : "uint";
  for (size_t i = 0; i < group.inputs.size(); ++i) {
    const GeneratedGroup::Input& input = group.inputs[i];
    const char* type = memory_type(input.dtype);
    const Lane lane = lane_of(input.dtype);
    has_complex |= lane == Lane::c64;
    parameters += text("    const device ", type, "* in", i, ",\n");
    loads += text("  const Elements<N, ", type, "> a", i, " = ");
    if (input.access == FusedAccess::dense) {
      loads += text("load_dense<N>(in", i, ", access[", i, "], first, size);\n");
    } else if (input.access == FusedAccess::scalar) {
      loads += text("load_scalar<N>(in", i, ");\n");
    } else {
      loads += text("load_strided<N, ", int{input.dimensions}, ", ", index, ">(in", i, ", access[",
                    i, "], extents, first, size);\n");
    }
    steps +=
        text("    const ", lane_type(lane), " v", i, " = ", lane_type(lane), "(a", i, ".v[i]);\n");
  }
  for (size_t k = 0; k < group.steps.size(); ++k) {
    const LoweredStep& step = group.steps[k];
    has_complex |= step.result == Lane::c64;
    steps += text("    const ", lane_type(step.result), " v", group.inputs.size() + k, " = ",
                  expression(step), ";\n");
  }
  for (size_t i = 0; i < group.outputs.size(); ++i) {
    const uint16_t value = group.outputs[i];
    const char* type = memory_type(group.steps[value - group.inputs.size()].dtype);
    parameters += text("    device ", type, "* out", i, ",\n");
    loads += text("  Elements<N, ", type, "> r", i, ";\n");
    steps += text("    r", i, ".v[i] = ", type, "(v", value, ");\n");
    stores += text("  store_dense<N>(out", i, ", access[", group.inputs.size() + i,
                   "].aligned, first, size, r", i, ");\n");
  }
  return text(header("support/indexing.h"), header("support/elementwise.h"),
              has_complex ? header("support/complex.h") : std::string_view(),
              header("support/generated.h"),
              "[[kernel]] void compiled(constant ulong& size, constant GeneratedAccess* access,\n"
              "    constant Extent* extents,\n",
              parameters,
              "    uint2 position [[thread_position_in_grid]], uint2 grid [[threads_per_grid]]) {\n"
              "  constexpr int N = ",
              elements_per_thread(group),
              ";\n  const ulong first = thread_number(position, grid) * N;\n"
              "  if (first >= size) return;\n",
              loads, "  for (int i = 0; i < N; ++i) {\n", steps, "  }\n", stores, "}\n");
}

}  // namespace holdfast::kernels::metal
