// Fault points: places that can be told to fail at their k-th visit. Test builds only; elsewhere
// `hit` is a constant.
#pragma once

#include <cstdint>

#include "base/sync.h"

#ifndef HOLDFAST_CHECKS
#define HOLDFAST_CHECKS 0
#endif

namespace holdfast::fault {

enum class Point : uint8_t {
  allocation,    // a buffer's storage
  dispatch,      // a command at the moment it runs
  event,         // a wait between queues being encoded
  thread_start,  // a worker
  count,
};

#if HOLDFAST_CHECKS

// The k-th visit (1 is the next one) of `point` from now on fails, once, or with `persistent` every
// one from the k-th on.
void arm(Point point, uint64_t k, bool persistent = false);
void disarm();
// Visits since arm().
uint64_t visits(Point point);
bool hit(Point point);

#else

inline bool hit(Point) { return false; }

#endif

}  // namespace holdfast::fault
