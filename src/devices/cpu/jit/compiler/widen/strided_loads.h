// Loads whose lanes are a few elements apart, and their neighbours that fill the gaps: read as wide
// vectors and transposed by shuffles, instead of gathered.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <vector>

#include "devices/cpu/jit/compiler.h"

namespace holdfast::jit {

// Loads of one block from `root + constant + lane * stride`, with nothing between them that writes.
struct StridedGroup {
  struct Member {
    llvm::LoadInst* load;
    int64_t offset;  // bytes from the first member in memory
  };
  std::vector<Member> members;
  int64_t stride = 0;         // bytes
  int64_t leader_offset = 0;  // of the load that was asked about
  uint64_t word = 0;          // bytes of the elements that are transposed: 2, 4 or 8
  uint64_t span = 0;          // bytes that a lane's members cover

  bool pays(InstructionSet set) const;
};

// The group around `leader`, all lanes on. `stride_of` tells the stride of other pointers.
StridedGroup find_strided_group(llvm::LoadInst& leader, int64_t stride,
                                const llvm::DataLayout& layout,
                                llvm::function_ref<int64_t(const llvm::Value*)> stride_of);

// The members' vectors, as integers of their size. `base`: the leader's address in lane 0.
std::vector<llvm::Value*> load_strided_group(llvm::IRBuilder<>& b, const StridedGroup& group,
                                             llvm::Value* base, llvm::Align align);

}  // namespace holdfast::jit
