// What is known about loops of the normal form from how their values evolve.
#pragma once

#include <llvm/ADT/DenseSet.h>

#include "devices/cpu/jit/compiler/widen/shapes.h"

namespace llvm {
class Instruction;
}

namespace holdfast::jit {

struct LoopFacts {
  LoopFacts(llvm::Function& function, ControlFlow& flow);

  // Headers of loops that may run for ever, or for very long because there are loops inside.
  llvm::DenseSet<const llvm::BasicBlock*> polled;

  // Loads and stores that walk through memory of the threadgroup's own (their address depends on
  // its position) in steps that leave room for other simdgroups:
  // `for (i = thread; i < size; i += threads)`. Only where no access before takes the same walk.
  llvm::DenseSet<const llvm::Instruction*> strided;
};

}  // namespace holdfast::jit
