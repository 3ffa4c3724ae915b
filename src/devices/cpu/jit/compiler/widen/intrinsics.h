// The rows of intrinsics.def, found from calls.
#pragma once

#include <llvm/IR/Instructions.h>

#include <optional>

#include "msl/scalar_ir.h"

namespace holdfast::jit {

enum class Behaviour : uint8_t { uniform, simdgroup, lane, value, memory, cross_lane, barrier };

// The row that an instruction calls, if it does. Names with our prefix that have no row: nullopt.
std::optional<msl::Intrinsic> kernel_intrinsic(const llvm::Value& value);
Behaviour behaviour_of(msl::Intrinsic intrinsic);
bool is_call_of(const llvm::Value& value, msl::Intrinsic intrinsic);

}  // namespace holdfast::jit
