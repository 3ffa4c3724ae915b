#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"

namespace holdfast::kernels::metal {
namespace {

// As in creation.metal.
struct Range {
  double start, step;
  uint64_t size;
};

int64_t blocks_of(const array& out) { return divide_up(static_cast<int64_t>(out.nbytes()), 16); }

}  // namespace

void MetalBackend::fill(Encoder& encoder, const array& value, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  const uint64_t size = out.size();
  Launch(encoder, "creation", "fill_" + std::to_string(out.itemsize()))
      .with(value, output(out), size)
      .over(blocks_of(out));
}

void MetalBackend::arange(Encoder& encoder, double start, double step, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  const Range range{start, step, out.size()};
  Launch(encoder, "creation", std::string("arange_") + dtype_name(out.dtype().val()))
      .with(output(out), range)
      .over(blocks_of(out));
}

}  // namespace holdfast::kernels::metal
