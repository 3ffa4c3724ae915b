// Low-bit weights and products with them. Included by ops.h.
//
// A format is a mode with bits and group size: affine (1, 2, 3, 4, 5, 6 or 8 bits; groups of 32, 64
// or 128; default 4 and 64), mxfp4 (4, 32), mxfp8 (8, 32), nvfp4 (4, 16). Codes are packed in
// uint32 along the last axis, from the lowest bit on. Layouts and codes are bit for bit those of
// MLX.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/utils.h>

namespace holdfast {

// {codes, scales, biases}, without biases unless affine. `global_scale` is for nvfp4.
std::vector<array> quantize(const array& w, std::optional<int> group_size = std::nullopt,
                            std::optional<int> bits = std::nullopt,
                            const std::string& mode = "affine",
                            const std::optional<array>& global_scale = std::nullopt,
                            StreamOrDevice s = {});
// `dtype`: by default that of the scales, bfloat16 for the floating modes.
array dequantize(const array& w, const array& scales,
                 const std::optional<array>& biases = std::nullopt,
                 std::optional<int> group_size = std::nullopt,
                 std::optional<int> bits = std::nullopt, const std::string& mode = "affine",
                 const std::optional<array>& global_scale = std::nullopt,
                 std::optional<Dtype> dtype = std::nullopt, StreamOrDevice s = {});
// x times the transposed quantised matrix (or the matrix itself). Up to 6 rows multiply the
// dequantised weights in float32; more rows round them to the result's dtype first.
array quantized_matmul(const array& x, const array& w, const array& scales,
                       const std::optional<array>& biases = std::nullopt, bool transpose = true,
                       std::optional<int> group_size = std::nullopt,
                       std::optional<int> bits = std::nullopt, const std::string& mode = "affine",
                       StreamOrDevice s = {});
// The same for matrices chosen by index: out[i] = x[lhs_indices[i]] w[rhs_indices[i]]; indices
// count the matrices of the batch dimensions and broadcast. By default all in order.
array gather_qmm(const array& x, const array& w, const array& scales,
                 const std::optional<array>& biases = std::nullopt,
                 const std::optional<array>& lhs_indices = std::nullopt,
                 const std::optional<array>& rhs_indices = std::nullopt, bool transpose = true,
                 std::optional<int> group_size = std::nullopt,
                 std::optional<int> bits = std::nullopt, const std::string& mode = "affine",
                 bool sorted_indices = false, StreamOrDevice s = {});
// x is quantised too; w may be given unquantised (without scales).
array qqmm(const array& x, const array& w, const std::optional<array>& w_scales = std::nullopt,
           std::optional<int> group_size = std::nullopt, std::optional<int> bits = std::nullopt,
           const std::string& mode = "nvfp4",
           const std::optional<array>& global_scale_x = std::nullopt,
           const std::optional<array>& global_scale_w = std::nullopt, StreamOrDevice s = {});
array gather_qqmm(const array& x, const array& w,
                  const std::optional<array>& scales_w = std::nullopt,
                  const std::optional<array>& lhs_indices = std::nullopt,
                  const std::optional<array>& rhs_indices = std::nullopt,
                  std::optional<int> group_size = std::nullopt,
                  std::optional<int> bits = std::nullopt, const std::string& mode = "nvfp4",
                  const std::optional<array>& global_scale_x = std::nullopt,
                  const std::optional<array>& global_scale_w = std::nullopt,
                  bool sorted_indices = false, StreamOrDevice s = {});

// 8-bit floats (e4m3) in uint8; what is too large, and NaN, becomes 448.
array from_fp8(array x, Dtype dtype, StreamOrDevice s = {});
array to_fp8(array x, StreamOrDevice s = {});

}  // namespace holdfast
