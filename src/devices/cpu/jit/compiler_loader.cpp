// default_compiler(): finds and loads libholdfast-jit when the first kernel has to be compiled.
#include <dlfcn.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "base/environment.h"
#include "devices/cpu/jit/compiler.h"

#if HOLDFAST_HAVE_JIT
#include <holdfast_jit_version.h>
#endif

namespace holdfast::jit {

#if HOLDFAST_HAVE_JIT

namespace {

constexpr const char* file_name = "libholdfast-jit.so";
constexpr const char* factory_name = "holdfast_jit_compiler";
using Factory = Compiler*(const char*);

// Where the module may be, in the order of looking: beside the code that asks (the shared library,
// or the program that it is linked into), in the lib folder next to that, and where the dynamic
// linker looks: the run path of that code, which for a program built against an installed holdfast
// has the prefix, and the system's folders.
std::vector<std::string> candidates() {
  if (!environment::settings().jit_library.empty()) return {environment::settings().jit_library};
  std::vector<std::string> paths;
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&default_compiler_version), &own) && own.dli_fname) {
    std::error_code error;
    std::filesystem::path file = own.dli_fname;
    // A program's own name is what it was called by.
    if (file.is_relative()) file = std::filesystem::read_symlink("/proc/self/exe", error);
    std::filesystem::path real = std::filesystem::canonical(file, error);
    std::filesystem::path folder = (error ? file : real).parent_path();
    paths.push_back((folder / file_name).string());
    paths.push_back((folder.parent_path() / "lib" / file_name).string());
  }
  paths.push_back(file_name);
  return paths;
}

Compiler& load() {
  std::string tried;
  for (const std::string& path : candidates()) {
    std::error_code error;
    const bool is_searched = path == file_name;
    if (!is_searched && !std::filesystem::exists(path, error)) {
      tried += "\n  " + path + ": no such file";
      continue;
    }
    // Never unloaded: LLVM cannot be.
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* reason = dlerror();
      tried += "\n  " + (reason ? std::string(reason) : path + ": cannot be loaded");
      continue;
    }
    auto* factory = reinterpret_cast<Factory*>(dlsym(handle, factory_name));
    if (Compiler* compiler = factory ? factory(HOLDFAST_JIT_VERSION) : nullptr) return *compiler;
    tried += "\n  " + path + ": belongs to another build of holdfast";
  }
  throw std::runtime_error(std::string("[jit] custom kernels need ") + file_name +
                           ", holdfast's compiler with clang and LLVM 19 (Debian: libclang-cpp19 "
                           "libllvm19), and it was not "
                           "found (HOLDFAST_JIT_LIBRARY names another place):" +
                           tried);
}

}  // namespace

Compiler& default_compiler() {
  static std::mutex mutex;
  static std::atomic<Compiler*> loaded{nullptr};
  if (Compiler* compiler = loaded.load(std::memory_order_acquire)) return *compiler;
  std::lock_guard lock(mutex);
  if (Compiler* compiler = loaded.load(std::memory_order_relaxed)) return *compiler;
  Compiler& compiler = load();
  loaded.store(&compiler, std::memory_order_release);
  return compiler;
}

const std::string& default_compiler_version() {
  static const std::string version = HOLDFAST_JIT_VERSION;
  return version;
}

#else

Compiler& default_compiler() {
  throw std::runtime_error(
      "[jit] this build of holdfast has no kernel compiler: configure it where clang and LLVM 19 "
      "are "
      "installed (llvm-19-dev libclang-19-dev libclang-cpp19-dev)");
}

const std::string& default_compiler_version() {
  static const std::string version = "none";
  return version;
}

#endif

}  // namespace holdfast::jit
