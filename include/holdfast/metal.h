// What programs written for Metal ask about it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <variant>

namespace holdfast::metal {

// Do kernels in the Metal Shading Language run here? True wherever the library was built with its
// kernel compiler, on every device.
bool is_available();

// Of the device that runs such kernels; the limits are Metal's.
const std::unordered_map<std::string, std::variant<std::string, size_t>>& device_info();

// What a capture records beside the command stream.
struct CaptureOptions {
  bool contents = true;         // first contents of what is read: needed to replay
  bool digests = true;          // of what each op writes: a replay is checked against them
  int64_t skip_lists = 0;       // command lists before the first that is recorded
  int64_t count_lists = -1;     // command lists that are recorded; -1: all
  uint64_t max_file_bytes = 0;  // 0: as large as it gets
  // Contents that were loaded from a file are named by file, range and digest instead of copied:
  // smaller, and a replay needs the file as it was.
  bool reference_files = false;
};

// Records what runs, on all streams, into a file (docs/capture.md) for `holdfast trace`; a file
// that is there is replaced. Throws std::runtime_error when a capture is being recorded already or
// the file cannot be made. stop_capture waits for all work; it throws std::runtime_error with the
// reason when the file is not complete, which the file says as well. Ending a capture that was not
// started does nothing.
void start_capture(std::string path = "capture.hfcap", const CaptureOptions& options = {});
void stop_capture();

// What is wired (set_wired_limit), in sets as Metal has them. Every queue has all of them attached.
class ResidencySets {
 public:
  // Can memory be wired here?
  bool enabled() const;
  // Bytes that are wired: never above the limit.
  size_t wired_size() const;
  // Bytes that the system did not let us wire.
  size_t refused_size() const;
  // Sets in use, at most 32.
  size_t num_sets() const;
  // How large a set grows while there are fewer than 32; what is larger has one of its own.
  size_t max_bytes_per_set() const;
  // Returns the previous value. With 0 each buffer has a set of its own while there are fewer.
  size_t set_max_bytes_per_set(size_t bytes);
};
ResidencySets& residency_sets();

// There is no Metal library to load: the path is kept, and not used.
void set_metallib_path(const std::string& path);
const std::string& get_metallib_path();

}  // namespace holdfast::metal
