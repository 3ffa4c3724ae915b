// Runs compiler code so that nothing it does can end the process: on a thread of its own with a
// deep stack (clang recurses over the user's source), and with LLVM's fatal errors caught.
#pragma once

#include <functional>

#include "msl/kernel_source.h"

namespace holdfast::msl {

// Calls `work` and waits for it. Inside another run_guarded it is a plain call. What `work` throws
// is thrown here. Three things end the work in its middle, because clang and LLVM cannot be left in
// any other way than by returning:
//   a fatal error inside LLVM       a std::runtime_error
//   a stack that is full            a CompileError: the source is nested too deeply
//   an access through null          a std::runtime_error: a bug of the compiler
// The thread that met it sleeps for ever then and never touches what `work` referred to again. What
// a long-lived process loses by it: the memory of that compilation, its stack as far as it was
// used, and a thread. Nothing else: neither fault has written to memory, and none is taken where it
// comes inside of the C library, whose locks (of malloc) every thread needs. Whatever else goes
// wrong in the compiler (a wild access, an abort) may have done harm, and ends the process as it
// would anywhere else: `holdfast kernel check` compiles in a process of its own for that.
void run_guarded(std::function<void()> work);

// The first run_guarded installs handlers of SIGSEGV and SIGBUS, which hand on what is not theirs
// to those from before. This puts them in front of what the program has installed since.
void install_guard_handlers();

// Ends the work of this thread's run_guarded in its middle, with `error`.
[[noreturn]] void give_up(const CompileError& error);

}  // namespace holdfast::msl
