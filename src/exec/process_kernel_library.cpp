// The kernel library of the process: the JIT of the CPU device behind it, and the user's disk
// cache.
#include <cstdio>

#include "base/environment.h"
#include "base/process.h"
#include "devices/cpu/jit_kernel.h"
#include "exec/kernel_library.h"

namespace holdfast::exec {
namespace {

sync::Atomic<KernelLibrary*> replacement{nullptr};

std::unique_ptr<DiskCache> make_disk_cache(const environment::Settings& settings) {
  std::string folder = DiskCache::default_folder();
  // A kernel that comes from disk leaves nothing to look at.
  if (!settings.disk_cache || folder.empty() || !settings.dump_kernels.empty()) return nullptr;
  return std::make_unique<DiskCache>(std::move(folder), settings.disk_cache_bytes);
}

}  // namespace

KernelLibrary::Parts KernelLibrary::process_parts() {
  const environment::Settings& settings = environment::settings();
  Parts parts;
  parts.compile = [&settings](const KernelRequest& request) {
    jit::Compiler& compiler = jit::default_compiler();
    jit::CompileOptions options = request.options();
    options.dump_directory = settings.dump_kernels;
    try {
      return compiler.compile(request.source(), options);
    } catch (const jit::CompileError&) {
      throw;
    } catch (const std::exception& error) {
      // Not the source's fault, but the user wants to know whose kernel it was.
      throw std::runtime_error("[" + request.source().kernel + "] " + error.what());
    }
  };
  parts.load = [](const std::string& name, jit::CompiledKernel kernel) -> Ref<Pipeline> {
    // It works, but not at the speed that was asked for: the author should know why.
    if (!kernel.remark.empty()) {
      std::fprintf(stderr, "holdfast: kernel \"%s\" runs on the reference lowering, slowly: %s\n",
                   name.c_str(), kernel.remark.c_str());
    }
    return make_ref<JitKernel>(jit::CpuPipeline::load(name, std::move(kernel)));
  };
  // Known without loading the compiler.
  parts.compiler_version = jit::default_compiler_version();
  parts.capacity = settings.kernel_cache_entries;
  parts.disk = make_disk_cache(settings);
  return parts;
}

KernelLibrary& KernelLibrary::get() {
  if (KernelLibrary* library = replacement.load(std::memory_order_acquire)) return *library;
  process::check_usable();
  static auto* library = new KernelLibrary(process_parts());
  return *library;
}

void KernelLibrary::replace(KernelLibrary* library) {
  replacement.store(library, std::memory_order_release);
}

}  // namespace holdfast::exec

namespace holdfast {

KernelCacheStats kernel_cache_stats() { return exec::KernelLibrary::get().stats(); }
void reset_kernel_cache_stats() { exec::KernelLibrary::get().reset_stats(); }
void clear_kernel_cache() { exec::KernelLibrary::get().clear(); }

}  // namespace holdfast
