#pragma once

#include <string>
#include <unordered_map>
#include <variant>

#include <holdfast/device.h>

#include "mlx/core.h"

namespace mlx::core::cpu {

inline bool is_available() { return true; }
inline int device_count() { return ::holdfast::device_count(Device::cpu); }
inline const std::unordered_map<std::string, std::variant<std::string, size_t>>& device_info(
    int device_index = 0) {
  return ::holdfast::device_info(Device(Device::cpu, device_index));
}

}  // namespace mlx::core::cpu
