// A compiler and kernels without LLVM: the "source" is two numbers, the "machine code" is the
// source, and the kernel computes y[i] = x[i] * factor + summand over int32.
#pragma once

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/sync.h"
#include "devices/cpu/cpu_kernel.h"
#include "exec/kernel_library.h"

namespace holdfast::testing {

inline std::string affine_source(int factor, int summand, const std::string& rest = "") {
  return std::to_string(factor) + " " + std::to_string(summand) + " " + rest;
}

class FakeCompiler {
 public:
  // Called by each compilation, before it gives its result.
  std::function<void(const exec::KernelRequest&)> hook;
  sync::Atomic<int> compiles{0};

  jit::CompiledKernel compile(const exec::KernelRequest& request) {
    compiles.fetch_add(1);
    if (hook) hook(request);
    const std::string& text = request.source().text;
    if (text.starts_with("error")) {
      throw jit::CompileError("[" + request.source().kernel + "] body:1:1: error: not two numbers");
    }
    jit::CompiledKernel kernel;
    kernel.interface.entry = request.source().entry;
    msl::KernelArgument x{"x", msl::KernelArgument::Kind::device, false, 0, 4};
    msl::KernelArgument y{"y", msl::KernelArgument::Kind::device, true, 1, 4};
    kernel.interface.arguments = {x, y};
    kernel.interface.attributes = {"thread_position_in_grid"};
    kernel.symbol = request.source().entry + ".group";
    kernel.object.assign(text.begin(), text.end());
    return kernel;
  }

  static Ref<exec::Pipeline> load(const std::string& name, jit::CompiledKernel kernel) {
    std::string text(kernel.object.begin(), kernel.object.end());
    char* end = nullptr;
    long factor = std::strtol(text.c_str(), &end, 10);
    if (end == text.c_str()) throw std::runtime_error("[" + name + "] the object is not sound");
    long summand = std::strtol(end, nullptr, 10);
    return make_ref<exec::NativeKernel>(
        name, kernel.interface, [=](const jit::DispatchArguments& arguments, int64_t group) {
          auto* x = static_cast<const int32_t*>(arguments.buffers[0]);
          auto* y = static_cast<int32_t*>(arguments.buffers[1]);
          int64_t size = arguments.threadgroup[0];
          int64_t end_of_group = std::min<int64_t>(arguments.grid[0], (group + 1) * size);
          for (int64_t i = group * size; i < end_of_group; ++i) {
            y[i] = static_cast<int32_t>(x[i] * factor + summand);
          }
        });
  }

  exec::KernelLibrary::Parts parts(size_t capacity, std::string disk_folder = "",
                                   uint64_t disk_bytes = uint64_t{1} << 30) {
    exec::KernelLibrary::Parts parts;
    parts.compile = [this](const exec::KernelRequest& request) { return compile(request); };
    parts.load = load;
    parts.compiler_version = "fake 1";
    parts.capacity = capacity;
    if (!disk_folder.empty()) {
      parts.disk = std::make_unique<exec::DiskCache>(std::move(disk_folder), disk_bytes);
    }
    return parts;
  }
};

inline msl::KernelSource named_source(std::string name, std::string text) {
  msl::KernelSource source;
  source.kernel = source.entry = std::move(name);
  source.text = std::move(text);
  return source;
}

inline Ref<const exec::KernelRequest> request_for(std::string text, std::string name = "affine") {
  return make_ref<exec::KernelRequest>(named_source(std::move(name), std::move(text)),
                                       jit::CompileOptions{}, "fake 1");
}

}  // namespace holdfast::testing
