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
    size_t i = first_slot(pointer);
    while (slots_[i]) {
      if (slots_[i] == pointer) return false;
      i = (i + 1) & mask;
    }
    slots_[i] = pointer;
    ++used_;
    return true;
  }
  // A number below slots() that belongs to the pointer until the next change; slots() when it is
  // not in the set.
  size_t slot_of(const void* pointer) const {
    if (used_ == 0) return slots();
    size_t mask = slots_.size() - 1;
    size_t i = first_slot(pointer);
    while (slots_[i] && slots_[i] != pointer) i = (i + 1) & mask;
    return slots_[i] ? i : slots();
  }
  size_t slots() const { return slots_.size(); }
  void clear() {
    if (used_ == 0) return;
    // A large graph once does not make every small one pay.
    if (slots_.size() > 64 * used_ + kept) slots_.resize(kept);
    std::fill(slots_.begin(), slots_.end(), nullptr);
    used_ = 0;
  }

 private:
  static constexpr size_t kept = 256;
  // The highest bits of the product: the only ones that spread addresses at equal distances.
  size_t first_slot(const void* pointer) const {
    uint64_t product = (reinterpret_cast<uintptr_t>(pointer) >> 4) * 0x9e3779b97f4a7c15ull;
    return static_cast<size_t>(static_cast<unsigned __int128>(product) * slots_.size() >> 64);
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
