#include "transforms/tape.h"

#include <algorithm>
#include <limits>

#include "graph/node.h"
#include "ops/views.h"

namespace holdfast::detail {

Tape::Tape(const std::vector<array>& from, const std::vector<array>& to, Follow follow)
    : follow_(follow), depth_(std::numeric_limits<int>::max()) {
  for (const array& a : from) {
    if (follow_ == Follow::gradients && !issubdtype(a.dtype(), inexact)) continue;
    depth_ = std::min<int>(depth_, a.node()->tracer);
    seen_.insert(a.id());
    dependent_.insert(a.id());
  }
  for (const array& a : to) visit(a);
}

// A node depends on a tracer only if its depth says so.
bool Tape::is_followed(const array& a) const {
  if (a.node()->tracer < depth_ || !a.has_primitive()) return false;
  if (follow_ == Follow::all) return true;
  return issubdtype(a.dtype(), inexact) &&
         dynamic_cast<const StopGradient*>(&a.primitive()) == nullptr;
}

void Tape::visit(const array& root) {
  struct Frame {
    array node;
    size_t next;
  };
  std::vector<Frame> stack;
  auto enter = [&](const array& a) {
    if (is_followed(a) && seen_.insert(a.id()).second) stack.push_back({a, 0});
  };
  enter(root);
  while (!stack.empty()) {
    Frame& frame = stack.back();
    const std::vector<array>& inputs = frame.node.inputs();
    if (frame.next < inputs.size()) {
      enter(inputs[frame.next++]);
      continue;
    }
    array node = std::move(frame.node);
    stack.pop_back();
    const std::vector<array>& needed = node.inputs();
    if (std::none_of(needed.begin(), needed.end(), [&](const array& a) { return depends(a); })) {
      continue;
    }
    dependent_.insert(node.id());
    const void* siblings = node.node()->siblings.get();
    if (siblings == nullptr || seen_siblings_.insert(siblings).second) calls_.push_back(node);
  }
}

}  // namespace holdfast::detail
