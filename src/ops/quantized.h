// What quantize, dequantize and the products with quantised matrices share.
#pragma once

#include <optional>
#include <string>
#include <tuple>

#include <holdfast/array.h>

#include "kernels/plan/quantization.h"

namespace holdfast::quantized {

using kernels::QuantizationMode;
using kernels::QuantizedFormat;

// What a global scale of mode nvfp4 is divided by.
inline constexpr float nvfp4_range = 448.0f * 6.0f;

// The format of a mode, with its defaults. Throws std::invalid_argument for one that is not there.
QuantizedFormat checked_format(const char* op, std::optional<int> group_size,
                               std::optional<int> bits, const std::string& mode);
const char* mode_name(QuantizationMode mode);
void check_global_scale(const char* op, const QuantizedFormat& format,
                        const std::optional<array>& global_scale);
// The number of columns that codes and scales stand for; checks them and the biases.
int checked_columns(const char* op, const QuantizedFormat& format, const array& w,
                    const array& scales, const std::optional<array>& biases);

// gather_qmm, whose product is then multiplied by the global scale of each matrix that was chosen:
// one for each of w, in mode nvfp4, in units of its range as in dequantize.
array gather_scaled_qmm(const array& x, const array& w, const array& scales,
                        const std::optional<array>& biases, const std::optional<array>& lhs_indices,
                        const std::optional<array>& rhs_indices, bool transpose,
                        std::optional<int> group_size, std::optional<int> bits,
                        const std::string& mode, const std::optional<array>& global_scale,
                        bool sorted_indices, StreamOrDevice s);

inline bool is_computable(Dtype dtype) {
  return dtype == float32 || dtype == float16 || dtype == bfloat16;
}

// For Recorded::members.
inline auto members_of(const QuantizedFormat& format) {
  return std::tie(format.mode, format.bits, format.group_size);
}

// The cotangents of scales and biases, from that of scale * code + bias. Only the affine mode has
// scales that are numbers.
struct GroupCotangents {
  const QuantizedFormat& format;
  const array &codes, &scales;
  array cotangent;  // of the matrix
  Stream s;

  array of_scales() const;
  array of_biases() const;
};

}  // namespace holdfast::quantized
