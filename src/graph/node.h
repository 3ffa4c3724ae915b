// Node: what an array refers to.
//
// Shape, size, dtype are fixed when the node is built. `primitive`, `inputs` and `siblings` are
// dropped when the node has been encoded: until then they are guarded by `lock` against other
// threads that evaluate the same graph, and belong to the thread that claimed the node. `data`,
// `strides`, `flags`, `data_size`, `offset` and `event` are written by that thread before `status`
// becomes evaluated.
#pragma once

#include <memory>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/primitive.h>

#include "base/ref.h"
#include "base/sync.h"

namespace holdfast::detail {

// How the outputs of one primitive find each other. It owns none of them: a sibling that was
// dropped is made anew from its shape and dtype when it is needed.
struct SiblingGroup : RefCounted {
  struct Member {
    Node* node;  // null when it was dropped; guarded by `lock`
    Shape shape;
    Dtype dtype;
  };
  sync::Atomic<uint8_t> status{0};  // Node::State, of the primitive: claiming it claims all outputs
  sync::SpinLock lock;
  std::vector<Member> members;
};

struct Node : NodeCount {
  // As array::Status, and `claimed`: some thread is encoding the node.
  enum State : uint8_t { unscheduled, evaluated, available, claimed };

  Node(Shape node_shape, Dtype node_dtype);
  ~Node();
  static void* operator new(size_t size);
  static void operator delete(void* memory) noexcept;

  sync::Atomic<uint8_t> status{unscheduled};
  sync::SpinLock lock;
  Dtype dtype;
  array::Flags flags{};
  // The depth of the innermost trace that the node depends on (tracing_depth()), 0: none.
  uint16_t tracer = 0;
  uint16_t position = 0;  // among the siblings
  uint8_t step = 0;       // in the fused group of the thread that claimed it
  size_t size = 0;
  size_t data_size = 0;
  int64_t offset = 0;  // bytes
  Shape shape;
  Strides strides;
  std::shared_ptr<Primitive> primitive;
  std::vector<array> inputs;
  Ref<SiblingGroup> siblings;
  std::shared_ptr<array::Data> data;
  Event event;

  // Takes a reference unless the last one is gone.
  bool retain_unless_gone() {
    uint32_t count = references.load(std::memory_order_relaxed);
    while (count != 0) {
      if (references.compare_exchange_weak(count, count + 1)) return true;
    }
    return false;
  }
  uint32_t reference_count() const { return references.load(std::memory_order_acquire); }
};
static_assert(std::is_base_of_v<NodeCount, Node>);

// Row-major strides and the flags that go with them.
void set_row_contiguous(Node& node);
// Size of a shape; std::invalid_argument on a negative dimension, std::overflow_error beyond 2^62
// bytes. Dimensions of 0 are left out of that count: no stride of an empty array overflows either.
size_t checked_size(const Shape& shape, const Dtype& dtype);
// True when `users` handles and no other hold the array's node, nobody else holds its data, and no
// queue but `queue` still uses its memory.
bool is_donatable_by(const array& a, uint32_t users, exec::Queue* queue);

}  // namespace holdfast::detail
