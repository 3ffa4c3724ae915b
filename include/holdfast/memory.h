// Memory counters and limits, in bytes. Setters return the previous value. Counters are of all
// memory together, the host's and the devices'; a limit is one of the memory that the default
// device works on.
#pragma once

#include <cstddef>
#include <optional>

namespace holdfast {

namespace exec {
class Allocator;
}

// Memory held by arrays, and by work in flight that nobody else may reuse yet.
size_t get_active_memory();
// The largest active memory since the start or the last reset.
size_t get_peak_memory();
void reset_peak_memory();
// Memory kept for reuse.
size_t get_cache_memory();

// A hard limit on active memory: an allocation beyond it throws OutOfMemory.
size_t set_memory_limit(size_t limit);
size_t get_memory_limit();
size_t set_cache_limit(size_t limit);
// Gives cached memory back to the system.
void clear_cache();
// Memory up to the limit is wired: on the CPU device its pages are locked. 0, as at the start,
// wires nothing. Where the system forbids locking, a warning says so once, and the counters
// (metal::residency_sets) count what is really locked. std::invalid_argument for more than the
// machine's memory.
size_t set_wired_limit(size_t limit);

namespace memory {

struct Limits {
  std::optional<size_t> memory, cache, wired;
};
// All three, as they are now.
Limits limits();

// Sets the limits that are given, for the whole process, and at its end restores what it found: a
// library can use its own without losing its host's. Scopes end in reverse order.
class Scope {
 public:
  explicit Scope(const Limits& limits);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  exec::Allocator& of_;
  Limits found_;
};

}  // namespace memory

}  // namespace holdfast
