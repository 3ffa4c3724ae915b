// How positions in the grid look in scalar IR: group * size + position, along each axis.
#pragma once

#include <llvm/IR/Value.h>

namespace holdfast::jit {

// Where the group's rows start in the grid: the one axis along which lanes follow each other.
bool is_row_start(const llvm::Value* value);
// thread_position_in_grid along one axis.
bool is_grid_position(const llvm::Value* value);
// Whether a row's start goes into the value by at most `depth` steps; true where they do not do.
bool depends_on_row_start(const llvm::Value* value, int depth);

}  // namespace holdfast::jit
