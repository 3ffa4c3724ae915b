// Capture: the layer that records what runs into a file. At most one at a time.
#pragma once

#include <cstdint>
#include <string>

#include <holdfast/metal.h>

namespace holdfast::exec::capture {

using metal::CaptureOptions;

// Throws std::runtime_error when one is being recorded or the file cannot be made.
void start(const std::string& path, const CaptureOptions& options);
// Waits for all work, and closes the file. Throws std::runtime_error with the reason when the file
// is not complete. Without a capture it does nothing.
void stop();
// The file of a capture that `start` began and nobody has stopped; empty: there is none.
std::string started_path();
// HOLDFAST_CAPTURE: called when the runtime starts, and when the process ends.
void start_from_environment();
void stop_at_exit() noexcept;

}  // namespace holdfast::exec::capture
