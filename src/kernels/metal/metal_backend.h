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
  void dynamic_slice(Encoder& encoder, std::span<const int> axes, const array& in,
                     const array& start, array& out) override;
  void slice_update(Encoder& encoder, const SliceRegion& region, UpdateMode mode,
                    const array& update, const array* start, array& out) override;
  void concatenate(Encoder& encoder, int axis, const std::vector<array>& inputs,
                   array& out) override;
  void pad(Encoder& encoder, const Shape& low, const array& in, const array& value,
           array& out) override;
  void masked_scatter(Encoder& encoder, const array& mask, const array& source,
                      array& out) override;
  void gather(Encoder& encoder, const Indexing& indexing, const array& in,
              std::span<const array> indices, array& out) override;
  void scatter(Encoder& encoder, const Indexing& indexing, UpdateMode mode,
               std::span<const array> indices, const array& updates, array& out) override;

  // --- creation, random numbers ---
  void fill(Encoder& encoder, const array& value, array& out) override;
  void arange(Encoder& encoder, double start, double step, array& out) override;
  void random_bits(Encoder& encoder, const array& key, array& out) override;
};

}  // namespace holdfast::kernels::metal
