#include "devices/command_list.h"

namespace holdfast::exec {

void* Arena::allocate(size_t size, size_t alignment) {
  for (;; ++block_, used_ = 0) {
    if (block_ == blocks_.size()) {
      size_t bytes = std::max(block_size, size + alignment);
      blocks_.push_back({std::unique_ptr<std::byte[]>(new std::byte[bytes]), bytes});
    }
    Block& block = blocks_[block_];
    size_t base = reinterpret_cast<size_t>(block.bytes.get());
    size_t start = ((base + used_ + alignment - 1) & ~(alignment - 1)) - base;
    if (start + size <= block.size) {
      used_ = start + size;
      return block.bytes.get() + start;
    }
  }
}

void Arena::clear() {
  if (blocks_.size() > 4) blocks_.resize(4);
  block_ = used_ = 0;
}

void CommandList::destroy_parameters() {
  while (!destructors.empty()) {
    Destructor last = destructors.back();
    destructors.pop_back();
    last.destroy(last.object);
  }
}

void CommandList::clear() {
  destroy_parameters();
  waits.clear();
  commands.clear();
  bindings.clear();
  edges.clear();
  arena.clear();
  work = 0;
  ops = 0;
  layers.reset();
  notes.clear();
  observers = nullptr;
  next = nullptr;
}

}  // namespace holdfast::exec
