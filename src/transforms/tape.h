// What stands between two sets of arrays of a graph.
#pragma once

#include <unordered_set>
#include <vector>

#include <holdfast/array.h>

namespace holdfast::detail {

// The calls of primitives by which `to` was computed from `from`, inputs first. `from` are tracers,
// or were computed from tracers: nodes of outer traces are not looked at.
class Tape {
 public:
  enum class Follow {
    all,
    // Not through stop_gradient, nor through integers and bool: nothing is differentiated there.
    gradients
  };
  Tape(const std::vector<array>& from, const std::vector<array>& to, Follow follow);

  // One output of each call.
  const std::vector<array>& calls() const { return calls_; }
  bool depends(const array& a) const { return dependent_.contains(a.id()); }

 private:
  void visit(const array& root);
  bool is_followed(const array& a) const;

  Follow follow_;
  int depth_;
  std::vector<array> calls_;
  std::unordered_set<std::uintptr_t> seen_, dependent_;
  std::unordered_set<const void*> seen_siblings_;
};

}  // namespace holdfast::detail
