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
#include "devices/target.h"
#include "exec/kernel_library.h"

namespace holdfast::testing {

inline std::string affine_source(int factor, int summand, const std::string& rest = "") {
  return std::to_string(factor) + " " + std::to_string(summand) + " " + rest;
}

inline msl::KernelInterface affine_interface(const std::string& entry) {
  msl::KernelInterface interface;
  interface.entry = entry;
  msl::KernelArgument x{"x", msl::KernelArgument::Kind::device, false, 0, 4};
  msl::KernelArgument y{"y", msl::KernelArgument::Kind::device, true, 1, 4};
  interface.arguments = {x, y};
  interface.attributes = {"thread_position_in_grid"};
  return interface;
}

class FakeBinary final : public exec::Binary {
 public:
  explicit FakeBinary(std::string text) : text_(std::move(text)) {}
  std::string bytes() const override { return text_; }
  Ref<exec::Pipeline> make_pipeline(const std::string& name) const override {
    char* end = nullptr;
    long factor = std::strtol(text_.c_str(), &end, 10);
    if (end == text_.c_str()) throw std::runtime_error("[" + name + "] the object is not sound");
    long summand = std::strtol(end, nullptr, 10);
    return make_ref<exec::NativeKernel>(
        name, affine_interface(name), [=](const jit::DispatchArguments& arguments, int64_t group) {
          auto* x = static_cast<const int32_t*>(arguments.buffers[0]);
          auto* y = static_cast<int32_t*>(arguments.buffers[1]);
          int64_t size = arguments.threadgroup[0];
          int64_t end_of_group = std::min<int64_t>(arguments.grid[0], (group + 1) * size);
          for (int64_t i = group * size; i < end_of_group; ++i) {
            y[i] = static_cast<int32_t>(x[i] * factor + summand);
          }
        });
  }

 private:
  const std::string text_;
};

// Counts and watches what all threads compile for the fake target, while it is the last one made.
class FakeCompiler {
 public:
  FakeCompiler() : outer_(current_.exchange(this)) {}
  ~FakeCompiler() { current_.store(outer_); }
  FakeCompiler(const FakeCompiler&) = delete;
  FakeCompiler& operator=(const FakeCompiler&) = delete;

  // Called by each compilation, before it gives its result.
  std::function<void(const msl::KernelSource&)> hook;
  sync::Atomic<int> compiles{0};

  static exec::KernelLibrary::Parts parts(size_t capacity, std::string disk_folder = "",
                                          uint64_t disk_bytes = uint64_t{1} << 30) {
    exec::KernelLibrary::Parts parts;
    parts.capacity = capacity;
    if (!disk_folder.empty()) {
      parts.disk = std::make_unique<exec::DiskCache>(std::move(disk_folder), disk_bytes);
    }
    return parts;
  }

  static void note(const msl::KernelSource& source) {
    FakeCompiler* compiler = current_.load();
    if (!compiler) return;
    compiler->compiles.fetch_add(1);
    if (compiler->hook) compiler->hook(source);
  }

 private:
  static inline sync::Atomic<FakeCompiler*> current_{nullptr};
  FakeCompiler* const outer_;
};

class FakeTarget final : public exec::Target {
 public:
  explicit FakeTarget(std::string version = "fake 1") : version_(std::move(version)) {}
  static FakeTarget& get() {
    static auto* target = new FakeTarget;
    return *target;
  }
  const std::string& name() const override { return name_; }
  const std::string& identity() const override { return version_; }
  std::unique_ptr<const exec::Binary> compile(const msl::KernelSource& source,
                                              const exec::KernelOptions&) override {
    FakeCompiler::note(source);
    if (source.text.starts_with("error")) {
      throw jit::CompileError("[" + source.kernel + "] body:1:1: error: not two numbers");
    }
    return std::make_unique<FakeBinary>(source.text);
  }
  std::unique_ptr<const exec::Binary> load(std::string_view bytes) override {
    return std::make_unique<FakeBinary>(std::string(bytes));
  }

 private:
  const std::string name_ = "fake", version_;
};

inline msl::KernelSource named_source(std::string name, std::string text) {
  msl::KernelSource source;
  source.kernel = source.entry = std::move(name);
  source.text = std::move(text);
  return source;
}

inline Ref<const exec::KernelRequest> request_for(std::string text, std::string name = "affine") {
  return make_ref<exec::KernelRequest>(named_source(std::move(name), std::move(text)),
                                       exec::KernelOptions{}, FakeTarget::get());
}

}  // namespace holdfast::testing
