#include "devices/cpu/jit/compiler/widen/growth.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>

namespace holdfast::jit {
namespace {

// Code for so many takes some ten seconds.
constexpr uint64_t most_size = 150'000;
// A load from an address that varies is written out for each of 32 lanes, with an extract and an
// insert, and once more under masks; small kernels have a frame around them.
constexpr uint64_t most_per_scalar = 150;
constexpr uint64_t allowance = 10'000;

}  // namespace

Growth::Growth(const llvm::Function& scalar) : scalar_(scalar.getInstructionCount()) {}

void Growth::check(uint64_t size) const {
  uint64_t most = std::min(most_size, allowance + most_per_scalar * scalar_);
  if (size <= most) return;
  throw Declined{"it is too large: " + std::to_string(scalar_) +
                 " instructions for one thread would become more than " + std::to_string(most)};
}

void Growth::check_least(const llvm::Function& scalar) const {
  // Masks and jumps of both versions of a block, and both versions of what is in it.
  constexpr uint64_t of_block = 20, of_instruction = 2;
  check(of_block * scalar.size() + of_instruction * scalar_);
}

uint64_t Growth::size_of(const llvm::Function& function) {
  uint64_t size = 0;
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    auto* phi = llvm::dyn_cast<llvm::PHINode>(&instruction);
    size += phi ? std::max(1u, phi->getNumIncomingValues() / 2) : 1;
  }
  return size;
}

}  // namespace holdfast::jit
