// The host's side of support/walk.h.
#pragma once

#include <initializer_list>
#include <vector>

#include "kernels/metal/launch.h"

namespace holdfast::kernels::metal {

// A part of a walk whose positions kernels can number: at most 2^31 - 1, from `first` on.
struct WalkPart {
  JointLayout layout;
  Dimensions bases;  // where its first position is in each view
  int64_t first = 0;
};
std::vector<WalkPart> parts_of(const JointLayout& layout, int64_t most = most_small_elements);

// Joins neighbours along the last dimension: elements of `item` bytes become units of up to 16
// bytes where every view allows it; sizes and strides count those then. Returns the bytes of a
// unit. `alignments` has one number for each view: what the address of its first element is a
// multiple of (alignment_of), or 0 for one that has to have a stride of 0 there and whose own
// elements stay what they are (indices).
int64_t join_units(JointLayout& layout, int64_t item, std::initializer_list<int64_t> alignments);

// The largest power of two, up to 16, of which the array's first element has a multiple as its
// address; also when multiples of `step` bytes are added to it (0: nothing is).
int64_t alignment_of(const array& a, int64_t step = 0);

// As in support/walk.h.
template <int views>
struct JointExtent {
  uint32_t size, multiplier, shift, unused;
  int64_t strides[views];
};
template <int views>
struct Walk {
  uint32_t size;
  int32_t dimensions;
  int64_t bases[views];
};

// The parameters of a kernel that walks a part: `constant Walk&` and `constant JointExtent*`.
template <int views>
class WalkParameters {
 public:
  explicit WalkParameters(const WalkPart& part)
      : walk_{static_cast<uint32_t>(part.layout.size), fit(part.layout.shape.size()), {}} {
    for (size_t v = 0; v < views; ++v) walk_.bases[v] = part.bases[v];
    for (size_t d = 0; d < part.layout.shape.size(); ++d) {
      const Extent size = extent_of(part.layout.shape[d], 0);
      JointExtent<views> extent{fit(size.size), size.multiplier, size.shift, 0, {}};
      for (size_t v = 0; v < views; ++v) extent.strides[v] = part.layout.strides[v][d];
      extents_.push_back(extent);
    }
  }
  // Until the launch is encoded, it refers to the parameters.
  void add_to(Launch& launch) const { launch.with(walk_, extents_); }

 private:
  Walk<views> walk_;
  SmallVector<JointExtent<views>, 6> extents_;
};

}  // namespace holdfast::kernels::metal
