#include "transforms/program.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "graph/op.h"
#include "ops/views.h"
#include "transforms/fuse.h"
#include "transforms/tape.h"

namespace holdfast::detail {

namespace {

// Outside of a trace these only hand their input on.
bool hands_on(const Primitive& primitive) {
  return dynamic_cast<const Identity*>(&primitive) != nullptr ||
         dynamic_cast<const Copy*>(&primitive) != nullptr ||
         dynamic_cast<const StopGradient*>(&primitive) != nullptr;
}

// Numbers that are written in a function more than once are one constant.
bool is_same_scalar(const array& a, const array& b) {
  return a.ndim() == 0 && b.ndim() == 0 && a.dtype() == b.dtype() &&
         a.status() == array::available && b.status() == array::available &&
         std::memcmp(a.data<char>(), b.data<char>(), a.itemsize()) == 0;
}

}  // namespace

Program::Program(const std::vector<array>& inputs, const std::vector<array>& outputs,
                 ProgramOptions options)
    : options_(options), input_count_(inputs.size()) {
  trace(inputs, outputs);
  if (options_.shapeless) check_shapeless();
  if (options_.fuse) calls_ = fused(std::move(calls_), outputs_, values_, !options_.shapeless);
  number_in_order();
}

void Program::trace(const std::vector<array>& inputs, const std::vector<array>& outputs) {
  Tape tape(inputs, outputs, Tape::Follow::all);
  std::unordered_map<std::uintptr_t, int> numbers;  // of values that are known
  auto add_value = [&](const array& a, bool is_constant) {
    numbers.emplace(a.id(), static_cast<int>(values_.size()));
    values_.push_back({a.shape(), a.dtype(), is_constant});
  };
  for (const array& input : inputs) add_value(input, false);
  // Constants first, so that their numbers do not depend on the calls.
  auto add_constant = [&](const array& a) {
    if (tape.depends(a) || numbers.contains(a.id())) return;
    if (options_.simplify) {
      auto same = std::find_if(constants_.begin(), constants_.end(),
                               [&](const array& c) { return is_same_scalar(a, c); });
      if (same != constants_.end()) {
        numbers.emplace(a.id(), numbers.at(same->id()));
        return;
      }
    }
    constants_.push_back(a);
    add_value(a, true);
  };
  for (const array& node : tape.calls()) {
    for (const array& input : node.inputs()) add_constant(input);
  }
  for (const array& output : outputs) add_constant(output);

  std::vector<array> alive;  // so that no other node gets the address of a sibling made anew
  // Calls by the number of their first input: those that compute the same have it in common.
  std::unordered_map<int, std::vector<size_t>> by_input;
  for (const array& node : tape.calls()) {
    std::vector<array> results = node.outputs();
    alive.insert(alive.end(), results.begin(), results.end());
    if (options_.simplify && hands_on(node.primitive())) {
      numbers.emplace(node.id(), numbers.at(node.inputs()[0].id()));
      continue;
    }
    Call call;
    call.primitive = node.primitive_ptr();
    for (const array& input : node.inputs()) call.inputs.push_back(numbers.at(input.id()));
    for (const array& result : results) {
      call.shapes.push_back(result.shape());
      call.dtypes.push_back(result.dtype());
    }
    if (options_.simplify) {
      std::vector<size_t>& candidates = by_input[call.inputs[0]];
      auto same = std::find_if(candidates.begin(), candidates.end(),
                               [&](size_t i) { return is_same(calls_[i], call); });
      if (same != candidates.end()) {
        for (size_t k = 0; k < results.size(); ++k) {
          numbers.emplace(results[k].id(), calls_[*same].outputs[k]);
        }
        continue;
      }
      candidates.push_back(calls_.size());
    }
    for (const array& result : results) {
      call.outputs.push_back(static_cast<int>(values_.size()));
      add_value(result, false);
    }
    calls_.push_back(std::move(call));
  }
  for (const array& output : outputs) outputs_.push_back(numbers.at(output.id()));
}

bool Program::is_same(const Call& a, const Call& b) const {
  return a.inputs == b.inputs && a.shapes == b.shapes && a.dtypes == b.dtypes &&
         a.primitive->stream() == b.primitive->stream() && a.primitive->is_equivalent(*b.primitive);
}

void Program::check_shapeless() const {
  for (const Call& call : calls_) {
    std::vector<array> inputs;
    for (int input : call.inputs) {
      const ValueInfo& value = values_[static_cast<size_t>(input)];
      inputs.emplace_back(value.shape, value.dtype, nullptr, std::vector<array>{});
    }
    check_shape_follows(*call.primitive, inputs, call.shapes);
  }
}

void check_shape_follows(Primitive& primitive, const std::vector<array>& inputs,
                         const std::vector<Shape>& shapes) {
  bool follows = false;
  try {
    follows = primitive.output_shapes(inputs) == shapes;
  } catch (const std::invalid_argument&) {
  }
  if (follows) return;
  throw std::invalid_argument(
      std::string("[compile] a function with ") + primitive.name() +
      " cannot be compiled for any shape: the shape of its result does not follow from its "
      "inputs; compile it without `shapeless`");
}

// Calls were reordered and made one: the numbers of their results are given anew.
void Program::number_in_order() {
  std::vector<int> numbers(values_.size(), -1);
  int next = 0;
  for (; next < static_cast<int>(input_count_ + constants_.size()); ++next) {
    numbers[static_cast<size_t>(next)] = next;
  }
  for (Call& call : calls_) {
    for (int& input : call.inputs) input = numbers[static_cast<size_t>(input)];
    for (int& output : call.outputs) output = numbers[static_cast<size_t>(output)] = next++;
  }
  for (int& output : outputs_) output = numbers[static_cast<size_t>(output)];
  values_.clear();
  values_.shrink_to_fit();
}

std::vector<array> Program::build(const std::vector<array>& inputs) const {
  std::vector<array> values;
  values.reserve(input_count_ + constants_.size() + 2 * calls_.size());
  values.insert(values.end(), inputs.begin(), inputs.end());
  values.insert(values.end(), constants_.begin(), constants_.end());
  for (const Call& call : calls_) {
    std::vector<array> arguments;
    arguments.reserve(call.inputs.size());
    for (int input : call.inputs) arguments.push_back(values[static_cast<size_t>(input)]);
    std::vector<Shape> inferred;
    if (options_.shapeless) inferred = call.primitive->output_shapes(arguments);
    const std::vector<Shape>& shapes = options_.shapeless ? inferred : call.shapes;
    if (shapes.size() == 1) {
      values.push_back(
          make_checked(shapes[0], call.dtypes[0], call.primitive, std::move(arguments)));
    } else {
      for (array& output : make_all_checked(shapes, call.dtypes, call.primitive, arguments)) {
        values.push_back(std::move(output));
      }
    }
  }
  std::vector<array> outputs;
  outputs.reserve(outputs_.size());
  for (int output : outputs_) outputs.push_back(values[static_cast<size_t>(output)]);
  return outputs;
}

}  // namespace holdfast::detail
