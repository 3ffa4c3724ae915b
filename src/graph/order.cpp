#include "graph/order.h"

#include <algorithm>
#include <mutex>
#include <numeric>

#include <holdfast/primitive.h>

namespace holdfast::detail {

namespace {

bool is_pending(const Node& node) {
  uint8_t status = node.status.load(std::memory_order_acquire);
  return status == Node::unscheduled || status == Node::claimed;
}

}  // namespace

void Order::add(const std::vector<array>& outputs) {
  size_t roots = 0;
  for (const array& output : outputs) {
    size_t before = nodes_.size();
    add(output);
    roots += nodes_.size() > before;
  }
  if (roots > 1) arrange(outputs);
}

// Appends what `root` needs, depth first.
void Order::add(const array& root) {
  if (!is_pending(*root.node()) || !visited_.insert(root.node())) return;
  stack_.push_back({root, 0});
  while (!stack_.empty()) {
    Frame& frame = stack_.back();
    if (Node* child = next_child(frame)) {
      stack_.push_back({array(child), 0});
    } else {
      if (frame.is_claimed) claimed_elsewhere_.push_back(frame.node.node());
      nodes_.push_back(std::move(frame.node));
      stack_.pop_back();
    }
  }
}

// An input that has to be evaluated first, with a reference. A node that another thread claimed has
// its inputs encoded already, or will have when that thread is done with it.
Node* Order::next_child(Frame& frame) {
  Node& node = *frame.node.node();
  std::lock_guard guard(node.lock);
  uint8_t status = node.status.load(std::memory_order_relaxed);
  frame.is_claimed = status == Node::claimed;
  if (status != Node::unscheduled) return nullptr;
  while (frame.next < node.inputs.size()) {
    Node* input = node.inputs[frame.next++].node();
    if (!is_pending(*input) || !visited_.insert(input)) continue;
    input->references.fetch_add(1, std::memory_order_relaxed);
    return input;
  }
  return nullptr;
}

bool Order::take_claimed_elsewhere(const Node* node) {
  return !claimed_elsewhere_.empty() && std::erase(claimed_elsewhere_, node) > 0;
}

void Order::clear() noexcept {
  stack_.clear();
  nodes_.clear();
  arranged_.clear();
  claimed_elsewhere_.clear();
  visited_.clear();
}

// Sorts the nodes by the output that needs them first, when outputs are taken by their depth. Only
// what runs by itself counts as a step, so that element-wise ops that could become one pass stay
// neighbours. Within one output, and for outputs of one depth, the order stays.
void Order::arrange(const std::vector<array>& outputs) {
  size_t count = nodes_.size();
  constexpr uint32_t nowhere = UINT32_MAX;
  by_slot_.assign(visited_.slots() + 1, nowhere);
  for (size_t i = 0; i < count; ++i) {
    by_slot_[visited_.slot_of(nodes_[i].node())] = static_cast<uint32_t>(i);
  }
  auto place_of = [&](const array& a) { return by_slot_[visited_.slot_of(a.node())]; };

  edges_.clear();
  ends_.resize(count);
  depth_.assign(count, 0);
  for (size_t i = 0; i < count; ++i) {
    Node& node = *nodes_[i].node();
    std::lock_guard guard(node.lock);
    for (const array& input : node.inputs) {
      uint32_t place = place_of(input);
      if (place >= i) continue;  // nowhere: it is there already
      edges_.push_back(place);
      depth_[i] = std::max(depth_[i], depth_[place]);
    }
    ends_[i] = static_cast<uint32_t>(edges_.size());
    if (node.primitive) {
      const Primitive::Traits& traits = node.primitive->traits();
      depth_[i] += traits.elementwise < 0 && !traits.is_view;
    }
  }

  roots_.clear();
  for (const array& output : outputs) {
    if (uint32_t place = place_of(output); place != nowhere) roots_.push_back(place);
  }
  std::sort(roots_.begin(), roots_.end(), [&](uint32_t a, uint32_t b) {
    return depth_[a] != depth_[b] ? depth_[a] < depth_[b] : a < b;
  });
  rank_.assign(count, UINT32_MAX);
  for (size_t r = 0; r < roots_.size(); ++r) {
    rank_[roots_[r]] = std::min(rank_[roots_[r]], static_cast<uint32_t>(r));
  }
  for (size_t i = count; i-- > 0;) {
    for (size_t e = i == 0 ? 0 : ends_[i - 1]; e < ends_[i]; ++e) {
      rank_[edges_[e]] = std::min(rank_[edges_[e]], rank_[i]);
    }
  }

  places_.resize(count);
  std::iota(places_.begin(), places_.end(), 0);
  std::sort(places_.begin(), places_.end(), [&](uint32_t a, uint32_t b) {
    return rank_[a] != rank_[b] ? rank_[a] < rank_[b] : a < b;
  });
  for (uint32_t place : places_) arranged_.push_back(std::move(nodes_[place]));
  nodes_.swap(arranged_);
  arranged_.clear();
}

}  // namespace holdfast::detail
