// How the private memory of 32 lanes is laid out.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>

namespace holdfast::jit {

// An alloca whose uses are all understood, as accesses of one size at multiples of it, is laid out
// [elements][32]: element e of lane i lies at (e * 32 + i) * size, so that an offset is scaled by
// 32 and an access with a uniform index is one wide access. Every other alloca is 32 blocks, one a
// lane, where any cast and any pointer is right.
struct PrivateMemory {
  explicit PrivateMemory(llvm::Function& function);

  struct Block {
    uint64_t element = 0;     // bytes of an access when interleaved, else 0
    uint64_t lane_bytes = 0;  // bytes of one lane, rounded up to `element` or to the alignment
    uint64_t alignment = 16;
    bool is_interleaved() const { return element != 0; }
    uint64_t stride() const { return is_interleaved() ? element : lane_bytes; }
  };
  llvm::DenseMap<const llvm::AllocaInst*, Block> blocks;

  // The interleaved alloca that a pointer is into, or null.
  const Block* interleaved(const llvm::Value* pointer) const;
};

}  // namespace holdfast::jit
