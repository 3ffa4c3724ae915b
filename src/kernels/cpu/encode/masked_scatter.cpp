#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::cpu {

namespace {

constexpr int64_t mask_chunk = 1 << 14;

// Calls f with an integer type as wide as an element.
template <typename F>
void dispatch_item_size(size_t item, F&& f) {
  switch (item) {
    case 1:
      return f(std::type_identity<uint8_t>{});
    case 2:
      return f(std::type_identity<uint16_t>{});
    case 4:
      return f(std::type_identity<uint32_t>{});
    default:
      return f(std::type_identity<uint64_t>{});
  }
}

}  // namespace

void CpuBackend::masked_scatter(Encoder& encoder, const array& mask, const array& source,
                                array& out) {
  const auto size = static_cast<int64_t>(out.size());
  const int64_t chunks = divide_up(size, mask_chunk);
  const CollapsedLayout layout = collapse(span_of(mask.shape()), span_of(mask.strides()));
  array counts = make_temporary(encoder, static_cast<size_t>(chunks) * sizeof(int64_t));
  // How many each chunk takes; then how many were taken before each; then the chunks.
  Bound holds = encoder.input(mask), before = encoder.output(counts);
  encoder.native(encoder.op(), chunks, size,
                 [=](const NativeContext& context, int64_t begin, int64_t end) {
                   alignas(64) bool block[mask_chunk];
                   for (int64_t chunk = begin; chunk < end; ++chunk) {
                     const int64_t first = chunk * mask_chunk;
                     const int64_t last = std::min(size, first + mask_chunk);
                     gather_range(context.data(holds), layout, 1, first, last, block);
                     context.data<int64_t>(before)[chunk] =
                         std::accumulate(block, block + (last - first), int64_t{0});
                   }
                 });
  const auto available = static_cast<int64_t>(source.size());
  encoder.input(counts);
  before = encoder.output(counts);
  encoder.native(encoder.op(), 1, chunks * static_cast<int64_t>(sizeof(int64_t)),
                 [=](const NativeContext& context, int64_t, int64_t) {
                   auto* taken = context.data<int64_t>(before);
                   int64_t total = 0;
                   for (int64_t chunk = 0; chunk < chunks; ++chunk)
                     total += std::exchange(taken[chunk], total);
                   if (total > available) {
                     throw std::runtime_error(text("[masked_scatter] the mask takes ", total,
                                                   " elements, the source has ", available));
                   }
                 });
  holds = encoder.input(mask);
  before = encoder.input(counts);
  const Bound from = encoder.input(source);
  encoder.input(out);
  const Bound target = encoder.output(out);
  dispatch_item_size(out.itemsize(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    encoder.native(encoder.op(), chunks, size * static_cast<int64_t>(sizeof(T)) * 2,
                   [=](const NativeContext& context, int64_t begin, int64_t end) {
                     const int64_t* taken = context.data<int64_t>(before);
                     T* to = context.data<T>(target);
                     alignas(64) bool block[mask_chunk];
                     for (int64_t chunk = begin; chunk < end; ++chunk) {
                       const int64_t first = chunk * mask_chunk;
                       const int64_t last = std::min(size, first + mask_chunk);
                       gather_range(context.data(holds), layout, 1, first, last, block);
                       const T* next = context.data<T>(from) + taken[chunk];
                       for (int64_t i = first; i < last; ++i) {
                         if (block[i - first]) to[i] = *next++;
                       }
                     }
                   });
  });
}

}  // namespace holdfast::kernels::cpu
