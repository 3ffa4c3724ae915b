// Ops in more general forms than the public functions have: rules of transforms make them, and
// files of functions call them again. They check their arguments as the public ones do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/stream.h>

#include "kernels/plan/fft.h"
#include "kernels/plan/reduce.h"

namespace holdfast {

inline bool is_half(Dtype dtype) { return dtype == float16 || dtype == bfloat16; }
// What an op of several steps is computed in, so that half types are rounded once, at its end.
inline Dtype computed_in(Dtype dtype) { return is_half(dtype) ? float32 : dtype; }

// argmin and argmax over several axes, too. `widens`: the sum of a half type is a float32.
array reduce(kernels::ReduceOp op, const array& a, const std::vector<int>& axes, bool keepdims,
             StreamOrDevice s, bool widens = false);
// `widens`: the product of half types is a float32, for ops that scale it or add to it.
array matmul(const array& a, const array& b, StreamOrDevice s, bool widens);
// With double factors.
array addmm(const array& c, const array& a, const array& b, double alpha, double beta,
            StreamOrDevice s);
// Replaces NaN and infinities by values in the dtype of `a`; none: its limits.
array nan_to_num(const array& a, double nan, std::optional<double> posinf,
                 std::optional<double> neginf, StreamOrDevice s);
// Along the last axis; with any factor.
array transform_rows(const char* op, const array& a, kernels::FftKind kind, bool inverse,
                     int length, float scale, StreamOrDevice s);
// Transposed, too.
array hadamard_transform(const array& a, std::optional<float> scale, bool transposed,
                         StreamOrDevice s);
// With a mask and sinks that have the dtype of the computation already, which may be wider than
// that of the result.
array attend(const array& queries, const array& keys, const array& values, float scale,
             const std::string& mask_mode, const std::optional<array>& mask,
             const std::optional<array>& sinks, bool is_mask_converted, StreamOrDevice s);

}  // namespace holdfast
