#include "graph/group.h"

#include <holdfast/tracing.h>
#include "exec/layers/capture/recording.h"
#include "graph/claim.h"
#include "graph/copies.h"
#include "graph/encoder_scope.h"
#include "graph/eval_errors.h"
#include "graph/op_note.h"

namespace holdfast {

using detail::Node;

namespace detail {

void drop_graph(Node& node) {
  // Claimed until now, and evaluated: no other thread looks at these any more.
  node.inputs.clear();
  node.primitive.reset();
  if (Ref<SiblingGroup> group = std::move(node.siblings)) {
    std::lock_guard guard(group->lock);
    if (group->members[node.position].node == &node) group->members[node.position].node = nullptr;
  }
  node.position = 0;
}

}  // namespace detail

namespace {

// An input that is claimed is one of ours: everything else a node needs has been encoded before it.
bool is_in_group(const Node& input) {
  return input.status.load(std::memory_order_relaxed) == Node::claimed;
}

}  // namespace

bool Group::feeds(const Node& node) const {
  for (const array& input : node.inputs) {
    if (is_in_group(*input.node())) return true;
  }
  return false;
}

uint16_t Group::input_index(const array& input) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].id() == input.id()) {
      ++input_uses_[i];
      return static_cast<uint16_t>(i);
    }
  }
  inputs_.push_back(input);
  input_uses_.push_back(1);
  return static_cast<uint16_t>(inputs_.size() - 1);
}

bool Group::try_add(const array& node, bool fuse) {
  Node& n = *node.node();
  if (!nodes_.empty()) {
    const Node& first = *nodes_.front().node();
    if (!fuse || nodes_.size() == max_steps || inputs_.size() + n.inputs.size() > max_inputs ||
        first.shape != n.shape || first.primitive->stream() != n.primitive->stream()) {
      return false;
    }
    // A smaller result of the group cannot be broadcast inside it.
    for (const array& input : n.inputs) {
      if (is_in_group(*input.node()) && input.shape() != n.shape) return false;
    }
  }
  nodes_.reserve(nodes_.size() + 1);
  steps_.reserve(steps_.size() + 1);
  node_uses_.reserve(node_uses_.size() + 1);
  FusedStep step{n.primitive->traits().elementwise,
                 static_cast<uint8_t>(n.inputs.size()),
                 {},
                 n.dtype,
                 n.inputs.back().dtype(),
                 nullptr};
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    const array& input = n.inputs[i];
    if (is_in_group(*input.node())) {
      uint8_t producer = input.node()->step;
      ++node_uses_[producer];
      step.values[i] = FusedStep::result + producer;
    } else {
      step.values[i] = input_index(input);
    }
  }
  n.step = static_cast<uint8_t>(nodes_.size());
  nodes_.push_back(node);
  steps_.push_back(step);
  node_uses_.push_back(0);
  return true;
}

// A result that only the group itself refers to is not written to memory.
void Group::choose_outputs(bool keep_graph) {
  bool tracing = detail::in_tracing();
  for (size_t k = 0; k < nodes_.size(); ++k) {
    Node& n = *nodes_[k].node();
    sync::yield_point();
    bool is_held = n.reference_count() > node_uses_[k] + 1;
    bool needed = is_held || keep_graph || (n.tracer && tracing);
    steps_[k].output = needed ? &nodes_[k] : nullptr;
  }
  // Whoever evaluates wants the last one, even if a race made it look unused.
  steps_.back().output = &nodes_.back();
}

uint32_t Group::donatable_inputs(exec::Queue& queue) const {
  uint32_t donatable = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].data_shared_ptr() &&
        detail::is_donatable_by(inputs_[i], input_uses_[i] + 1, &queue)) {
      donatable |= 1u << i;
    }
  }
  return donatable;
}

Event Group::encode(exec::Queue& queue, std::span<const Event> waits, bool keep_graph) {
  choose_outputs(keep_graph);
  // Who keeps a node keeps its inputs.
  bool keeps_inputs = keep_graph;
  if (detail::in_tracing()) {
    for (const array& node : nodes_) keeps_inputs |= node.node()->tracer > 0;
  }
  uint32_t donatable = keeps_inputs ? 0 : donatable_inputs(queue);
  Primitive& last = last_primitive();
  exec::Queue::Transaction transaction(queue, last.name(), last.label(), waits);
  EncoderScope scope(queue, true);
  std::optional<OpNoteWriter> note;
  if (exec::capture::wants_notes()) {
    detail::bring_inputs(queue, inputs_);
    note.emplace(transaction, inputs_);
  }
  FusedGroup group{&nodes_.front().shape(), inputs_, donatable, steps_};
  static_cast<FusableOp&>(last).encode_group(scope.encoder, group);
  if (note) transaction.describe(note->group(nodes_, steps_));
  return transaction.commit();
}

std::vector<array*> Group::outputs() {
  std::vector<array*> outputs;
  for (const FusedStep& step : steps_) {
    if (step.output) outputs.push_back(step.output);
  }
  return outputs;
}

void Group::finish(const Event& event, bool keep_graph) {
  bool tracing = detail::in_tracing();
  for (size_t k = 0; k < nodes_.size(); ++k) {
    Node& n = *nodes_[k].node();
    if (!steps_[k].output) {
      detail::give_up_claim(n, Node::unscheduled);
      continue;
    }
    n.event = event;
    detail::give_up_claim(n, event.valid() ? Node::evaluated : Node::available);
  }
  // From the end: each node dies with its last user, and nothing is destroyed recursively.
  inputs_.clear();
  input_uses_.clear();
  while (!nodes_.empty()) {
    array node = std::move(nodes_.back());
    Node& n = *node.node();
    if (steps_[nodes_.size() - 1].output && !keep_graph && !(n.tracer && tracing))
      detail::drop_graph(n);
    nodes_.pop_back();
  }
  steps_.clear();
  node_uses_.clear();
}

std::vector<array> Group::give_up() noexcept {
  std::vector<array> nodes = std::move(nodes_);
  nodes_.clear();
  for (array& node : nodes) {
    node.node()->data.reset();
    detail::give_up_claim(*node.node(), Node::unscheduled);
  }
  steps_.clear();
  node_uses_.clear();
  inputs_.clear();
  input_uses_.clear();
  return nodes;
}

}  // namespace holdfast
