// Kernels that can be stopped.
#pragma once

namespace llvm {
class Function;
}

namespace holdfast::cuda {

// Turns of a loop without a bound between two looks at LaunchParameters::cancelled.
inline constexpr unsigned turns_between_looks = 1024;

// Loops of the entry whose number of turns has no bound that can be proved end their threads when
// the launch is cancelled. For functions that are optimised: loops that are unrolled later would
// look too often.
void poll_unbounded_loops(llvm::Function& entry);

}  // namespace holdfast::cuda
