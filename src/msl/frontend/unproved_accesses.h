// Which accesses of a kernel need a look before they are made: those that cannot be proved to lie
// inside of what the kernel was given. For every target: each puts in its own looks.
#pragma once

#include <llvm/ADT/SmallVector.h>

#include <cstdint>
#include <vector>

namespace llvm {
class DataLayout;
class Function;
class Instruction;
class Value;
}  // namespace llvm

namespace holdfast::msl {

struct UnprovedAccess {
  llvm::Instruction* instruction;  // a load, a store, an atomic operation
  llvm::Value* pointer;
  uint64_t bytes;
  bool writes;
  // What it may touch: arguments of the function, threadgroup variables, tables, private arrays.
  // Mostly one. Several where the pointer is one of two; all of the function's where nothing is
  // known about it: then there may be none.
  llvm::SmallVector<llvm::Value*, 1> roots;
  // Accesses of one block at constant distances from each other: all of a cluster lie between
  // `lowest` and `end`, relative to this one's pointer.
  unsigned cluster;
  int64_t lowest, end;
};

// In the order of the function. `function` is scalar IR, also after changes that keep one function
// one thread. Gives the calls that tell positions the ranges of their values (!range). Copies
// of blocks (llvm.memcpy and its kind) are not among them.
std::vector<UnprovedAccess> find_unproved_accesses(llvm::Function& function);

// Bytes of a root that is no argument.
uint64_t bytes_of_root(const llvm::Value& root, const llvm::DataLayout& layout);

// The roots of any pointer, as in UnprovedAccess.
llvm::SmallVector<llvm::Value*, 1> roots_of(llvm::Value* pointer, llvm::Function& function);

}  // namespace holdfast::msl
