// Ops in more general forms than the public functions have: rules of transforms make them, and
// files of functions call them again. They check their arguments as the public ones do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/stream.h>

#include "kernels/cpu/fft.h"
#include "kernels/cpu/reduce.h"

namespace holdfast {

// argmin and argmax over several axes, too. `widens`: the sum of a half type is a float32.
array reduce(cpu::ReduceOp op, const array& a, const std::vector<int>& axes, bool keepdims,
             StreamOrDevice s, bool widens = false);
// Along the last axis; with any factor.
array transform_rows(const char* op, const array& a, cpu::FftKind kind, bool inverse, int length,
                     float scale, StreamOrDevice s);
// Transposed, too.
array hadamard_transform(const array& a, std::optional<float> scale, bool transposed,
                         StreamOrDevice s);
// With a mask and sinks that have the dtype of the computation already, which may be wider than
// that of the result.
array attend(const array& queries, const array& keys, const array& values, float scale,
             const std::string& mask_mode, const std::optional<array>& mask,
             const std::optional<array>& sinks, bool is_mask_converted, StreamOrDevice s);

}  // namespace holdfast
