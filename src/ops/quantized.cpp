#include "ops/quantized.h"

#include "ops/support.h"

namespace holdfast::quantized {

namespace {

struct ModeRow {
  const char* name;
  QuantizationMode mode;
  int group_size, bits;  // defaults; fixed but for affine
};
// In the order of QuantizationMode.
constexpr ModeRow mode_rows[] = {{"affine", QuantizationMode::affine, 64, 4},
                                 {"mxfp4", QuantizationMode::mxfp4, 32, 4},
                                 {"mxfp8", QuantizationMode::mxfp8, 32, 8},
                                 {"nvfp4", QuantizationMode::nvfp4, 16, 4}};

}  // namespace

QuantizedFormat checked_format(const char* op, std::optional<int> group_size,
                               std::optional<int> bits, const std::string& mode) {
  for (const ModeRow& row : mode_rows) {
    if (mode != row.name) continue;
    QuantizedFormat format{row.mode, bits.value_or(row.bits), group_size.value_or(row.group_size)};
    if (row.mode != QuantizationMode::affine) {
      if (format.bits != row.bits || format.group_size != row.group_size) {
        throw std::invalid_argument(text("[", op, "] mode ", mode, " has ", row.bits,
                                         " bits and groups of ", row.group_size, ", got ",
                                         format.bits, " bits and groups of ", format.group_size));
      }
    } else {
      bool known_bits = format.bits >= 1 && format.bits <= 8 && format.bits != 7;
      if (!known_bits) {
        throw std::invalid_argument(
            text("[", op, "] expected 1, 2, 3, 4, 5, 6 or 8 bits, got ", format.bits));
      }
      if (format.group_size != 32 && format.group_size != 64 && format.group_size != 128) {
        throw std::invalid_argument(
            text("[", op, "] expected groups of 32, 64 or 128, got ", format.group_size));
      }
    }
    return format;
  }
  throw std::invalid_argument(
      text("[", op, "] expected mode affine, mxfp4, mxfp8 or nvfp4, got \"", mode, "\""));
}

const char* mode_name(QuantizationMode mode) { return mode_rows[static_cast<size_t>(mode)].name; }

void check_global_scale(const char* op, const QuantizedFormat& format,
                        const std::optional<array>& global_scale) {
  if (!global_scale) return;
  if (format.mode != QuantizationMode::nvfp4) {
    throw std::invalid_argument(text("[", op, "] a global scale is for mode nvfp4 only"));
  }
  if (global_scale->size() != 1) {
    throw std::invalid_argument(
        text("[", op, "] expected one global scale, got shape ", global_scale->shape()));
  }
}

int checked_columns(const char* op, const QuantizedFormat& format, const array& w,
                    const array& scales, const std::optional<array>& biases) {
  bool affine = format.mode == QuantizationMode::affine;
  auto fail = [&](const auto&... parts) {
    throw std::invalid_argument(text("[", op, "] ", parts...));
  };
  if (w.dtype() != uint32) fail("expected packed weights of uint32, got ", w.dtype());
  if (w.ndim() < 2) fail("expected weights with two dimensions or more, got shape ", w.shape());
  if (affine != biases.has_value()) {
    fail("expected ", affine ? "biases with mode affine" : "no biases but with mode affine");
  }
  if (affine ? !is_computable(scales.dtype()) : scales.dtype() != uint8) {
    fail("expected scales of ", affine ? "float32, float16 or bfloat16" : "uint8", ", got ",
         scales.dtype());
  }
  int columns = safe_cast(int64_t{w.shape(-1)} * 32 / format.bits, op);
  Shape expected = w.shape();
  expected.back() = columns / format.group_size;
  if (columns % format.group_size != 0 || scales.shape() != expected ||
      (biases && biases->shape() != expected)) {
    fail("weights of shape ", w.shape(), " with ", format.bits, " bits in groups of ",
         format.group_size, " need scales and biases of shape ", expected, ", got ",
         scales.shape());
  }
  return columns;
}

}  // namespace holdfast::quantized
