#include "kernels/cpu/index_offsets.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/cpu/simd/target_table.h"

HOLDFAST_SIMD_TABLE(IndexKernels, index_kernels)

namespace holdfast::kernels::cpu {
namespace {

int64_t value_at(Dtype::Val type, const void* values, int64_t offset) {
  return dispatch_dtype(type, [&](auto tag) -> int64_t {
    using Index = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<Index>) {
      Index value = static_cast<const Index*>(values)[offset];
      auto index = static_cast<int64_t>(value);
      return std::is_unsigned_v<Index> && index < 0 ? std::numeric_limits<int64_t>::max() : index;
    } else {
      return 0;
    }
  });
}

template <typename Word>
void gather_words(const void* base, const int64_t* offsets, int64_t count, void* to) {
  for (int64_t i = 0; i < count; ++i) {
    static_cast<Word*>(to)[i] = static_cast<const Word*>(base)[offsets[i]];
  }
}

}  // namespace

IndexView IndexView::from_zero(Dtype::Val type, CollapsedLayout indices) {
  Dimensions zeros(indices.shape.size(), 0);
  return {type, std::move(indices), std::move(zeros)};
}

IndexStatus IndexView::offsets(const void* values, int64_t begin, int64_t end,
                               const IndexedAxis& axis, int64_t* offsets) const {
  auto item = static_cast<int64_t>(item_size(type));
  bool single = indices.strides.empty();
  int64_t step = single ? 0 : indices.strides.back(), slope = single ? 0 : origins.back();
  Odometer at(indices, begin), origin(indices.shape, origins, begin);
  for (int64_t i = begin; i < end;) {
    int64_t count = std::min(at.run(), end - i);
    const char* from = static_cast<const char*>(values) + at.offset() * item;
    int64_t good = simd::index_kernels().offsets(type, from, step, count, axis, origin.offset(),
                                                 slope, offsets + (i - begin));
    if (good < count) {
      return {false, value_at(type, values, at.offset() + good * step), i + good, 0};
    }
    at.advance(count);
    origin.advance(count);
    i += count;
  }
  return {};
}

void gather_elements(size_t itemsize, const void* base, const int64_t* offsets, int64_t count,
                     void* to) {
  switch (itemsize) {
    case 1:
      return gather_words<uint8_t>(base, offsets, count, to);
    case 2:
      return gather_words<uint16_t>(base, offsets, count, to);
    case 4:
      return gather_words<uint32_t>(base, offsets, count, to);
    default:
      return gather_words<uint64_t>(base, offsets, count, to);
  }
}

}  // namespace holdfast::kernels::cpu
