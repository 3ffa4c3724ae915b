#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"

namespace holdfast::kernels::metal {
namespace {

// As in random.metal.
struct RandomBits {
  uint64_t bytes, words, pairs;
  int64_t key_stride;
};

}  // namespace

void MetalBackend::random_bits(Encoder& encoder, const array& key, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  const uint64_t bytes = out.nbytes(), words = (bytes + 3) / 4, pairs = (words + 1) / 2;
  const RandomBits bits{bytes, words, pairs, key.strides(-1)};
  constexpr int64_t per_group = 4 * 256;
  Launch(encoder, "random", "random_bits")
      .with(key, output(out), bits)
      .over(divide_up(static_cast<int64_t>(pairs), per_group) * 256);
}

}  // namespace holdfast::kernels::metal
