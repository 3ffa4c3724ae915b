// Group: element-wise nodes that are encoded as one pass, while they are being collected.
#pragma once

#include <span>
#include <vector>

#include "exec/queue.h"
#include "graph/node.h"
#include "graph/op.h"

namespace holdfast {

namespace detail {
// Drops primitive, inputs and siblings of a node that was encoded by this thread.
void drop_graph(Node& node);
}  // namespace detail

class Group {
 public:
  static constexpr size_t max_steps = 32;
  static constexpr size_t max_inputs = 16;

  bool empty() const { return nodes_.empty(); }
  // Adds a claimed element-wise node. False when it does not fit what is there: other shape or
  // stream, or too much. An empty group takes every node.
  bool try_add(const array& node, bool fuse);
  // Is one of the node's inputs computed by the group?
  bool feeds(const detail::Node& node) const;
  std::span<const array> inputs() const { return inputs_; }
  Primitive& last_primitive() const { return *nodes_.back().node()->primitive; }

  // Encodes the pass. When it throws it can be encoded again.
  Event encode(exec::Queue& queue, std::span<const Event> waits, bool keep_graph);
  // What it writes, once it has been encoded.
  std::vector<array*> outputs();
  // Marks the nodes as evaluated, gives up the claims, and empties the group.
  void finish(const Event& event, bool keep_graph);
  // Gives up the claims and empties the group; the nodes stay unscheduled.
  std::vector<array> give_up() noexcept;

 private:
  uint16_t input_index(const array& input);
  void choose_outputs(bool keep_graph);
  uint32_t donatable_inputs(exec::Queue& queue) const;

  // Parallel lists: node k is computed by step k. Each node is claimed by this thread, and its
  // `step` is its index here.
  std::vector<array> nodes_;
  std::vector<FusedStep> steps_;
  std::vector<uint32_t> node_uses_;  // handles inside the group: inputs of later nodes
  std::vector<array> inputs_;
  std::vector<uint32_t> input_uses_;
};

}  // namespace holdfast
