// A hash table from 64-bit keys to small values in one block of memory: built once, then only read.
// The tables of a tokenizer (pairs of tokens, edges of a trie) have up to a million entries and are
// asked several times for each byte of a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace holdfast::lm::tokenizing {

template <typename Value>
class FlatMap {
 public:
  // The first value of a key stays. Returns whether this was the first.
  bool insert(uint64_t key, Value value) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[find_slot(key)];
    if (slot.used) return false;
    slot = {key, value, true};
    ++size_;
    return true;
  }

  const Value* find(uint64_t key) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[find_slot(key)];
    return slot.used ? &slot.value : nullptr;
  }

  size_t size() const { return size_; }

 private:
  struct Slot {
    uint64_t key = 0;
    Value value{};
    bool used = false;
  };

  size_t find_slot(uint64_t key) const {
    uint64_t hash = key * 0x9e3779b97f4a7c15u;
    size_t mask = slots_.size() - 1, i = (hash ^ (hash >> 32)) & mask;
    while (slots_[i].used && slots_[i].key != key) i = (i + 1) & mask;
    return i;
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.used) slots_[find_slot(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two of them, at most half of them used
  size_t size_ = 0;
};

}  // namespace holdfast::lm::tokenizing
