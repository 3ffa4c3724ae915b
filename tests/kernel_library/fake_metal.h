// A stand-in for the CPU's kernel compiler, so that everything around fast::metal_kernel is tested
// where there is no LLVM: the body of a kernel is `NATIVE name`, and the test says what `name`
// does. The library's own kernels for a GPU are none of these, so that the thread computes on the
// CPU.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <holdfast/holdfast.h>

#include "exec/runtime.h"
#include "kernel_library/fake_compiler.h"

namespace holdfast::testing {

class FakeMetal {
 public:
  // Runs one thread at (x, 0, 0) of the grid; `buffers` by [[buffer(n)]].
  using Body = std::function<void(std::span<void* const> buffers, int64_t x)>;

  explicit FakeMetal(size_t capacity = 64, const std::string& disk_folder = "")
      : target_(*this),
        device_(exec::Runtime::get().queue(default_stream(default_device())).device()),
        outer_target_(std::exchange(device_.target, &target_)),
        library_(parts(capacity, disk_folder)) {
    exec::KernelLibrary::replace(&library_);
  }
  ~FakeMetal() {
    exec::KernelLibrary::replace(nullptr);
    device_.target = outer_target_;
  }
  FakeMetal(const FakeMetal&) = delete;
  FakeMetal& operator=(const FakeMetal&) = delete;

  // To be called before kernels run.
  void define(const std::string& name, Body body) { bodies_[name] = std::move(body); }

  exec::KernelLibrary& library() { return library_; }
  exec::Target& target() { return target_; }
  int compiles() const { return static_cast<int>(library_.stats().compiles); }
  // The generated sources, in the order of their compilation.
  std::vector<std::string> sources() {
    std::lock_guard guard(mutex_);
    return sources_;
  }
  // Called by each compilation.
  std::function<void(const msl::KernelSource&)> hook;

 private:
  // The name of the body, and the slots of the kernel's arguments.
  class NamedBody final : public exec::Binary {
   public:
    NamedBody(FakeMetal& metal, std::string body, uint32_t slots)
        : metal_(metal), body_(std::move(body)), slots_(slots) {}
    std::string bytes() const override { return std::to_string(slots_) + " " + body_; }
    Ref<exec::Pipeline> make_pipeline(const std::string& name) const override {
      msl::KernelInterface interface;
      interface.entry = name;
      for (uint32_t slot = 0; slot < slots_; ++slot) {
        interface.arguments.push_back(
            {"a" + std::to_string(slot), msl::KernelArgument::Kind::device, false, slot, 1});
      }
      return make_ref<exec::NativeKernel>(
          name, std::move(interface),
          [body = metal_.bodies_.at(body_), count = size_t{slots_}](
              const jit::DispatchArguments& arguments, int64_t group) {
            int64_t size = arguments.threadgroup[0];
            int64_t end = std::min<int64_t>(arguments.grid[0], (group + 1) * size);
            for (int64_t x = group * size; x < end; ++x) body({arguments.buffers, count}, x);
          });
    }

   private:
    FakeMetal& metal_;
    const std::string body_;
    const uint32_t slots_;
  };

  class MetalTarget final : public exec::Target {
   public:
    explicit MetalTarget(FakeMetal& metal) : metal_(metal) {}
    const std::string& name() const override { return name_; }
    const std::string& identity() const override { return name_; }
    std::unique_ptr<const exec::Binary> compile(const msl::KernelSource& source,
                                                const exec::KernelOptions&) override {
      {
        std::lock_guard guard(metal_.mutex_);
        metal_.sources_.push_back(source.text);
      }
      if (metal_.hook) metal_.hook(source);
      const std::string& text = source.text;
      size_t begin = text.find("NATIVE ");
      if (begin == std::string::npos) {
        throw jit::CompileError("[" + source.kernel + "] body:1:1: error: not NATIVE");
      }
      begin += 7;
      uint32_t slots = 0;
      while (text.find("[[buffer(" + std::to_string(slots) + ")]]") != std::string::npos) ++slots;
      return std::make_unique<NamedBody>(
          metal_, text.substr(begin, text.find_first_of(" ;\n", begin) - begin), slots);
    }
    std::unique_ptr<const exec::Binary> load(std::string_view bytes) override {
      size_t space = bytes.find(' ');
      if (space == bytes.npos) return nullptr;
      return std::make_unique<NamedBody>(
          metal_, std::string(bytes.substr(space + 1)),
          static_cast<uint32_t>(std::stoul(std::string(bytes.substr(0, space)))));
    }

   private:
    FakeMetal& metal_;
    const std::string name_ = "fake metal";
  };

  static exec::KernelLibrary::Parts parts(size_t capacity, const std::string& disk_folder) {
    exec::KernelLibrary::Parts parts;
    parts.capacity = capacity;
    if (!disk_folder.empty())
      parts.disk = std::make_unique<exec::DiskCache>(disk_folder, uint64_t{1} << 30);
    return parts;
  }

  StreamContext on_cpu_{Device::cpu};
  std::map<std::string, Body> bodies_;
  sync::Mutex mutex_;
  std::vector<std::string> sources_;  // guarded by mutex_
  MetalTarget target_;
  exec::Device& device_;
  exec::Target* const outer_target_;
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
