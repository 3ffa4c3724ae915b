#include <holdfast/device.h>
#include <holdfast/metal.h>

#include <list>

#include "base/sync.h"
#include "devices/cpu/cpu_target.h"
#include "exec/layers/capture/capture.h"

namespace holdfast::metal {
namespace {

struct Path {
  sync::Mutex mutex;
  // Guarded by mutex; old values are kept, since references to them were handed out.
  std::list<std::string> values{""};
};

Path& path() {
  static Path* kept = new Path;
  return *kept;
}

}  // namespace

bool is_available() { return exec::cpu_target().has_compiler(); }

const std::unordered_map<std::string, std::variant<std::string, size_t>>& device_info() {
  static const auto info = [] {
    auto result = holdfast::device_info(Device::gpu);
    const exec::KernelLimits limits;
    result["max_threads_per_threadgroup"] = size_t{limits.max_threads_per_threadgroup};
    result["max_threadgroup_memory"] = size_t{limits.max_threadgroup_memory};
    return result;
  }();
  return info;
}

void start_capture(std::string path, const CaptureOptions& options) {
  exec::capture::start(path, options);
}

void stop_capture() { exec::capture::stop(); }

void set_metallib_path(const std::string& new_path) {
  std::lock_guard guard(path().mutex);
  path().values.push_back(new_path);
}

const std::string& get_metallib_path() {
  std::lock_guard guard(path().mutex);
  return path().values.back();
}

}  // namespace holdfast::metal
