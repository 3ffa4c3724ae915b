// What programs written for Metal ask about it.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <variant>

namespace holdfast::metal {

// Do kernels in the Metal Shading Language run here? True wherever the library was built with its
// kernel compiler, on every device.
bool is_available();

// Of the device that runs such kernels; the limits are Metal's.
const std::unordered_map<std::string, std::variant<std::string, size_t>>& device_info();

// Records what runs into a file. Throws std::runtime_error: this build has no capture layer.
// Ending a capture that was not started does nothing.
void start_capture(std::string path = "");
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
  // Returns the previous value.
  size_t set_max_bytes_per_set(size_t bytes);
};
ResidencySets& residency_sets();

// There is no Metal library to load: the path is kept, and not used.
void set_metallib_path(const std::string& path);
const std::string& get_metallib_path();

}  // namespace holdfast::metal
