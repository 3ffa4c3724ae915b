#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"
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
  const MaskedScatter scatter{static_cast<uint64_t>(size), source.size(),
                              static_cast<uint64_t>(chunks), is_aligned(dense, 16)};
  array counts = make_temporary(encoder, static_cast<size_t>(chunks) * sizeof(uint64_t));
  const uint32_t threads = grid_length(encoder, chunks, 256);
  Launch(encoder, "masked", "masked_counts")
      .input(dense)
      .output(counts)
      .value(scatter)
      .over(threads, 256);
  Launch(encoder, "masked", "masked_sums")
      .output(counts)
      .value(scatter)
      .errors({"[masked_scatter] the mask takes {} elements, the source has {}"})
      .over(256, 256);
  Launch(encoder, "masked", "masked_scatter_" + std::to_string(out.itemsize()))
      .input(dense)
      .input(counts)
      .input(source)
      .output(out)
      .value(scatter)
      .over(threads, 256);
}

}  // namespace holdfast::kernels::metal
