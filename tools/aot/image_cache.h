// What compiling kernels ahead of time has given before, in the folder `images` of the kernel cache
// (exec/disk_cache.h): another build folder, a clone or a clean checkout compiles nothing again.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "exec/disk_cache.h"

namespace holdfast::aot {

class ImageCache {
 public:
  // Not enabled, or where there is no folder for it: everything is made each time.
  explicit ImageCache(bool is_enabled);

  // What `make` has returned under this key, now or in another process. The version of the compiler
  // and of this program are added to the key. Any thread.
  std::string get(const std::string& name, std::string_view key,
                  const std::function<std::string()>& make, bool* is_from_cache = nullptr);

 private:
  std::optional<exec::DiskCache> disk_;
};

}  // namespace holdfast::aot
