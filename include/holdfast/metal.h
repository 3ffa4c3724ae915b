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

// There is no Metal library to load: the path is kept, and not used.
void set_metallib_path(const std::string& path);
const std::string& get_metallib_path();

}  // namespace holdfast::metal
