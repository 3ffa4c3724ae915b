// Who has which block of the cache. Used by the engine's thread alone.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

namespace holdfast::lm::engine {

// Blocks are free, held by sequences (any number of them), or kept: held by none, but full of what
// a later sequence may begin with. Kept blocks are given away when there is no free one, those
// first that were not used for longest.
//
// A full block is known by its tokens and by the chain of blocks before it; a chain has a number, 0
// is that of the empty one.
class Blocks {
 public:
  Blocks(int count, int block_size);

  int count() const { return static_cast<int>(holders_.size()); }
  int free() const { return static_cast<int>(free_.size()); }
  int kept() const { return static_cast<int>(kept_.size()); }
  // Can `count` more be taken?
  bool can_take(int count) const { return count <= free() + kept(); }

  // A block for one holder; -1 when there is none.
  int take();
  void release(int block);

  // A full block that follows the chain, if it is known: it gets one more holder, and `chain`
  // becomes that with it. Else -1.
  int find(uint64_t& chain, std::span<const int> tokens);
  // Says that a held block is full. Gives the chain with it.
  uint64_t publish(int block, uint64_t chain, std::span<const int> tokens);
  // Forgets what blocks hold, as the cache lost it.
  void forget();

 private:
  struct Key {
    uint64_t chain;
    std::vector<int> tokens;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  struct Known {
    int block;
    uint64_t chain;  // the block included
  };
  void forget_block(int block);

  int block_size_;
  uint64_t last_chain_ = 0;
  std::vector<int> holders_;
  std::vector<int> free_;
  std::list<int> kept_;  // the oldest first
  std::vector<std::list<int>::iterator> place_in_kept_;
  std::unordered_map<Key, Known, KeyHash> known_;
  std::vector<const Key*> key_of_;  // of each block; null when it is not known
};

}  // namespace holdfast::lm::engine
