// Nodes that programs build of the library's primitives: what the op's function would not make is
// refused.
#include <stdexcept>

#include "graph/op.h"
#include "ops/recorded_calls.h"
#include "ops/support.h"

namespace holdfast::detail {

void Op::check(const std::vector<array>& inputs, std::span<const Shape> shapes,
               std::span<const Dtype> dtypes) {
  auto refuse = [&](const auto&... why) {
    throw std::invalid_argument(text("[array] a node of ", name(), ": ", why...));
  };
  std::optional<Record> made_with = record();
  if (!made_with) refuse("expected a primitive that can be called again");
  std::vector<array> called;
  try {
    called = call_again(
        *made_with,
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

}  // namespace holdfast::detail
