// Which calls of a trace run as one.
#pragma once

#include <span>
#include <vector>

#include "transforms/call.h"

namespace holdfast::detail {

// The same calls, with groups of element-wise ones replaced by calls of Compiled. `results` are the
// numbers of the values that the trace returns.
std::vector<Call> fused(std::vector<Call> calls, std::span<const int> results,
                        std::span<const ValueInfo> values);

}  // namespace holdfast::detail
