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
  void convert_fp8(Encoder& encoder, const array& in, array& out) override;

  // --- creation, random numbers ---
  void fill(Encoder& encoder, const array& value, array& out) override;
  void arange(Encoder& encoder, double start, double step, array& out) override;

  // --- element-wise programs ---
  std::unique_ptr<const Prepared> prepare_fused(exec::Device& device,
                                                const FusedGroup& group) override;
  void fused(Encoder& encoder, const FusedGroup& group) override;
  void rows(Encoder& encoder, const RowGroup& group, const std::vector<array>& inputs,
            std::vector<array>& outputs) override;
};

}  // namespace holdfast::kernels::metal
