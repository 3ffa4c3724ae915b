// Guards of the reference lowering: a branch around each access that may lie outside of what the
// kernel was given (msl/frontend/unproved_accesses.h). The widening compiler has its own
// (widen/emit_guarded.cpp).
#pragma once

#include "devices/cpu/jit/compiler/outside_sites.h"

namespace llvm {
class Function;
}

namespace holdfast::jit {

// Such an access is made only when it is inside; else a load gives 0, and `outside_function` is
// called with the OutsideSite and the distance in bytes. Calls of `range_before_function` and
// `range_bytes_function` with the number of an argument stand for its ArgumentRange; the reference
// lowering replaces all three.
void guard_accesses(llvm::Function& scalar, const GuardedKernel& kernel);

inline constexpr const char* outside_function = "holdfast.outside";
inline constexpr const char* range_before_function = "holdfast.range.before";
inline constexpr const char* range_bytes_function = "holdfast.range.bytes";

}  // namespace holdfast::jit
