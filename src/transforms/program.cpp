#include "transforms/program.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "ops/views.h"
#include "transforms/tape.h"

namespace holdfast::detail {

namespace {

// Outside of a trace these only hand their input on.
bool hands_on(const Primitive& primitive) {
  return dynamic_cast<const Identity*>(&primitive) != nullptr ||
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
                 bool simplify) {
  Tape tape(inputs, outputs, Tape::Follow::all);
  std::unordered_map<std::uintptr_t, int> numbers;  // of values that are known
  for (const array& input : inputs) {
    numbers.emplace(input.id(), static_cast<int>(numbers.size()));
  }
  // Constants first, so that their numbers do not depend on the calls.
  int input_count = static_cast<int>(inputs.size());
  auto add_constant = [&](const array& a) {
    if (tape.depends(a) || numbers.contains(a.id())) return;
    size_t place = constants_.size();
    if (simplify) {
      auto same = std::find_if(constants_.begin(), constants_.end(),
                               [&](const array& c) { return is_same_scalar(a, c); });
      place = static_cast<size_t>(same - constants_.begin());
    }
    if (place == constants_.size()) constants_.push_back(a);
    numbers.emplace(a.id(), input_count + static_cast<int>(place));
  };
  for (const array& node : tape.calls()) {
    for (const array& input : node.inputs()) add_constant(input);
  }
  for (const array& output : outputs) add_constant(output);

  value_count_ = input_count + static_cast<int>(constants_.size());
  std::vector<array> alive;  // so that no other node gets the address of a sibling made anew
  // Calls by the number of their first input: those that compute the same have it in common.
  std::unordered_map<int, std::vector<size_t>> by_input;
  for (const array& node : tape.calls()) {
    std::vector<array> results = node.outputs();
    alive.insert(alive.end(), results.begin(), results.end());
    if (simplify && hands_on(node.primitive())) {
      numbers.emplace(node.id(), numbers.at(node.inputs()[0].id()));
      continue;
    }
    Call call{node.primitive_ptr(), {}, {}, {}, value_count_};
    for (const array& input : node.inputs()) call.inputs.push_back(numbers.at(input.id()));
    for (const array& result : results) {
      call.shapes.push_back(result.shape());
      call.dtypes.push_back(result.dtype());
    }
    if (simplify) {
      std::vector<size_t>& candidates = by_input[call.inputs[0]];
      auto same = std::find_if(candidates.begin(), candidates.end(),
                               [&](size_t i) { return is_same(calls_[i], call); });
      if (same == candidates.end()) {
        candidates.push_back(calls_.size());
      } else {
        call.first_output = calls_[*same].first_output;
      }
    }
    for (size_t k = 0; k < results.size(); ++k) {
      numbers.emplace(results[k].id(), call.first_output + static_cast<int>(k));
    }
    if (call.first_output < value_count_) continue;
    value_count_ += static_cast<int>(results.size());
    calls_.push_back(std::move(call));
  }
  for (const array& output : outputs) outputs_.push_back(numbers.at(output.id()));
}

bool Program::is_same(const Call& a, const Call& b) const {
  return a.inputs == b.inputs && a.shapes == b.shapes && a.dtypes == b.dtypes &&
         a.primitive->stream() == b.primitive->stream() && a.primitive->is_equivalent(*b.primitive);
}

std::vector<array> Program::build(const std::vector<array>& inputs) const {
  std::vector<array> values;
  values.reserve(static_cast<size_t>(value_count_));
  values.insert(values.end(), inputs.begin(), inputs.end());
  values.insert(values.end(), constants_.begin(), constants_.end());
  for (const Call& call : calls_) {
    std::vector<array> arguments;
    arguments.reserve(call.inputs.size());
    for (int input : call.inputs) arguments.push_back(values[static_cast<size_t>(input)]);
    if (call.shapes.size() == 1) {
      values.emplace_back(call.shapes[0], call.dtypes[0], call.primitive, std::move(arguments));
    } else {
      for (array& output :
           array::make_arrays(call.shapes, call.dtypes, call.primitive, arguments)) {
        values.push_back(std::move(output));
      }
    }
  }
  std::vector<array> outputs;
  for (int output : outputs_) outputs.push_back(values[static_cast<size_t>(output)]);
  return outputs;
}

}  // namespace holdfast::detail
