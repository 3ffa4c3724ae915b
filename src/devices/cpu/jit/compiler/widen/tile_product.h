// The product of tiles, mma_m16n8k16 of msl/intrinsics.def, for a simdgroup in vectors of 32.
#pragma once

#include <llvm/IR/Module.h>

#include <string>

namespace holdfast::jit {

// The function works in memory: ten vectors of 32 words, by the operands of the call; the last
// four, C, become D.
inline constexpr unsigned tile_operands = 10, first_tile_result = 6, tile_results = 4;
inline constexpr unsigned tile_operand_bytes = 128;

// void (ptr), aligned to tile_operand_bytes. All lanes are on. Still to be expanded
// (expand_math.h).
llvm::Function* make_tile_product(llvm::Module& module, const std::string& name, bool is_bfloat);

}  // namespace holdfast::jit
