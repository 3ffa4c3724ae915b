#include "lm/engine/blocks.h"

namespace holdfast::lm::engine {

size_t Blocks::KeyHash::operator()(const Key& key) const {
  uint64_t hash = key.chain * 0x9e3779b97f4a7c15u;
  for (int token : key.tokens) hash = (hash ^ static_cast<uint64_t>(token)) * 0x100000001b3u;
  return static_cast<size_t>(hash ^ (hash >> 32));
}

Blocks::Blocks(int count, int block_size)
    : block_size_(block_size),
      holders_(static_cast<size_t>(count), 0),
      place_in_kept_(static_cast<size_t>(count), kept_.end()),
      key_of_(static_cast<size_t>(count), nullptr) {
  for (int block = count; block-- > 0;) free_.push_back(block);
}

int Blocks::take() {
  int block = -1;
  if (!free_.empty()) {
    block = free_.back();
    free_.pop_back();
  } else if (!kept_.empty()) {
    block = kept_.front();
    kept_.pop_front();
    forget_block(block);
  } else {
    return -1;
  }
  holders_[static_cast<size_t>(block)] = 1;
  return block;
}

void Blocks::release(int block) {
  auto at = static_cast<size_t>(block);
  if (--holders_[at] > 0) return;
  if (key_of_[at] == nullptr) {
    free_.push_back(block);
  } else {
    kept_.push_back(block);
    place_in_kept_[at] = std::prev(kept_.end());
  }
}

int Blocks::find(uint64_t& chain, std::span<const int> tokens) {
  auto found = known_.find({chain, {tokens.begin(), tokens.end()}});
  if (found == known_.end()) return -1;
  auto at = static_cast<size_t>(found->second.block);
  if (holders_[at]++ == 0) kept_.erase(place_in_kept_[at]);
  chain = found->second.chain;
  return found->second.block;
}

uint64_t Blocks::publish(int block, uint64_t chain, std::span<const int> tokens) {
  auto at = static_cast<size_t>(block);
  auto [entry, is_new] =
      known_.insert({{chain, {tokens.begin(), tokens.end()}}, {block, last_chain_ + 1}});
  if (is_new) {
    ++last_chain_;
    key_of_[at] = &entry->first;
  }
  // One that is known already goes on: what follows both blocks is the same.
  return entry->second.chain;
}

void Blocks::forget_block(int block) {
  auto at = static_cast<size_t>(block);
  if (key_of_[at] == nullptr) return;
  known_.erase(known_.find(*key_of_[at]));
  key_of_[at] = nullptr;
}

void Blocks::forget() {
  for (int block : kept_) free_.push_back(block);
  kept_.clear();
  known_.clear();
  for (const Key*& key : key_of_) key = nullptr;
}

}  // namespace holdfast::lm::engine
