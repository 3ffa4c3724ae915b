#include "kernels/metal/walk.h"

#include <algorithm>

namespace holdfast::kernels::metal {
namespace {

void add_parts(const WalkPart& whole, int64_t most, std::vector<WalkPart>& parts) {
  const JointLayout& layout = whole.layout;
  if (layout.size <= most) {
    parts.push_back(whole);
    return;
  }
  const int64_t outer = layout.shape[0], inner = layout.size / outer;
  // Where one position of the outer dimension is too many, the part has that dimension no more.
  const int64_t count = std::max<int64_t>(1, most / inner);
  for (int64_t begin = 0; begin < outer; begin += count) {
    WalkPart part = whole;
    part.first += begin * inner;
    for (size_t v = 0; v < part.bases.size(); ++v) part.bases[v] += begin * layout.strides[v][0];
    part.layout.shape[0] = std::min(count, outer - begin);
    part.layout.size = part.layout.shape[0] * inner;
    if (part.layout.shape[0] == 1) {
      part.layout.shape.erase(part.layout.shape.begin());
      for (Dimensions& strides : part.layout.strides) strides.erase(strides.begin());
    }
    add_parts(part, most, parts);
  }
}

}  // namespace

std::vector<WalkPart> parts_of(const JointLayout& layout, int64_t most) {
  std::vector<WalkPart> parts;
  WalkPart whole{layout, {}, 0};
  for (size_t v = 0; v < layout.strides.size(); ++v) whole.bases.push_back(0);
  if (layout.size > 0) add_parts(whole, most, parts);
  return parts;
}

int64_t join_units(JointLayout& layout, int64_t item, std::initializer_list<int64_t> alignments) {
  if (layout.shape.empty()) return item;
  const size_t last = layout.shape.size() - 1;
  auto is_even = [](int64_t number) { return number % 2 == 0; };
  int64_t unit = item;
  auto may_join = [&] {
    if (unit >= 16 || !is_even(layout.shape[last])) return false;
    size_t view = 0;
    for (int64_t alignment : alignments) {
      const Dimensions& strides = layout.strides[view++];
      if (alignment == 0 ? strides[last] != 0
                         : strides[last] != 1 || alignment % (2 * unit) != 0 ||
                               !std::all_of(strides.begin(), strides.end() - 1, is_even))
        return false;
    }
    return true;
  };
  while (may_join()) {
    unit *= 2;
    layout.size /= 2;
    layout.shape[last] /= 2;
    size_t view = 0;
    for (int64_t alignment : alignments) {
      Dimensions& strides = layout.strides[view++];
      for (size_t d = 0; alignment > 0 && d < last; ++d) strides[d] /= 2;
    }
  }
  // Numbers are not divided by 1 (Extent).
  if (layout.shape[last] == 1) {
    layout.shape.pop_back();
    for (Dimensions& strides : layout.strides) strides.pop_back();
  }
  return unit;
}

int64_t alignment_of(const array& a, int64_t step) {
  int64_t alignment = 16;
  while ((a.offset() | step) % alignment != 0) alignment /= 2;
  return alignment;
}

}  // namespace holdfast::kernels::metal
