// A stand-in for the kernel compiler, so that everything around fast::metal_kernel is tested where
// there is no LLVM: the body of a kernel is `NATIVE name`, and the test says what `name` does.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <holdfast/holdfast.h>

#include "kernel_library/fake_compiler.h"

namespace holdfast::testing {

class FakeMetal {
 public:
  // Runs one thread at (x, 0, 0) of the grid; `buffers` by [[buffer(n)]].
  using Body = std::function<void(std::span<void* const> buffers, int64_t x)>;

  explicit FakeMetal(size_t capacity = 64, const std::string& disk_folder = "")
      : library_(parts(capacity, disk_folder)) {
    exec::KernelLibrary::replace(&library_);
  }
  ~FakeMetal() { exec::KernelLibrary::replace(nullptr); }
  FakeMetal(const FakeMetal&) = delete;
  FakeMetal& operator=(const FakeMetal&) = delete;

  // To be called before kernels run.
  void define(const std::string& name, Body body) { bodies_[name] = std::move(body); }

  exec::KernelLibrary& library() { return library_; }
  int compiles() const { return static_cast<int>(library_.stats().compiles); }
  // The generated sources, in the order of their compilation.
  std::vector<std::string> sources() {
    std::lock_guard guard(mutex_);
    return sources_;
  }
  // Called by each compilation.
  std::function<void(const exec::KernelRequest&)> hook;

 private:
  exec::KernelLibrary::Parts parts(size_t capacity, const std::string& disk_folder) {
    exec::KernelLibrary::Parts parts;
    parts.compile = [this](const exec::KernelRequest& request) { return compile(request); };
    parts.load = [this](const std::string& name, jit::CompiledKernel kernel) {
      return load(name, std::move(kernel));
    };
    parts.compiler_version = "fake";
    parts.capacity = capacity;
    if (!disk_folder.empty())
      parts.disk = std::make_unique<exec::DiskCache>(disk_folder, uint64_t{1} << 30);
    return parts;
  }

  jit::CompiledKernel compile(const exec::KernelRequest& request) {
    const std::string& text = request.source().text;
    {
      std::lock_guard guard(mutex_);
      sources_.push_back(text);
    }
    if (hook) hook(request);
    size_t begin = text.find("NATIVE ");
    if (begin == std::string::npos) {
      throw jit::CompileError("[" + request.source().kernel + "] body:1:1: error: not NATIVE");
    }
    begin += 7;
    std::string body = text.substr(begin, text.find_first_of(" ;\n", begin) - begin);
    jit::CompiledKernel kernel;
    kernel.interface.entry = request.source().entry;
    for (uint32_t slot = 0;; ++slot) {
      if (text.find("[[buffer(" + std::to_string(slot) + ")]]") == std::string::npos) break;
      kernel.interface.arguments.push_back(
          {"a" + std::to_string(slot), msl::KernelArgument::Kind::device, false, slot, 1});
    }
    kernel.object.assign(body.begin(), body.end());
    return kernel;
  }

  Ref<exec::Pipeline> load(const std::string& name, jit::CompiledKernel kernel) {
    Body body = bodies_.at(std::string(kernel.object.begin(), kernel.object.end()));
    size_t count = kernel.interface.arguments.size();
    return make_ref<exec::NativeKernel>(
        name, kernel.interface, [=](const jit::DispatchArguments& arguments, int64_t group) {
          int64_t size = arguments.threadgroup[0];
          int64_t end = std::min<int64_t>(arguments.grid[0], (group + 1) * size);
          for (int64_t x = group * size; x < end; ++x) body({arguments.buffers, count}, x);
        });
  }

  std::map<std::string, Body> bodies_;
  sync::Mutex mutex_;
  std::vector<std::string> sources_;  // guarded by mutex_
  exec::KernelLibrary library_;
};

// Calls a kernel with what most tests leave alone.
struct Call {
  std::vector<array> inputs;
  std::vector<Shape> shapes;
  std::vector<Dtype> dtypes;
  std::tuple<int, int, int> grid{1, 1, 1};
  std::tuple<int, int, int> threadgroup{1, 1, 1};
  std::vector<std::pair<std::string, fast::TemplateArg>> template_arguments = {};
  std::optional<float> init_value = {};
  bool verbose = false;
  StreamOrDevice stream = {};

  std::vector<array> operator()(const fast::CustomKernelFunction& kernel) const {
    return kernel(inputs, shapes, dtypes, grid, threadgroup, template_arguments, init_value,
                  verbose, stream);
  }
};

}  // namespace holdfast::testing
