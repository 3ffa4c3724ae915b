// Devices: where an op runs.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <unordered_map>
#include <variant>

namespace holdfast {

struct Device {
  enum class DeviceType { cpu, gpu };

  static constexpr DeviceType cpu = DeviceType::cpu;
  static constexpr DeviceType gpu = DeviceType::gpu;

  constexpr Device(DeviceType device_type, int device_index = 0)
      : type(device_type), index(device_index) {}

  DeviceType type;
  int index;

  friend bool operator==(const Device& a, const Device& b) {
    return a.type == b.type && a.index == b.index;
  }
  friend bool operator!=(const Device& a, const Device& b) { return !(a == b); }
  friend bool operator<(const Device& a, const Device& b) {
    return a.type != b.type ? a.type < b.type : a.index < b.index;
  }
};

inline bool operator==(const Device& a, const Device::DeviceType& type) { return a.type == type; }

// The device that ops run on when none is named: what StreamContext set on this thread, else what
// set_default_device set for the process, else HOLDFAST_DEFAULT_DEVICE, else the CPU.
const Device& default_device();
void set_default_device(const Device& device);

// `Device::gpu` without an NVIDIA GPU is the CPU device under Metal's rules: `eval_gpu` is called,
// and float64 is refused.
bool is_available(const Device& device);
int device_count(Device::DeviceType type);
const std::unordered_map<std::string, std::variant<std::string, size_t>>& device_info(
    const Device& device = default_device());

std::ostream& operator<<(std::ostream& os, const Device& device);

}  // namespace holdfast
