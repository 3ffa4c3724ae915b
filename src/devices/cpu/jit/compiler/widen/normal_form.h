// The scalar function in the shape that the widening passes expect:
//   - no vectors, no aggregates but the results of cmpxchg, no constant expressions with globals;
//   - two-way branches only, one return, no unreachable end, no irreducible loop;
//   - loops have a preheader, one latch and exits of their own; values leave a loop through phis
//     in the exit block (LCSSA);
//   - thread positions are asked for once, in the entry block, with constant axes;
//   - no call to memcpy and its kind.
#pragma once

#include <string>

namespace llvm {
class Function;
}

namespace holdfast::jit {

// Returns why the function cannot be widened, or an empty string.
std::string make_normal_form(llvm::Function& function);

}  // namespace holdfast::jit
