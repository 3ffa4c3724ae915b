// The order in which a graph is encoded.
#pragma once

#include <cstdint>
#include <vector>

#include <holdfast/array.h>

#include "graph/node.h"
#include "graph/visited.h"

namespace holdfast::detail {

// What some arrays need, inputs before what uses them. One object serves many evaluations, for its
// memory.
//
// Outputs that are fewer steps away come first, whatever order they were given in: the gradients of
// a network's last layer before those of its first. So what is kept for an output is let go before
// more is computed for the next.
class Order {
 public:
  void add(const std::vector<array>& outputs);
  std::vector<array>& nodes() { return nodes_; }
  // True the first time, for a node that another thread had claimed when it was ordered: its inputs
  // were not looked at.
  bool take_claimed_elsewhere(const Node* node);
  void clear() noexcept;

 private:
  struct Frame {
    array node;
    size_t next;
    bool is_claimed = false;  // by another thread
  };
  void add(const array& root);
  Node* next_child(Frame& frame);
  void arrange(const std::vector<array>& outputs);

  std::vector<Frame> stack_;
  std::vector<array> nodes_;
  std::vector<const Node*> claimed_elsewhere_;
  VisitedSet visited_;

  // For arrange(), by the places of nodes.
  std::vector<uint32_t> by_slot_, edges_, ends_, depth_, roots_, rank_, places_;
  std::vector<array> arranged_;
};

}  // namespace holdfast::detail
