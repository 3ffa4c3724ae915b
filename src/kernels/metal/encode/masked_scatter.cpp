#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/plan/scan.h"
#include "kernels/staging.h"

namespace holdfast::kernels::metal {
namespace {

// As in masked.metal.
struct MaskedScatter {
  uint64_t size, available, chunks;
  uint32_t is_aligned;
};
constexpr int64_t chunk_of_mask = 4096;

}  // namespace

void MetalBackend::masked_scatter(Encoder& encoder, const array& mask, const array& source,
                                  array& out) {
  const array dense = make_dense(encoder, mask);
  const auto size = static_cast<int64_t>(out.size()), chunks = divide_up(size, chunk_of_mask);
  if (size == 0) return;
  const MaskedScatter scatter{fit(size), source.size(), fit(chunks), is_aligned(dense, 16)};
  array counts(Shape{static_cast<ShapeElem>(chunks)}, uint64, nullptr, {});
  array before(counts.shape(), uint64, nullptr, {});
  encoder.allocate(counts);
  const uint32_t threads = grid_length(encoder, chunks, 256);
  Launch(encoder, "masked", "masked_counts")
      .with(dense, output(counts), scatter)
      .over(threads, 256);
  scan(encoder, {ScanOp::sum, 0, false, false}, counts, before);
  Launch(encoder, "masked", "masked_scatter_" + std::to_string(out.itemsize()))
      .with(dense, before, source, output(out), scatter)
      .errors({"[masked_scatter] the mask takes {} elements, the source has {}"})
      .over(threads, 256);
}

}  // namespace holdfast::kernels::metal
