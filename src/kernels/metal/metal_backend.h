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

  // --- norms, attention, transforms, convolutions, factorisations ---
  void rope(Encoder& encoder, const RopeSettings& settings, const array& in, const array* offsets,
            const array* frequencies, array& out) override;
  void attention(Encoder& encoder, float scale, bool causal, const AttentionInputs& inputs,
                 array& out) override;
  void fft(Encoder& encoder, const FftSettings& settings, const array& in, array& out) override;
  void hadamard(Encoder& encoder, float scale, bool transposed, const array& in,
                array& out) override;
  void convolution(Encoder& encoder, const ConvolutionShape& shape, const array& in,
                   const array& weights, array& out) override;

  // --- creation, random numbers ---
  void fill(Encoder& encoder, const array& value, array& out) override;
  void arange(Encoder& encoder, double start, double step, array& out) override;
};

}  // namespace holdfast::kernels::metal
