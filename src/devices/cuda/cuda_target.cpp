#include "devices/cuda/cuda_target.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>

#include "base/byte_stream.h"
#include "base/environment.h"
#include "devices/cpu/jit/compiler.h"
#include "devices/cuda/assembler.h"

namespace holdfast::cuda {
namespace {

// Changes with the layout of parameters and with what images count on.
constexpr uint32_t abi_version = 1;

constexpr size_t most_arguments = 64;

// The driver's linker makes machine code of PTX; without a GPU NVIDIA's assembler does, where it is
// installed. Else the driver compiles the PTX each time that it is loaded.
std::string assembled(const std::string& ptx, uint32_t architecture, Gpu* gpu) {
  if (gpu && !gpu->is_lost()) {
    gpu->use();
    Driver& driver = gpu->driver();
    Link link = nullptr;
    driver.create_link(0, nullptr, nullptr, &link);
    void* code = nullptr;
    size_t size = 0;
    int failed = driver.add_to_link.attempt(link, ptx_input, const_cast<char*>(ptx.c_str()),
                                            ptx.size() + 1, "kernel", 0, nullptr, nullptr);
    if (!failed) failed = driver.complete_link.attempt(link, &code, &size);
    std::string result;
    if (!failed) result.assign(static_cast<const char*>(code), size);
    driver.destroy_link.attempt(link);
    if (failed) driver.fail("cuLinkComplete", failed);
    return result;
  }
  static const std::string assembler = find_assembler();
  if (assembler.empty()) return ptx;
  const AssembledKernel kernel = assemble(assembler, ptx, architecture);
  return {kernel.cubin.begin(), kernel.cubin.end()};
}

CompileFunction& compiler_for_tests() {
  static auto* compile = new CompileFunction;
  return *compile;
}

class CudaBinary final : public exec::Binary {
 public:
  CudaBinary(CompiledKernel kernel, Gpu* gpu) : kernel_(std::move(kernel)), gpu_(gpu) {}
  std::string bytes() const override { return kernel_.to_bytes(); }
  Ref<exec::Pipeline> make_pipeline(const std::string& name) const override {
    if (!gpu_) throw std::runtime_error("[" + name + "] there is no GPU to run it");
    return make_ref<GpuKernel>(*gpu_, name, kernel_);
  }

 private:
  const CompiledKernel kernel_;
  Gpu* const gpu_;
};

class CudaTarget final : public exec::Target {
 public:
  CudaTarget(uint32_t architecture, Gpu* gpu)
      : architecture_(architecture), gpu_(gpu), name_("sm_" + std::to_string(architecture)) {
    ByteWriter identity;
    identity.text("cuda");
    identity.value(abi_version);
    identity.text(jit::default_compiler_version());
    identity.value(architecture);
    identity_ = identity.take();
  }

  const std::string& name() const override { return name_; }
  const std::string& identity() const override { return identity_; }
  bool has_compiler() const override {
    return jit::default_compiler_version() != "none" || compiler_for_tests();
  }

  std::unique_ptr<const exec::Binary> compile(const msl::KernelSource& source,
                                              const exec::KernelOptions& options) override {
    if (compiler_for_tests())
      return std::make_unique<CudaBinary>(compiler_for_tests()(source, options), gpu_);
    try {
      return std::make_unique<CudaBinary>(compile_images(source, options), gpu_);
    } catch (const msl::CompileError&) {
      throw;
    } catch (const std::exception& error) {
      throw std::runtime_error("[" + source.kernel + "] " + error.what());
    }
  }

  std::unique_ptr<const exec::Binary> load(std::string_view bytes) override {
    std::optional<CompiledKernel> kernel = CompiledKernel::from_bytes(bytes);
    return kernel ? std::make_unique<CudaBinary>(std::move(*kernel), gpu_) : nullptr;
  }

 private:
  // Kernels of the library look at the alignment of what they are given themselves, and get no
  // arrays in constant memory. Those of programs are guarded, unless the program wants otherwise.
  CompiledKernel compile_images(const msl::KernelSource& source,
                                const exec::KernelOptions& options) const {
    jit::Compiler& compiler = jit::default_compiler();
    CompiledKernel result;
    result.guarded = options.guarded;
    result.can_be_cancelled = !options.is_of_library;
    result.has_inline_constants = options.is_of_library;
    PtxOptions ptx;
    ptx.target = architecture_;
    ptx.guarded = options.guarded;
    ptx.can_be_cancelled = result.can_be_cancelled;
    ptx.trusts_source_alignment = options.is_of_library;
    ptx.dump_directory = environment::settings().dump_kernels;
    ptx.has_inline_constants = result.has_inline_constants;
    auto add = [&](Positions positions, uint32_t alignment, bool distinct) {
      ptx.positions = positions;
      ptx.full_simdgroups = positions == Positions::rows;
      ptx.distinct = distinct;
      ptx.alignment.assign(most_arguments, alignment);
      PtxKernel kernel = compiler.compile_to_ptx(source, ptx);
      result.interface = kernel.interface;
      result.images.push_back({positions, alignment, distinct, kernel.symbol,
                               assembled(kernel.text, architecture_, gpu_)});
    };
    // Outputs of programs' kernels share no memory with inputs, unless they bind them so.
    add(Positions::rows, 16, !options.is_of_library);
    add(Positions::general, 1, false);
    return result;
  }

  const uint32_t architecture_;
  Gpu* const gpu_;
  const std::string name_;
  std::string identity_;
};

}  // namespace

exec::Target& cuda_target(uint32_t architecture, Gpu* gpu) {
  static sync::Mutex mutex;
  static auto* targets = new std::map<std::pair<uint32_t, Gpu*>, CudaTarget*>;
  std::lock_guard guard(mutex);
  CudaTarget*& target = (*targets)[{architecture, gpu}];
  if (!target) target = new CudaTarget(architecture, gpu);
  return *target;
}

void set_compiler_for_tests(CompileFunction compile) { compiler_for_tests() = std::move(compile); }

}  // namespace holdfast::cuda
