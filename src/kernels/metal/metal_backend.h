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

  // --- reductions, scans, sorts ---
  void reduce(Encoder& encoder, ReduceOp op, const std::vector<int>& axes, const array& in,
              array& out) override;

  void softmax(Encoder& encoder, const std::vector<int>& axes, const array& in,
               array& out) override;

  void scan(Encoder& encoder, const ScanKind& kind, const array& in, array& out) override;
  void recurrence(Encoder& encoder, int axis, bool reverse, const array& factors,
                  const array& terms, array& out) override;
  void sort(Encoder& encoder, const SortKind& kind, const array& in, array& out) override;
  void search_sorted(Encoder& encoder, bool right, const array& sorted, const array& values,
                     array& out) override;

  // --- norms ---
  void norm(Encoder& encoder, NormKind kind, float epsilon, const array& in, const array* weight,
            const array* bias, array& out) override;

  // --- creation, random numbers ---
  void fill(Encoder& encoder, const array& value, array& out) override;
  void arange(Encoder& encoder, double start, double step, array& out) override;
};

}  // namespace holdfast::kernels::metal
