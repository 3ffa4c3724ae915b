// CpuBackend: the library's ops as native commands on the host's memory.
#pragma once

#include "kernels/backend.h"

namespace holdfast::kernels::cpu {

// The functions are in encode/, a file a family.
class CpuBackend final : public Backend {
 public:
  static CpuBackend& get();

  // --- copies, views, indices ---
  void copy(Encoder& encoder, const array& in, array& out) override;

  // --- reductions, scans, sorts ---
  void reduce(Encoder& encoder, ReduceOp op, const std::vector<int>& axes, const array& in,
              array& out) override;
  void softmax(Encoder& encoder, const std::vector<int>& axes, const array& in,
               array& out) override;
  void scan(Encoder& encoder, const ScanKind& kind, const array& in, array& out) override;

  // --- norms, attention, transforms, convolutions, factorisations ---

  // --- creation, random numbers ---

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

  // --- element-wise programs ---
  void fused(Encoder& encoder, const FusedGroup& group) override;
  void rows(Encoder& encoder, const RowGroup& group, const std::vector<array>& inputs,
            std::vector<array>& outputs) override;
};

}  // namespace holdfast::kernels::cpu
