// Is a capture being recorded? Asked once an op; when not, it is one relaxed load.
#pragma once

#include <atomic>

namespace holdfast::exec::capture {

inline std::atomic<bool> recording{false};
inline bool is_recording() { return recording.load(std::memory_order_relaxed); }

}  // namespace holdfast::exec::capture
