// Work that nobody waits for, such as compiling a kernel that something else stands in for.
#pragma once

#include <functional>

namespace holdfast::exec {

// Calls `work` on a thread of its own, after what was given before. `work` must not throw. It is
// forgotten once the process exits, and where no thread can be had.
void run_in_background(std::function<void()> work);

// Waits for what has begun, and forgets the rest and all that is given later. When the process
// exits the main thread calls it before any destructor runs: the compiler makes static objects
// while it works. (A main thread that never used the library does not; then it is called by a
// handler, which is early enough for all but the first work.)
void end_background();

// Waits until all that was given has been done: for tests.
void wait_for_background();

}  // namespace holdfast::exec
