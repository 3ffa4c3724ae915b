// Nodes that programs build of the library's primitives, and rules that they call by hand: what the
// op's function would not make is refused.
#include <algorithm>
#include <stdexcept>

#include <holdfast/utils.h>

#include "base/text.h"
#include "graph/op.h"

namespace holdfast::detail {

namespace {

std::pair<std::vector<Shape>, std::vector<Dtype>> described(const std::vector<array>& arrays) {
  std::pair<std::vector<Shape>, std::vector<Dtype>> result;
  for (const array& a : arrays) {
    result.first.push_back(a.shape());
    result.second.push_back(a.dtype());
  }
  return result;
}

}  // namespace

const std::vector<array>& RecordedCall::exactly(size_t count) const {
  if (inputs.size() != count) {
    throw std::invalid_argument(
        text("expected ", count, count == 1 ? " input" : " inputs", ", got ", inputs.size()));
  }
  return inputs;
}

std::vector<array> Op::call_again(const RecordedCall&) const {
  throw std::invalid_argument("expected a primitive that can be called again");
}

void Op::check(const std::vector<array>& inputs, std::span<const Shape> shapes,
               std::span<const Dtype> dtypes) {
  auto refuse = [&](const auto&... why) {
    throw std::invalid_argument(text("[array] a node of ", name(), ": ", why...));
  };
  std::vector<array> called;
  try {
    called = call_again(
        {inputs, {shapes.begin(), shapes.end()}, {dtypes.begin(), dtypes.end()}, stream()});
  } catch (const std::invalid_argument& error) {
    refuse(error.what());
  }
  if (called.size() != shapes.size()) {
    refuse("expected ", called.size(), called.size() == 1 ? " output" : " outputs", ", got ",
           shapes.size());
  }
  for (size_t i = 0; i < called.size(); ++i) {
    if (called[i].dtype() == dtypes[i] && called[i].shape() == shapes[i]) continue;
    refuse("expected ", called[i].dtype(), " of shape ", called[i].shape(), ", got ", dtypes[i],
           " of shape ", shapes[i]);
  }
  const array& node = called[0];
  // What changes nothing is not called, but may be a node.
  if (inputs.size() == 1 && node.id() == inputs[0].id()) return;
  if (!node.has_primitive() || !is_equivalent(node.primitive())) {
    refuse("expected what its function makes, with axes counted from the front, in order");
  }
  // The function may have converted, broadcast or copied what it was given; the node does not.
  for (size_t i = 0; i < inputs.size(); ++i) {
    const array& taken = node.inputs().at(i);
    if (taken.id() == inputs[i].id()) continue;
    if (taken.dtype() != inputs[i].dtype()) {
      refuse("expected ", taken.dtype(), " as input ", i, ", got ", inputs[i].dtype());
    }
    refuse("expected the result of ", taken.has_primitive() ? taken.primitive().name() : "a call",
           ", of shape ", taken.shape(), ", as input ", i, ", got shape ", inputs[i].shape());
  }
}

// --- rules ---

std::vector<array> Op::vjp_rule(const std::vector<array>& primals,
                                const std::vector<array>& cotangents,
                                const std::vector<int>& argnums,
                                const std::vector<array>& outputs) {
  return Primitive::vjp(primals, cotangents, argnums, outputs);
}

std::pair<std::vector<array>, std::vector<int>> Op::vmap_rule(const std::vector<array>&,
                                                              const std::vector<int>&) {
  return {};
}

std::vector<array> Op::vjp(const std::vector<array>& primals, const std::vector<array>& cotangents,
                           const std::vector<int>& argnums, const std::vector<array>& outputs) {
  auto expect = [&](bool is_so, const auto&... what) {
    if (!is_so) throw std::invalid_argument(text("[vjp] of ", name(), ": expected ", what...));
  };
  auto [shapes, dtypes] = described(outputs);
  check(primals, shapes, dtypes);
  expect(cotangents.size() == outputs.size(), "a cotangent for each of ", outputs.size(),
         " outputs, got ", cotangents.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    expect(cotangents[i].shape() == shapes[i] && cotangents[i].dtype() == dtypes[i], dtypes[i],
           " of shape ", shapes[i], " as cotangent ", i, ", got ", cotangents[i].dtype(),
           " of shape ", cotangents[i].shape());
  }
  expect(std::any_of(dtypes.begin(), dtypes.end(),
                     [](const Dtype& dtype) { return issubdtype(dtype, inexact); }),
         "an output of a floating or complex dtype, got none");
  for (int argnum : argnums) {
    expect(argnum >= 0 && static_cast<size_t>(argnum) < primals.size(), "the number of one of ",
           primals.size(), " primals, got ", argnum);
    const Dtype dtype = primals[static_cast<size_t>(argnum)].dtype();
    expect(issubdtype(dtype, inexact), "a floating or complex primal as number ", argnum, ", got ",
           dtype);
  }
  return vjp_rule(primals, cotangents, argnums, outputs);
}

std::pair<std::vector<array>, std::vector<int>> Op::vmap(const std::vector<array>& inputs,
                                                         const std::vector<int>& axes) {
  auto expect = [&](bool is_so, const auto&... what) {
    if (!is_so) throw std::invalid_argument(text("[vmap] of ", name(), ": expected ", what...));
  };
  expect(axes.size() == inputs.size(), "an axis for each of ", inputs.size(), " inputs, got ",
         axes.size());
  std::optional<int> size;
  std::vector<array> rows;  // what one of the mapped calls sees
  for (size_t i = 0; i < inputs.size(); ++i) {
    Shape shape = inputs[i].shape();
    expect(axes[i] >= -1 && axes[i] < static_cast<int>(shape.size()), "an axis of shape ", shape,
           " or -1 for input ", i, ", got ", axes[i]);
    if (axes[i] >= 0) {
      auto mapped = shape.begin() + axes[i];
      expect(!size || *size == *mapped, "mapped axes of one size, got ", size.value_or(0), " and ",
             *mapped);
      size = *mapped;
      shape.erase(mapped);
    }
    rows.push_back(array(std::move(shape), inputs[i].dtype(), nullptr, {}));
  }
  expect(size.has_value(), "an input with a mapped axis, got none");
  if (!has_vmap_rule()) return {};
  if (record()) {
    // No op that has a rule is given the shape of its result.
    auto [shapes, dtypes] = described(call_again({rows, {Shape{}}, {float32}, stream()}));
    check(rows, shapes, dtypes);
  }
  return vmap_rule(inputs, axes);
}

}  // namespace holdfast::detail
