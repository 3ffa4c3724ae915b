// Runs compiler code so that nothing it does can end the process: on a thread of its own with a
// deep stack (clang recurses over the user's source), and with LLVM's fatal errors caught.
#pragma once

#include <functional>

namespace holdfast::msl {

// Calls `work` and waits for it. Inside another run_guarded it is a plain call. What `work` throws
// is thrown here. A fatal error inside LLVM becomes a std::runtime_error; the thread that met it
// sleeps for ever then, because LLVM cannot be left in any other way, and never touches what `work`
// referred to again.
void run_guarded(std::function<void()> work);

}  // namespace holdfast::msl
