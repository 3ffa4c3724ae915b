#include <cmath>

#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/views.h"

namespace holdfast::kernels::metal {
namespace {

#include "kernels/metal/support/rope_parameters.h"

// base^(-2^k / pairs), for all bits k of the number of a pair.
SmallVector<double, 12> rope_powers(double base, int64_t pairs) {
  SmallVector<double, 12> powers;
  const double step = -std::log2(base) / static_cast<double>(pairs);
  for (int64_t bit = 1; bit == 1 || bit <= 2 * pairs; bit *= 2) {
    powers.push_back(std::exp2(step * static_cast<double>(bit)));
  }
  return powers;
}

// The heads of all dimensions between the first and the last two.
CollapsedLayout rope_heads(const array& x) {
  const size_t count = x.ndim() - 3;
  return collapse(span_of(x.shape()).subspan(1, count), span_of(x.strides()).subspan(1, count));
}

bool are_rope_blocks(const array& x, const RopeSettings& settings, int64_t per_block) {
  const int64_t half = settings.traditional ? settings.dims : settings.dims / 2;
  auto is_whole = [&](int64_t number) { return number % per_block == 0; };
  if (!is_aligned(x, 16) || x.strides(-1) != 1 || !is_whole(x.shape(-1)) || !is_whole(half))
    return false;
  for (size_t i = 0; i + 1 < x.ndim(); ++i) {
    if (!is_whole(x.strides(static_cast<int>(i)))) return false;
  }
  return true;
}

constexpr int64_t rope_threads = 1 << 18;  // more threads are not faster than fewer
constexpr int64_t most_rope_heads = 8;

}  // namespace

void MetalBackend::rope(Encoder& encoder, const RopeSettings& settings, const array& in,
                        const array* offsets, const array* frequencies, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  const CollapsedLayout heads = rope_heads(in);
  const int64_t per_block = 16 / static_cast<int64_t>(in.itemsize());
  const int64_t features = in.shape(-1), positions = in.shape(-2), pairs = settings.dims / 2;
  const int64_t pair_units = divide_up(pairs, per_block);
  const int64_t units = pair_units + divide_up(features - 2 * pairs, 2 * per_block);
  const int64_t threads_per_head = in.shape(0) * positions * units;
  const int64_t per_thread =
      std::clamp(threads_per_head * heads.size / rope_threads, int64_t{1}, most_rope_heads);
  const int64_t shares = divide_up(heads.size, per_thread);
  auto stride_of = [](const array* row) {
    return row != nullptr && row->size() > 1 ? row->strides(0) : 0;
  };
  const Rope rope{static_cast<double>(settings.scale),
                  settings.offset.value_or(0),
                  fit(threads_per_head * shares),
                  in.strides(0),
                  in.strides(-2),
                  in.strides(-1),
                  stride_of(offsets),
                  stride_of(frequencies),
                  fit(heads.size),
                  fit(positions),
                  fit(features),
                  fit(pairs),
                  fit(pair_units),
                  fit(per_thread),
                  heads.dimensions(),
                  settings.traditional,
                  are_rope_blocks(in, settings, per_block),
                  offsets != nullptr,
                  frequencies != nullptr};
  const Extent counts[] = {extent_of(units, 0), extent_of(positions, 0), extent_of(shares, 0)};
  // An argument that is not used is the input.
  Launch(encoder, "rope", std::string("rope_") + dtype_name(in.dtype().val()))
      .with(in, output(out), offsets != nullptr ? *offsets : in,
            frequencies != nullptr ? *frequencies : in, rope, counts, extents_of(heads),
            rope_powers(settings.base.value_or(1), std::max<int64_t>(pairs, 1)))
      .over(threads_per_head * shares);
}

}  // namespace holdfast::kernels::metal
