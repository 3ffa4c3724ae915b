// Fault points: places that can be told to fail at their k-th visit, by a test or by
// HOLDFAST_FAULT. While none is told to, a visit is one load.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/sync.h"

#ifndef HOLDFAST_CHECKS
#define HOLDFAST_CHECKS 0
#endif

namespace holdfast::fault {

enum class Point : uint8_t {
  allocation,    // a buffer's storage
  compile,       // of a kernel
  dispatch,      // a command at the moment it runs
  event,         // a wait between queues being encoded
  file,          // a read or a write of a file of arrays
  migration,     // bytes that the host reads from the memory of a device
  thread_start,  // a worker
  count,
};

// The k-th visit (1 is the next one) of `point` from now on fails, once, or with `persistent` every
// one from the k-th on.
void arm(Point point, uint64_t k, bool persistent = false);
void disarm();
// Visits since arm().
uint64_t visits(Point point);

struct Setting {
  Point point;
  uint64_t k;
  bool persistent;
};
// "alloc:3,dispatch:1+": points by name, each with the visit that fails; with "+" all later ones
// fail, too. False when the text is not of that form.
bool parse(const std::string& text, std::vector<Setting>& settings);
// What `parse` accepts, for messages.
inline constexpr const char* expected_text =
    "points with the visit that fails, as alloc:3,dispatch:1+ (alloc, compile, dispatch, event, "
    "file, migration, thread; with + later visits fail, too)";

extern std::atomic<bool> is_armed;
bool count_visit(Point point);

inline bool hit(Point point) {
  return is_armed.load(std::memory_order_relaxed) && count_visit(point);
}

}  // namespace holdfast::fault
