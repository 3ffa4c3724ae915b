// Which calls of a trace run as one.
#pragma once

#include <span>
#include <vector>

#include "transforms/call.h"

namespace holdfast::detail {

// The same calls, with groups replaced by calls of CompiledRows and Compiled. `results` are the
// numbers of the values that the trace returns. With `rows`, reductions along the last axis gather
// what stands before and behind them; their programs are for the shapes of the trace alone.
std::vector<Call> fused(std::vector<Call> calls, std::span<const int> results,
                        std::span<const ValueInfo> values, bool rows);

}  // namespace holdfast::detail
