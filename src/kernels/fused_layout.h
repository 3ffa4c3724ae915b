// How a pass over a group of element-wise ops walks memory, on any device: the layouts of its
// inputs and outputs.
#pragma once

#include <cstdint>
#include <functional>

#include <holdfast/encoder.h>

#include "graph/node.h"
#include "graph/op.h"
#include "kernels/plan/layout.h"

namespace holdfast::kernels {

// One element, whatever the shape.
inline bool is_scalar(const array& a) {
  const detail::Node& node = *a.node();
  return node.size == 1 || node.data_size == 1;
}

// The layout that a pass walks memory in. Usually row-major; when all inputs share another gapless
// layout (a transpose, say), that one, and the outputs get it too.
struct FusedWalk {
  const array* like = nullptr;  // an input whose strides the outputs take; null: row-major

  explicit FusedWalk(const FusedGroup& group);
  // Do the elements follow each other in memory? Scalars do not count.
  bool is_in_order(const array& input, const Shape& shape) const;
  // Gives an output memory: that of an input in `donatable`, of which it is taken away then, where
  // `may_take(input)` allows it; else its own. Returns the input, or -1.
  int allocate(Encoder& encoder, const FusedGroup& group, array& output, uint32_t& donatable,
               const std::function<bool(size_t)>& may_take) const;

 private:
  bool can_take_over(const array& input, const array& output) const;
};

// Should an input with this layout in the pass be copied into order first, since it is read across
// its rows? The copy goes by tiles, where the pass would meet a line of memory for each element.
bool is_read_across(const array& a, const CollapsedLayout& layout);

}  // namespace holdfast::kernels
