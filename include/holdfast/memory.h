// Memory counters and limits of the process, in bytes. Setters return the previous value.
#pragma once

#include <cstddef>

namespace holdfast {

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
// Always 0 on the CPU device for now.
size_t set_wired_limit(size_t limit);

}  // namespace holdfast
