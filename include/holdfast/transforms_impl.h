// What bindings and other transforms need beneath transforms.h: vmap in two halves. Who is tracing
// comes with it (holdfast/tracing.h).
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/tracing.h>

namespace holdfast::detail {

// The tracers that `fun` was called with, without the mapped axes, and what it returned.
std::pair<std::vector<array>, std::vector<array>> vmap_trace(
    const std::function<std::vector<array>(const std::vector<array>&)>& fun,
    const std::vector<array>& inputs, const std::vector<int>& in_axes);
// The outputs for `inputs`, from such a trace.
std::vector<array> vmap_replace(const std::vector<array>& inputs,
                                const std::vector<array>& s_inputs,
                                const std::vector<array>& s_outputs,
                                const std::vector<int>& in_axes, const std::vector<int>& out_axes);

}  // namespace holdfast::detail
