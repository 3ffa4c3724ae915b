#include "transforms/compiled.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include <holdfast/utils.h>

#include "base/text.h"
#include "kernels/backend.h"
#include "kernels/plan/elementwise.h"

namespace holdfast::detail {

constexpr const char* primitive_name = "Compiled";

CompiledSteps::CompiledSteps(std::span<const Call* const> calls, std::span<const int> inputs,
                             std::span<const int> outputs, std::span<const ValueInfo> values)
    : input_count_(inputs.size()) {
  std::unordered_map<int, uint16_t> places;
  for (int input : inputs) places.emplace(input, static_cast<uint16_t>(places.size()));
  for (const Call* call : calls) {
    FusedStep step{call->primitive->traits().elementwise,
                   static_cast<uint8_t>(call->inputs.size()),
                   {},
                   call->dtypes[0],
                   values[static_cast<size_t>(call->inputs.back())].dtype,
                   nullptr};
    for (size_t i = 0; i < call->inputs.size(); ++i) step.values[i] = places.at(call->inputs[i]);
    places.emplace(call->outputs[0], static_cast<uint16_t>(FusedStep::result + steps_.size()));
    steps_.push_back(step);
  }
  for (int output : outputs) outputs_.push_back(places.at(output) - FusedStep::result);
}

namespace {

bool have_one_shape(const std::vector<array>& outputs) {
  return std::all_of(outputs.begin(), outputs.end(),
                     [&](const array& output) { return output.shape() == outputs.back().shape(); });
}

}  // namespace

CompiledSteps::Steps CompiledSteps::steps_to(std::vector<array>& outputs) const {
  Steps steps(steps_.begin(), steps_.end());
  for (size_t k = 0; k < outputs.size(); ++k) steps[outputs_[k]].output = &outputs[k];
  return steps;
}

std::unique_ptr<const Prepared> CompiledSteps::prepare(exec::Device& device,
                                                       const std::vector<array>& inputs,
                                                       std::vector<array>& outputs) {
  if (!have_one_shape(outputs)) return nullptr;
  Steps steps = steps_to(outputs);
  return device.backend->prepare_fused(
      device, {&outputs.back().shape(), inputs, 0, std::span(steps.data(), steps.size()), &cache_});
}

void CompiledSteps::encode(Encoder& encoder, const Prepared* prepared,
                           const std::vector<array>& inputs, std::vector<array>& outputs) {
  if (!have_one_shape(outputs)) {
    for (size_t k = 0; k < outputs.size(); ++k) {
      encode_separately(encoder, inputs, outputs[k], outputs_[k]);
    }
    return;
  }
  Steps steps = steps_to(outputs);
  uint32_t donatable = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_donatable()) donatable |= 1u << i;
  }
  kernels::backend_of(encoder).fused(
      encoder, {&outputs.back().shape(), inputs, donatable, std::span(steps.data(), steps.size()),
                &cache_, prepared});
}

// Without fixed shapes what had one shape in the trace may have several now, each of which the next
// one broadcasts: an output is then computed over its own shape, by the steps that it needs.
void CompiledSteps::encode_separately(Encoder& encoder, const std::vector<array>& inputs,
                                      array& output, size_t step) const {
  std::vector<uint16_t> place(steps_.size(), 0);
  std::vector<bool> needed(steps_.size(), false);
  needed[step] = true;
  for (size_t k = step + 1; k-- > 0;) {
    for (int i = 0; needed[k] && i < steps_[k].arity; ++i) {
      uint16_t value = steps_[k].values[i];
      if (value >= FusedStep::result) needed[value - FusedStep::result] = true;
    }
  }
  std::vector<FusedStep> steps;
  std::vector<array> used;
  std::vector<int> input_place(inputs.size(), -1);
  for (size_t k = 0; k <= step; ++k) {
    if (!needed[k]) continue;
    place[k] = static_cast<uint16_t>(FusedStep::result + steps.size());
    steps.push_back(steps_[k]);
    for (int i = 0; i < steps_[k].arity; ++i) {
      uint16_t& value = steps.back().values[i];
      if (value >= FusedStep::result) {
        value = place[value - FusedStep::result];
        continue;
      }
      if (input_place[value] < 0) {
        input_place[value] = static_cast<int>(used.size());
        used.push_back(inputs[value]);
      }
      value = static_cast<uint16_t>(input_place[value]);
    }
  }
  steps.back().output = &output;
  kernels::backend_of(encoder).fused(encoder, {&output.shape(), used, 0, steps});
}

std::vector<Shape> CompiledSteps::output_shapes(const std::vector<array>& inputs) const {
  check_count(inputs);
  std::vector<Shape> shapes, results;
  for (const FusedStep& step : steps_) {
    Shape shape;
    for (int i = 0; i < step.arity; ++i) {
      uint16_t value = step.values[i];
      shape = broadcast_shapes(shape, value >= FusedStep::result ? shapes[value - FusedStep::result]
                                                                 : inputs[value].shape());
    }
    shapes.push_back(std::move(shape));
  }
  for (size_t step : outputs_) results.push_back(shapes[step]);
  return results;
}

void CompiledSteps::check_count(const std::vector<array>& inputs) const {
  if (inputs.size() == input_count_) return;
  throw std::invalid_argument(text("[array] a node of ", primitive_name, ": expected ",
                                   input_count_, " inputs, got ", inputs.size()));
}

void CompiledSteps::check(const std::vector<array>& inputs, std::span<const Shape> shapes,
                          std::span<const Dtype> dtypes) const {
  auto expect = [](bool is_so, const auto&... what) {
    if (!is_so)
      throw std::invalid_argument(
          text("[array] a node of ", primitive_name, ": expected ", what...));
  };
  check_count(inputs);
  expect(shapes.size() == outputs_.size(), outputs_.size(), " outputs, got ", shapes.size());
  for (const FusedStep& step : steps_) {
    for (int i = 0; i < step.arity; ++i) {
      if (step.values[i] >= FusedStep::result) continue;
      const bool is_condition = step.arity == 3 && i == 0;
      const Dtype dtype = is_condition ? bool_ : step.operand_dtype,
                  got = inputs[step.values[i]].dtype();
      expect(got == dtype, dtype, " as input ", step.values[i], ", got ", got);
    }
  }
  const std::vector<Shape> results = output_shapes(inputs);
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const Dtype dtype = steps_[outputs_[k]].dtype;
    expect(dtypes[k] == dtype && shapes[k] == results[k], dtype, " of shape ", results[k], ", got ",
           dtypes[k], " of shape ", shapes[k]);
  }
}

bool CompiledSteps::operator==(const CompiledSteps& other) const {
  auto is_same = [](const FusedStep& a, const FusedStep& b) {
    return a.op == b.op && a.arity == b.arity && a.dtype == b.dtype &&
           a.operand_dtype == b.operand_dtype && std::equal(a.values, a.values + a.arity, b.values);
  };
  return input_count_ == other.input_count_ && outputs_ == other.outputs_ &&
         std::equal(steps_.begin(), steps_.end(), other.steps_.begin(), other.steps_.end(),
                    is_same);
}

std::string CompiledSteps::name() const {
  std::string result = primitive_name;
  for (const FusedStep& step : steps_) {
    result += '_';
    result += step.op == kernels::conversion_code
                  ? "AsType"
                  : kernels::elementwise_name(static_cast<kernels::ElementwiseOp>(step.op));
    for (int i = 0; i < step.arity; ++i) {
      bool is_result = step.values[i] >= FusedStep::result;
      result += is_result ? "_r" : "_i";
      result += std::to_string(is_result ? step.values[i] - FusedStep::result : step.values[i]);
    }
    result += text('_', step.operand_dtype, '_', step.dtype);
  }
  for (size_t step : outputs_) result += "_o" + std::to_string(step);
  return result;
}

}  // namespace holdfast::detail

namespace holdfast {

Compiled::Compiled(Stream stream, std::unique_ptr<detail::CompiledSteps> steps)
    : PreparedOp(stream), steps_(std::move(steps)) {}
Compiled::~Compiled() = default;

std::string Compiled::lib_name() const { return steps_->name(); }
const char* Compiled::name() const { return detail::primitive_name; }
bool Compiled::is_equivalent(const Primitive& other) const {
  const auto* same = dynamic_cast<const Compiled*>(&other);
  return same != nullptr && *steps_ == *same->steps_;
}

std::unique_ptr<const detail::Prepared> Compiled::prepare(exec::Device& device,
                                                          const std::vector<array>& inputs,
                                                          std::vector<array>& outputs) {
  return steps_->prepare(device, inputs, outputs);
}

void Compiled::encode_prepared(Encoder& encoder, const detail::Prepared* prepared,
                               const std::vector<array>& inputs, std::vector<array>& outputs) {
  steps_->encode(encoder, prepared, inputs, outputs);
}

std::vector<Shape> Compiled::output_shapes(const std::vector<array>& inputs) {
  return steps_->output_shapes(inputs);
}

void Compiled::check(const std::vector<array>& inputs, std::span<const Shape> shapes,
                     std::span<const Dtype> dtypes) {
  steps_->check(inputs, shapes, dtypes);
}

}  // namespace holdfast
