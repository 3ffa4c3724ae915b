#include "graph/node.h"

#include <new>
#include <stdexcept>
#include <string>

#include "base/block_pool.h"
#include "devices/memory.h"
#include "exec/queue.h"

namespace holdfast::detail {

void* Node::operator new(size_t) { return BlockPool<sizeof(Node)>::take(); }

void Node::operator delete(void* memory) noexcept { BlockPool<sizeof(Node)>::give(memory); }

// --- life ---

Node::Node(Shape node_shape, Dtype node_dtype) : dtype(node_dtype), shape(std::move(node_shape)) {
  size = checked_size(shape, dtype);
}

Node::~Node() {
  if (!siblings) return;
  std::lock_guard guard(siblings->lock);
  if (siblings->members[position].node == this) siblings->members[position].node = nullptr;
}

void throw_moved_from() {
  throw std::invalid_argument("[array] expected an array, got one that was moved from");
}

// A chain of a million nodes dies one after the other, not one inside the other: the inputs of a
// dying node are taken out first, and those that die with it wait in a list.
void destroy_node(NodeCount* count) noexcept {
  static thread_local std::vector<array>* dying = nullptr;
  Node* node = static_cast<Node*>(count);
  if (dying) {
    // Called from below: leave the inputs to the loop that runs already.
    try {
      for (array& input : node->inputs) dying->push_back(std::move(input));
    } catch (...) {
      // No memory for the list: these few die recursively.
    }
    delete node;
    return;
  }
  if (node->inputs.empty()) {
    delete node;
    return;
  }
  std::vector<array> list = std::move(node->inputs);
  dying = &list;
  delete node;
  while (!list.empty()) {
    array last = std::move(list.back());
    list.pop_back();
  }
  dying = nullptr;
}

// --- shapes ---

size_t checked_size(const Shape& shape, const Dtype& dtype) {
  size_t size = 1;
  bool empty = false, overflow = false;
  for (ShapeElem dim : shape) {
    if (dim < 0) {
      std::string text;
      for (ShapeElem d : shape) text += (text.empty() ? "" : ",") + std::to_string(d);
      throw std::invalid_argument("[array] a shape must not have negative dimensions, got (" +
                                  text + ")");
    }
    if (dim == 0)
      empty = true;
    else
      overflow |= __builtin_mul_overflow(size, static_cast<size_t>(dim), &size);
  }
  // An op that trusted a made-up dtype would choose its kernel, or count bytes, by it.
  if (dtype_of(dtype.val()).size() != dtype.size()) {
    throw std::invalid_argument("[array] expected " + std::to_string(dtype_of(dtype.val()).size()) +
                                " bytes for an element of " + dtype_name(dtype.val()) + ", got " +
                                std::to_string(dtype.size()));
  }
  size_t bytes;
  overflow |= __builtin_mul_overflow(size, static_cast<size_t>(dtype.size()), &bytes);
  if (overflow || bytes > size_t{1} << 62) {
    throw std::overflow_error("[array] the shape has more elements than memory can hold");
  }
  return empty ? 0 : size;
}

void set_row_contiguous(Node& node) {
  size_t ndim = node.shape.size();
  node.strides = Strides(ndim);
  int64_t stride = 1;
  int long_dims = 0;
  for (size_t i = ndim; i-- > 0;) {
    node.strides[i] = stride;
    // Wraps around where an empty array has very large dimensions: its strides mean nothing.
    stride =
        static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(node.shape[i]));
    long_dims += node.shape[i] > 1;
  }
  node.data_size = node.size;
  node.offset = 0;
  node.flags = {true, true, long_dims <= 1 || node.size == 0};
}

bool is_donatable_by(const array& a, uint32_t users, exec::Queue* queue) {
  sync::yield_point();
  Node& node = *a.node();
  if (node.reference_count() != users) return false;
  if (node.data.use_count() != 1) return false;
  // What other queues still read must not be written; our own commands run in order.
  exec::Storage* storage = exec::buffer_of(node.data->buffer)->storage();
  if (!storage || storage->adopted) return false;
  if (queue && storage->space != &queue->device().memory) return false;
  bool is_idle = storage->is_idle(queue ? &queue->device_queue() : nullptr);
  if (!is_idle) return false;
  exec::layers::on_take_over(*exec::buffer_of(node.data->buffer));
  // A former owner may have read the bytes: its decrement must happen before our writes.
  // use_count() is a relaxed load, so touch the count itself.
  std::shared_ptr<array::Data> touch = node.data;
  return true;
}

}  // namespace holdfast::detail
