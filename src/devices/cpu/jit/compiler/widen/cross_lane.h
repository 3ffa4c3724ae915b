// Operations across the 32 lanes of a vector, as shuffles. The rules are those of intrinsics.def,
// bit for bit the same as cross_lane.cpp of the reference runtime.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "devices/cpu/jit/compiler.h"
#include "devices/cpu/jit/compiler/widen/shapes.h"
#include "msl/scalar_ir.h"

namespace holdfast::jit {

class Lanes {
 public:
  Lanes(llvm::IRBuilder<>& builder, InstructionSet set) : b_(builder), set_(set) {}

  // 32 vectors of bits and masks.
  llvm::Value* bits(llvm::Value* mask);
  llvm::Value* any(llvm::Value* mask);
  llvm::Value* all(llvm::Value* mask);
  llvm::Constant* all_ones();
  // The vector 0, 1, 2, … times `factor`, of an integer type.
  llvm::Constant* index(llvm::Type* integer, int64_t factor = 1);
  llvm::Constant* vector(llvm::Type* integer, const LaneOffsets& values);
  // What lanes add to the base of a value of this shape.
  llvm::Constant* offsets(llvm::Type* integer, const Shape& shape);
  llvm::Value* splat(llvm::Value* scalar);

  // `mask` null: all lanes are on.
  llvm::Value* reduce(msl::Intrinsic operation, llvm::Value* vector, llvm::Value* mask);
  llvm::Value* scan(msl::Intrinsic operation, llvm::Value* vector, llvm::Value* mask);
  // `operand` a scalar (the same for all lanes) or a vector of i32.
  llvm::Value* shuffle(msl::Intrinsic operation, llvm::Value* vector, llvm::Value* operand,
                       llvm::Value* mask);
  // v[i] = vector[indices[i]], indices 0…31.
  llvm::Value* permute(llvm::Value* vector, llvm::Value* indices);
  // Element `which` of A×B+C.
  std::array<llvm::Value*, 2> multiply(llvm::ArrayRef<llvm::Value*> six);

 private:
  llvm::Value* combine(msl::Intrinsic operation, llvm::Value* a, llvm::Value* b);
  llvm::Constant* neutral(msl::Intrinsic operation, llvm::Type* scalar);
  llvm::Value* permute_pairs(llvm::Value* vector, llvm::Value* indices);

  llvm::IRBuilder<>& b_;
  InstructionSet set_;
};

}  // namespace holdfast::jit
