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

// Machine code; else it is PTX.
constexpr std::string_view elf_magic =
    "\x7f"
    "ELF";

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
      return std::make_unique<CudaBinary>(compile_images_of(source, options), gpu_);
    } catch (const msl::CompileError&) {
      throw;
    } catch (const std::exception& error) {
      throw std::runtime_error("[" + source.kernel + "] " + error.what());
    }
  }

  std::unique_ptr<const exec::Binary> load(std::string_view bytes) override {
    std::optional<CompiledKernel> kernel = CompiledKernel::from_bytes(bytes);
    if (!kernel) return nullptr;
    if (gpu_) assemble_images(*kernel);
    return std::make_unique<CudaBinary>(std::move(*kernel), gpu_);
  }

  std::vector<std::string> image_names(const exec::KernelOptions& options) const override {
    if (!options.is_of_library || compiler_for_tests()) return {};
    if (architecture_ < 90) return {image_name(80)};
    return {image_name(90), image_name(80)};
  }
  bool assembles_images() const override { return true; }

 private:
  CompiledKernel compile_images_of(const msl::KernelSource& source,
                                   const exec::KernelOptions& options) const {
    jit::Compiler& compiler = jit::default_compiler();
    PtxOptions ptx;
    ptx.target = architecture_;
    ptx.guarded = options.guarded;
    ptx.dump_directory = environment::settings().dump_kernels;
    const std::vector<PtxOptions> images = image_options(ptx, options.is_of_library);
    CompiledKernel kernel = to_images(images, compiler.compile_to_ptx(source, images));
    assemble_images(kernel);
    return kernel;
  }

  void assemble_images(CompiledKernel& kernel) const {
    for (KernelImage& image : kernel.images) {
      if (!image.code.starts_with(elf_magic))
        image.code = assembled(image.code, architecture_, gpu_);
    }
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
