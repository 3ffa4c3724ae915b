#pragma once

#include <stdexcept>
#include <string>
#include <unordered_map>
#include <variant>

#include "mlx/core.h"

namespace mlx::core::cu {

inline bool is_available() { return false; }
inline const std::unordered_map<std::string, std::variant<std::string, size_t>>& device_info(
    int device_index = 0) {
  throw std::runtime_error("[cu::device_info] this build has no CUDA device, so none with index " +
                           std::to_string(device_index));
}

}  // namespace mlx::core::cu
