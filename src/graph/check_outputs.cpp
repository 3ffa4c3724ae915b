#include "graph/check_outputs.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include <holdfast/utils.h>

namespace holdfast::detail {
namespace {

template <typename... T>
[[noreturn]] void fail(const Primitive& primitive, const T&... what) {
  std::ostringstream message;
  message << "[" << primitive.name() << "] ";
  (message << ... << what);
  throw std::logic_error(message.str());
}

// The list may have been cleared, lengthened, or given other arrays, and its arrays moved from.
void check_list(const Primitive& primitive, const std::vector<array>& given,
                const std::vector<array>& outputs) {
  if (&given == &outputs) return;
  if (given.size() != outputs.size()) {
    fail(primitive, "expected its list of ", outputs.size(), " outputs to be filled, got one of ",
         given.size(), "; outputs are neither added nor removed");
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    // Not id(), which throws for an array that was moved from.
    bool is_same = false;
    try {
      is_same = given[i].node() == outputs[i].node();
    } catch (const std::invalid_argument&) {
    }
    if (!is_same) {
      fail(primitive, "expected output ", i,
           " to be filled, got another array in its place; use copy_shared_buffer to pass one on");
    }
  }
}

// The bytes of its buffer, from the array's first element, that its strides reach.
struct Reach {
  int64_t first = 0, end = 0;
  bool overflows = false;
};

Reach reach_of(const Node& node) {
  int64_t item = node.dtype.size(), low = 0, high = 0;
  Reach reach;
  for (size_t i = 0; i < node.shape.size(); ++i) {
    int64_t span;
    reach.overflows |= __builtin_mul_overflow(int64_t{node.shape[i]} - 1, node.strides[i], &span) ||
                       __builtin_mul_overflow(span, item, &span) ||
                       __builtin_add_overflow(span < 0 ? low : high, span, span < 0 ? &low : &high);
  }
  reach.overflows |= __builtin_add_overflow(node.offset, low, &reach.first) ||
                     __builtin_add_overflow(node.offset, high, &reach.end) ||
                     __builtin_add_overflow(reach.end, item, &reach.end);
  return reach;
}

bool is_row_major(const Node& node) {
  int64_t stride = 1;
  for (size_t i = node.shape.size(); i-- > 0;) {
    if (node.shape[i] != 1 && node.strides[i] != stride) return false;
    stride *= node.shape[i];
  }
  return true;
}

bool is_column_major(const Node& node) {
  int64_t stride = 1;
  for (size_t i = 0; i < node.shape.size(); ++i) {
    if (node.shape[i] != 1 && node.strides[i] != stride) return false;
    stride *= node.shape[i];
  }
  return true;
}

// Kernels choose how they walk an array by its flags.
void check_flags(const Primitive& primitive, size_t index, const array& output) {
  if (primitive.traits().is_of_library) return;
  const Node& node = *output.node();
  auto check = [&](bool is_set, bool is_true, const char* flag, const char* order) {
    if (!is_set || (is_true && node.data_size == node.size)) return;
    fail(primitive, "expected ", node.size, " elements in ", order, "-major order for output ",
         index, ", ", output.shape(), " of ", output.dtype(), ", whose flags say ", flag, ", got ",
         node.data_size, " with strides ", output.strides());
  };
  check(node.flags.row_contiguous, is_row_major(node), "row_contiguous", "row");
  check(node.flags.col_contiguous, is_column_major(node), "col_contiguous", "column");
}

void check_memory(const Primitive& primitive, size_t index, const array& output) {
  const Node& node = *output.node();
  if (!node.data) {
    fail(primitive, "did not give its output any data (set_data, copy_shared_buffer): output ",
         index, ", ", output.shape(), " of ", output.dtype());
  }
  if (node.size == 0) return;
  if (node.strides.size() != node.shape.size()) {
    fail(primitive, "expected ", node.shape.size(), " strides for output ", index, ", got ",
         node.strides.size());
  }
  auto* buffer = static_cast<const exec::Buffer*>(node.data->buffer.ptr());
  const size_t bytes = buffer ? buffer->size() : 0;
  Reach reach = reach_of(node);
  if (node.flags.contiguous) {
    int64_t dense;
    reach.overflows |= __builtin_mul_overflow(static_cast<int64_t>(node.data_size),
                                              int64_t{node.dtype.size()}, &dense) ||
                       __builtin_add_overflow(node.offset, dense, &dense);
    if (!reach.overflows) reach.end = std::max(reach.end, dense);
  }
  if (reach.overflows || reach.first < 0 || static_cast<uint64_t>(reach.end) > bytes) {
    std::ostringstream needed;
    if (reach.overflows)
      needed << "more bytes than there are";
    else
      needed << "bytes " << reach.first << " to " << reach.end;
    fail(primitive, "expected ", needed.str(), " of memory for output ", index, ", ",
         output.shape(), " of ", output.dtype(), " with strides ", output.strides(), " at byte ",
         node.offset, ", got ", bytes, " bytes");
  }
  check_flags(primitive, index, output);
}

}  // namespace

void check_all_outputs(const Primitive& primitive, const std::vector<array>& given,
                       const std::vector<array>& outputs) {
  check_list(primitive, given, outputs);
  for (size_t i = 0; i < outputs.size(); ++i) check_memory(primitive, i, outputs[i]);
}

}  // namespace holdfast::detail
