// What Holdfast throws beside std::invalid_argument (shapes, dtypes), std::out_of_range (axes) and
// std::overflow_error (sizes).
#pragma once

#include <stdexcept>

namespace holdfast {

// A command failed after it was submitted. The message names the op. Thrown to everyone who waits
// for an array that depends on it; the array keeps the error for good.
class ExecutionError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The work was cancelled before it started.
class Cancelled : public ExecutionError {
 public:
  using ExecutionError::ExecutionError;
};

// A GPU stopped working, and does nothing more for this process: the arrays whose elements only it
// had are lost. Those whose elements are on the host as well, and other devices, go on.
class DeviceLost : public ExecutionError {
 public:
  using ExecutionError::ExecutionError;
};

// An allocation does not fit the memory limit, even after waiting for all work and emptying the
// cache. Thrown before the op that needs the memory is encoded: it can be tried again.
class OutOfMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace holdfast
