// Products of matrices and tensors. Included by ops.h.
#pragma once

#include <optional>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/utils.h>

namespace holdfast {

// beta * c + alpha * (a b)
array addmm(array c, array a, array b, const float& alpha = 1.0f, const float& beta = 1.0f,
            StreamOrDevice s = {});
// a b, where blocks of `block_size` (32 or 64) of the operands and of the result are multiplied
// with one element of a mask each.
array block_masked_mm(array a, array b, int block_size,
                      std::optional<array> mask_out = std::nullopt,
                      std::optional<array> mask_lhs = std::nullopt,
                      std::optional<array> mask_rhs = std::nullopt, StreamOrDevice s = {});
// Products of matrices chosen by index: out[i] = a[lhs_indices[i]] b[rhs_indices[i]]. Indices count
// the matrices of the batch dimensions and broadcast; by default all in order.
array gather_mm(array a, array b, std::optional<array> lhs_indices = std::nullopt,
                std::optional<array> rhs_indices = std::nullopt, bool sorted_indices = false,
                StreamOrDevice s = {});
// For each pair (start, end) of `segments`: a[:, start:end] b[start:end, :].
array segmented_mm(array a, array b, array segments, StreamOrDevice s = {});

// Sums over the last `axis` axes of a and the first ones of b, or over pairs of axes.
array tensordot(const array& a, const array& b, const int axis = 2, StreamOrDevice s = {});
array tensordot(const array& a, const array& b, const std::vector<int>& axes_a,
                const std::vector<int>& axes_b, StreamOrDevice s = {});
// Of the flattened arrays.
array outer(const array& a, const array& b, StreamOrDevice s = {});
// Sums over the last axis of both.
array inner(const array& a, const array& b, StreamOrDevice s = {});
array kron(const array& a, const array& b, StreamOrDevice s = {});

// The last axis times a Hadamard matrix of its size, which is m * 2^k with m one of 1, 12, 20, 28;
// times `scale`, by default 1 / sqrt(size). Computed in float32; integers give float32.
array hadamard_transform(const array& a, std::optional<float> scale = std::nullopt,
                         StreamOrDevice s = {});

}  // namespace holdfast
