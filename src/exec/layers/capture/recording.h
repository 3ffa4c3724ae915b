// Does a capture want notes of ops, to run them again? Asked once an op: one relaxed load.
#pragma once

#include <atomic>

namespace holdfast::exec::capture {

inline std::atomic<bool> notes_wanted{false};
inline bool wants_notes() { return notes_wanted.load(std::memory_order_relaxed); }

}  // namespace holdfast::exec::capture
