// What a primitive left in its outputs, before anything reads it.
#pragma once

#include <vector>

#include "devices/memory.h"
#include "graph/node.h"

namespace holdfast::detail {

// Throws std::logic_error that names the primitive, the output and the bytes. `given` is the list
// that the primitive was called with, `outputs` the arrays that were in it.
void check_all_outputs(const Primitive& primitive, const std::vector<array>& given,
                       const std::vector<array>& outputs);

// Does the array have row-major memory that is large enough, as nearly all outputs do?
inline bool is_plainly_in_memory(const array& a) {
  const Node& node = *a.node();
  if (!node.data || !node.flags.row_contiguous || node.offset < 0) return false;
  auto* buffer = static_cast<const exec::Buffer*>(node.data->buffer.ptr());
  return buffer &&
         static_cast<size_t>(node.offset) + node.size * node.dtype.size() <= buffer->size();
}

// The library's own primitives are asked no more than that, where it holds.
inline void check_outputs(const Primitive& primitive, const std::vector<array>& given,
                          const std::vector<array>& outputs) {
  bool is_known = primitive.traits().is_of_library;
  for (const array& output : outputs) is_known = is_known && is_plainly_in_memory(output);
  if (!is_known) [[unlikely]]
    check_all_outputs(primitive, given, outputs);
}

}  // namespace holdfast::detail
