// Loads whose lanes lie close together but not next to each other, and their neighbours that fill
// the gaps: read as vectors and brought into place by shuffles, instead of gathered. All lanes are
// on.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <vector>

#include "devices/cpu/jit/compiler.h"
#include "devices/cpu/jit/compiler/widen/shapes.h"

namespace holdfast::jit {

// Loads of one block from `root + constant + what the lane adds`, with nothing between them that
// writes.
struct LoadGroup {
  struct Member {
    llvm::LoadInst* load;
    int64_t offset;  // bytes from the first member in memory
  };
  std::vector<Member> members;
  Shape shape;                // of all addresses: linear or a pattern
  int64_t leader_offset = 0;  // of the load that was asked about
  uint64_t size = 0;          // bytes of each load
  uint64_t word = 0;          // bytes of the elements that are transposed; 0: cannot be
  uint64_t span = 0;          // bytes that a lane's members cover

  // Linear, and a lane's stride holds a few words.
  bool pays_transposed(InstructionSet set) const;
  // The elements of all lanes lie in a few pieces of memory.
  bool pays_in_segments() const;
};

// The group around `leader`. `shape_of` tells the shape of other pointers.
LoadGroup find_load_group(llvm::LoadInst& leader, const Shape& shape,
                          const llvm::DataLayout& layout,
                          llvm::function_ref<Shape(const llvm::Value*)> shape_of);

// The members' vectors, as integers of their size. `base`: the leader's address by the formula of
// its shape, in lane 0.
std::vector<llvm::Value*> load_transposed(llvm::IRBuilder<>& b, const LoadGroup& group,
                                          llvm::Value* base, llvm::Align align);
std::vector<llvm::Value*> load_in_segments(llvm::IRBuilder<>& b, const LoadGroup& group,
                                           llvm::Value* base, llvm::Align align);

}  // namespace holdfast::jit
