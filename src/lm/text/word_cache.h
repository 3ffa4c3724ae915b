// The tokens of words that came before. Text has few words, many times each.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace holdfast::lm::tokenizing {

// Any thread may call it.
class WordCache {
 public:
  // Longer words come seldom, and would take the memory of many others.
  static constexpr size_t longest_word = 64;

  bool find(std::string_view word, std::vector<int32_t>& ids) {
    Shard& shard = shard_of(word);
    std::lock_guard lock(shard.mutex);
    auto found = shard.words.find(word);
    if (found == shard.words.end()) return false;
    ids.insert(ids.end(), found->second.begin(), found->second.end());
    return true;
  }

  void insert(std::string_view word, const int32_t* first, const int32_t* last) {
    Shard& shard = shard_of(word);
    std::lock_guard lock(shard.mutex);
    // A full shard starts again: what is frequent is soon back.
    if (shard.words.size() >= most_words) shard.words.clear();
    shard.words.try_emplace(std::string(word), first, last);
  }

 private:
  static constexpr size_t most_words = 4096;
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct Shard {
    std::mutex mutex;
    // Guarded by mutex.
    std::unordered_map<std::string, std::vector<int32_t>, Hash, std::equal_to<>> words;
  };

  Shard& shard_of(std::string_view word) { return shards_[(Hash()(word) >> 20) % shards_.size()]; }

  std::array<Shard, 16> shards_;
};

}  // namespace holdfast::lm::tokenizing
