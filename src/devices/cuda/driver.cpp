#include "devices/cuda/driver.h"

#include <dlfcn.h>
#include <unistd.h>

namespace holdfast::cuda {
namespace {

constexpr int oldest_version = 12000;

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

void load(Driver& driver) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    throw std::runtime_error(std::string("[cuda] NVIDIA's driver is not installed: ") +
                             (reason ? reason : "libcuda.so.1 cannot be loaded"));
  }
  auto find = [&](auto& entry, const char* symbol) {
    void* found = dlsym(library, symbol);
    entry.call = reinterpret_cast<decltype(entry.call)>(found);
    return found != nullptr;
  };
  const char* missing = nullptr;
#define FUNCTION(member, symbol, ...) \
  if (!find(driver.member, symbol) && !missing) missing = symbol;
#include "devices/cuda/driver_functions.def"
#undef FUNCTION
  int version = 0;
  if (driver.driver_version.call) driver.driver_version.call(&version);
  if (missing || version < oldest_version) {
    throw std::runtime_error("[cuda] expected a driver of CUDA " + version_text(oldest_version) +
                             " or later, got one of CUDA " + version_text(version) +
                             (missing ? std::string(", without ") + missing : ""));
  }
  if (const int code = driver.init.call(0)) {
    if (code == result::no_device)
      throw std::runtime_error(
          "[cuda] the driver offers no GPU to this process (CUDA_VISIBLE_DEVICES may hide it)");
    driver.fail(driver.init.name, code);
  }
  int count = 0;
  driver.device_count(&count);
  if (count == 0)
    throw std::runtime_error(
        "[cuda] the driver offers no GPU to this process (CUDA_VISIBLE_DEVICES may hide it)");
}

}  // namespace

Error::Error(const char* function, int code, const std::string& name)
    : std::runtime_error("[cuda] " + std::string(function) + " failed: " + name + " (" +
                         std::to_string(code) + ")"),
      code_(code) {}

// Faults of kernels and of the hardware. Errors of a call leave the context as it was.
bool Error::is_sticky(int code) {
  return code == 46 || code == 214 || code == 220 || code == 226 || code == 700 || code == 702 ||
         code == 709 || code == 710 || (code >= 714 && code <= 719) || code == 721 || code == 999;
}

Driver::Driver() {
#define FUNCTION(member, symbol, ...) \
  member.name = symbol;               \
  member.driver = this;
#include "devices/cuda/driver_functions.def"
#undef FUNCTION
}

void Driver::fail(const char* function, int code) const {
  const char* name = nullptr;
  if (error_name.call) error_name.call(code, &name);
  throw Error(function, code, name ? name : "an error without a name");
}

bool Driver::may_be_there() { return access("/dev/nvidiactl", F_OK) == 0; }

Driver& Driver::of_system() {
  // A failure is thrown again at the next call: what is missing may be installed meanwhile.
  static Driver* driver = [] {
    auto* made = new Driver;
    load(*made);
    return made;
  }();
  return *driver;
}

}  // namespace holdfast::cuda
