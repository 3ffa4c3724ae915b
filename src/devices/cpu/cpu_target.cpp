#include "devices/cpu/cpu_target.h"

#include <cstdio>
#include <stdexcept>
#include <utility>

#include "base/byte_stream.h"
#include "base/environment.h"
#include "devices/cpu/jit/kernel_format.h"
#include "devices/cpu/jit_kernel.h"

namespace holdfast::exec {
namespace {

class CpuBinary final : public Binary {
 public:
  explicit CpuBinary(jit::CompiledKernel kernel) : kernel_(std::move(kernel)) {}

  std::string bytes() const override { return jit::to_bytes(kernel_); }
  Ref<Pipeline> make_pipeline(const std::string& name) const override {
    // It works, but not at the speed that was asked for: the author should know why.
    if (!kernel_.remark.empty()) {
      std::fprintf(stderr, "holdfast: kernel \"%s\" runs on the reference lowering, slowly: %s\n",
                   name.c_str(), kernel_.remark.c_str());
    }
    return make_ref<JitKernel>(jit::CpuPipeline::load(name, kernel_));
  }

 private:
  const jit::CompiledKernel kernel_;
};

class CpuTarget final : public Target {
 public:
  explicit CpuTarget(machine::InstructionSet set)
      : set_(set),
        name_(machine::instruction_set_name(set)),
        identity_(cpu_target_identity(jit::default_compiler_version(), set)) {}

  const std::string& name() const override { return name_; }
  const std::string& identity() const override { return identity_; }
  KernelLimits limits() const override {
    return {jit::max_threads_per_threadgroup, jit::max_threadgroup_memory, jit::max_grid};
  }

  bool has_compiler() const override { return jit::default_compiler_version() != "none"; }

  std::unique_ptr<const Binary> compile(const msl::KernelSource& source,
                                        const KernelOptions& options) override {
    jit::CompileOptions own;
    own.lowering = static_cast<jit::Lowering>(options.variant);
    own.instruction_set = set_;
    own.guarded = options.guarded;
    own.threadgroup = options.threadgroup;
    own.dump_directory = environment::settings().dump_kernels;
    jit::Compiler& compiler = jit::default_compiler();
    try {
      return std::make_unique<CpuBinary>(compiler.compile(source, own));
    } catch (const jit::CompileError&) {
      throw;
    } catch (const std::exception& error) {
      // Not the source's fault, but the user wants to know whose kernel it was.
      throw std::runtime_error("[" + source.kernel + "] " + error.what());
    }
  }

  std::unique_ptr<const Binary> load(std::string_view bytes) override {
    std::optional<jit::CompiledKernel> kernel = jit::from_bytes(bytes);
    return kernel ? std::make_unique<CpuBinary>(std::move(*kernel)) : nullptr;
  }

  std::vector<std::string> image_names(const KernelOptions& options) const override {
    if (options.variant != static_cast<uint64_t>(jit::Lowering::automatic) || options.guarded)
      return {};
    return {jit::image_name(set_)};
  }

  uint64_t reference_variant() const override {
    return static_cast<uint64_t>(jit::Lowering::reference);
  }
  uint64_t checked_variant() const override {
    return static_cast<uint64_t>(jit::Lowering::checked);
  }

 private:
  const machine::InstructionSet set_;
  const std::string name_, identity_;
};

}  // namespace

std::string cpu_target_identity(const std::string& compiler_version, machine::InstructionSet set) {
  ByteWriter identity;
  identity.value(jit::abi_version);
  identity.text(compiler_version);
  identity.value(set);
  return identity.take();
}

Target& cpu_target(machine::InstructionSet set) {
  using machine::InstructionSet;
  static auto* targets =
      new CpuTarget[3]{CpuTarget(InstructionSet::baseline), CpuTarget(InstructionSet::avx2),
                       CpuTarget(InstructionSet::avx512)};
  return targets[static_cast<size_t>(set)];
}

Target& cpu_target() { return cpu_target(jit::host_instruction_set()); }

}  // namespace holdfast::exec
