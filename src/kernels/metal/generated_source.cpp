#include "kernels/metal/generated_kernels.h"

#include <algorithm>

#include "base/text.h"
#include "kernels/elementwise/step_source.h"
#include "kernels/plan/layout.h"

namespace holdfast::kernels::metal {
namespace {

constexpr int block_bytes = 16, most_bytes = 64;

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
  std::string parameters, loads, steps, stores;
  const char* index = group.is_large ? "ulong" : "uint";
  for (size_t i = 0; i < group.inputs.size(); ++i) {
    const GeneratedGroup::Input& input = group.inputs[i];
    const char* type = memory_type(input.dtype);
    const char* lane = lane_type(lane_of(input.dtype));
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
    steps += text("    const ", lane, " v", i, " = ", lane, "(a", i, ".v[i]);\n");
  }
  steps += statements_of(group.steps, group.inputs.size());
  for (size_t i = 0; i < group.outputs.size(); ++i) {
    const uint16_t value = group.outputs[i];
    const char* type = memory_type(group.steps[value - group.inputs.size()].dtype);
    parameters += text("    device ", type, "* out", i, ",\n");
    loads += text("  Elements<N, ", type, "> r", i, ";\n");
    steps += text("    r", i, ".v[i] = ", type, "(v", value, ");\n");
    stores += text("  store_dense<N>(out", i, ", access[", group.inputs.size() + i,
                   "].aligned, first, size, r", i, ");\n");
  }
  return text(embedded_header("metal/support/indexing.h"), math_of(group.steps),
              embedded_header("metal/support/generated.h"),
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
