// A set of pointers that is cheap to fill and to clear.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace holdfast {

class VisitedSet {
 public:
  // False when the pointer was there already.
  bool insert(const void* pointer) {
    if ((used_ + 1) * 2 > slots_.size()) grow();
    size_t mask = slots_.size() - 1;
    size_t i = hash(pointer) & mask;
    while (slots_[i]) {
      if (slots_[i] == pointer) return false;
      i = (i + 1) & mask;
    }
    slots_[i] = pointer;
    ++used_;
    return true;
  }
  void clear() {
    if (used_ == 0) return;
    // A large graph once does not make every small one pay.
    if (slots_.size() > 64 * used_ + kept) slots_.resize(kept);
    std::fill(slots_.begin(), slots_.end(), nullptr);
    used_ = 0;
  }

 private:
  static constexpr size_t kept = 256;
  static size_t hash(const void* pointer) {
    return (reinterpret_cast<uintptr_t>(pointer) >> 5) * 0x9e3779b97f4a7c15ull >> 24;
  }
  void grow() {
    std::vector<const void*> old(std::max(kept, slots_.size() * 4));
    std::swap(old, slots_);
    used_ = 0;
    for (const void* pointer : old) {
      if (pointer) insert(pointer);
    }
  }

  std::vector<const void*> slots_;
  size_t used_ = 0;
};

}  // namespace holdfast
