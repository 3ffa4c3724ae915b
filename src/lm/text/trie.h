// Byte strings with a number each, found by walking along a text.
#pragma once

#include <cstdint>
#include <string_view>

#include "lm/text/flat_map.h"

namespace holdfast::lm::tokenizing {

class Trie {
 public:
  static constexpr int32_t none = -1;

  // The first value of a key stays.
  void insert(std::string_view key, int32_t value) {
    uint32_t node = 0;
    for (unsigned char byte : key) {
      uint32_t next = nodes_;
      if (edges_.insert(edge(node, byte), next)) ++nodes_;
      node = *edges_.find(edge(node, byte));
    }
    if (!key.empty()) {
      starts_[static_cast<unsigned char>(key[0])] = true;
      values_.insert(node, value);
    }
  }

  // Calls found(length, value) for each key that the text has at `position`, the shorter ones
  // first.
  template <typename Found>
  void walk(std::string_view text, size_t position, Found found) const {
    if (position >= text.size() || !starts_[static_cast<unsigned char>(text[position])]) return;
    uint32_t node = 0;
    for (size_t i = position; i < text.size(); ++i) {
      const uint32_t* next = edges_.find(edge(node, static_cast<unsigned char>(text[i])));
      if (!next) return;
      node = *next;
      if (const int32_t* value = values_.find(node)) found(i + 1 - position, *value);
    }
  }

  bool empty() const { return values_.size() == 0; }

 private:
  static uint64_t edge(uint32_t node, unsigned char byte) { return uint64_t(node) << 8 | byte; }

  FlatMap<uint32_t> edges_;
  FlatMap<int32_t> values_;  // by node
  uint32_t nodes_ = 1;
  bool starts_[256] = {};
};

}  // namespace holdfast::lm::tokenizing
