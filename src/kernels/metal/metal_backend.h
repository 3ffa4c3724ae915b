// MetalBackend: the library's ops as kernels in the Metal Shading Language, for every device that
// dispatches pipelines. The kernels are the .metal files of this folder.
#pragma once

#include "kernels/backend.h"

namespace holdfast::kernels::metal {

// The functions are in encode/, a file a family. Families that are missing here run on the host
// (NoKernel).
class MetalBackend : public Backend {
 public:
  static MetalBackend& get();

  // --- copies, views, indices ---
  void copy(Encoder& encoder, const array& in, array& out) override;

  // --- creation, random numbers ---
  void fill(Encoder& encoder, const array& value, array& out) override;
  void arange(Encoder& encoder, double start, double step, array& out) override;

  // --- products, quantisation ---
  void matmul(Encoder& encoder, const array& a, const array& b, array& out) override;
  void segmented_matmul(Encoder& encoder, const array& a, const array& b, const array& segments,
                        array& out) override;
  void quantize(Encoder& encoder, const QuantizedFormat& format, const std::vector<array>& inputs,
                std::vector<array>& outputs) override;
  void dequantize(Encoder& encoder, const QuantizedFormat& format, const std::vector<array>& inputs,
                  array& out) override;
  void quantized_matmul(Encoder& encoder, const QuantizedProduct& product,
                        const std::vector<array>& inputs, array& out) override;
};

}  // namespace holdfast::kernels::metal
