// The steps of compile, each by itself, over arrays (compile_impl.h).
#include <algorithm>
#include <stdexcept>
#include <unordered_set>

#include <holdfast/compile_impl.h>
#include <holdfast/transforms_impl.h>

#include "ops/support.h"
#include "transforms/differentiate.h"
#include "transforms/program.h"
#include "transforms/tape.h"

namespace holdfast::detail {

std::tuple<std::vector<array>, std::vector<array>, std::shared_ptr<void>> compile_trace(
    const ArrayFnWithExtra& fun, const std::vector<array>& inputs, bool shapeless) {
  InTracing tracing(shapeless);
  std::vector<array> tracers;
  for (const array& input : inputs) tracers.push_back(placeholder(input.shape(), input.dtype()));
  auto [outputs, extra] = fun(tracers);
  return {std::move(tracers), std::move(outputs), std::move(extra)};
}

std::pair<std::vector<array>, ParentsMap> compile_dfs(const std::vector<array>& inputs,
                                                      std::vector<array>& outputs,
                                                      const std::vector<array>& original_inputs) {
  std::unordered_set<std::uintptr_t> originals;
  for (const array& original : original_inputs) originals.insert(original.id());
  std::vector<array> tape = Tape(inputs, outputs, Tape::Follow::all).calls();
  ParentsMap parents;
  for (const array& call : tape) {
    for (size_t i = 0; i < call.inputs().size(); ++i) {
      const array& input = call.inputs()[i];
      if (originals.contains(input.id())) {
        throw std::invalid_argument(text("[compile] ", call.primitive().name(),
                                         " uses an array that was given as an argument: use the ",
                                         "argument instead"));
      }
      parents[input.id()].emplace_back(call, static_cast<int>(i));
    }
  }
  return {std::move(tape), std::move(parents)};
}

void compile_simplify(std::vector<array>& tape, ParentsMap& parents_map,
                      std::vector<array>& outputs, int passes) {
  if (passes <= 0) return;
  InTracing tracing;  // what is built anew is part of the trace
  // The tracers that the tape starts from.
  std::vector<array> tracers;
  std::unordered_set<std::uintptr_t> known;
  auto add = [&](const array& a) {
    if (a.is_tracer() && !a.has_primitive() && known.insert(a.id()).second) tracers.push_back(a);
  };
  for (const array& call : tape) {
    for (const array& input : call.inputs()) add(input);
  }
  for (const array& output : outputs) add(output);
  Program program(tracers, outputs, {.simplify = true, .fuse = false});
  outputs = program.build(tracers);
  std::tie(tape, parents_map) = compile_dfs(tracers, outputs, {});
}

std::vector<array> compile_replace(const std::vector<array>&,
                                   const std::vector<array>& trace_inputs,
                                   const std::vector<array>& trace_outputs,
                                   const std::vector<array>& inputs, bool shapeless) {
  if (inputs.size() != trace_inputs.size()) {
    throw std::invalid_argument(
        text("[compile_replace] expected ", trace_inputs.size(), " inputs, got ", inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const array &given = inputs[i], &traced = trace_inputs[i];
    bool fits = given.dtype() == traced.dtype() &&
                (shapeless ? given.ndim() == traced.ndim() : given.shape() == traced.shape());
    if (!fits) {
      throw std::invalid_argument(text("[compile_replace] input ", i, " should be ", traced.dtype(),
                                       " of shape ", traced.shape(), ", got ", given.dtype(),
                                       " of shape ", given.shape()));
    }
  }
  ProgramOptions options{.simplify = false, .fuse = false, .shapeless = shapeless};
  return Program(trace_inputs, trace_outputs, options).build(inputs);
}

void compile_validate_shapeless(const std::vector<array>& tape) {
  for (const array& call : tape) {
    std::vector<Shape> shapes;
    for (const array& output : call.outputs()) shapes.push_back(output.shape());
    check_shape_follows(call.primitive(), call.inputs(), shapes);
  }
}

}  // namespace holdfast::detail
