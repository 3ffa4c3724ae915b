// The kernel library of the process: the JIT of the CPU device behind it, and the user's disk
// cache.
#include "base/environment.h"
#include "base/process.h"
#include "devices/cpu/jit_kernel.h"
#include "exec/kernel_library.h"

namespace holdfast::exec {
namespace {

sync::Atomic<KernelLibrary*> replacement{nullptr};

std::unique_ptr<DiskCache> make_disk_cache(const environment::Settings& settings) {
  std::string folder = DiskCache::default_folder();
  if (!settings.disk_cache || folder.empty()) return nullptr;
  return std::make_unique<DiskCache>(std::move(folder), settings.disk_cache_bytes);
}

KernelLibrary* make_library() {
  const environment::Settings& settings = environment::settings();
  KernelLibrary::Parts parts;
  parts.compile = [](const KernelRequest& request) {
    return jit::default_compiler().compile(request.source(), request.options());
  };
  parts.load = [](const std::string& name, jit::CompiledKernel kernel) -> Ref<Pipeline> {
    return make_ref<JitKernel>(jit::CpuPipeline::load(name, std::move(kernel)));
  };
  // Known without loading the compiler.
  parts.compiler_version = jit::default_compiler_version();
  parts.capacity = settings.kernel_cache_entries;
  parts.disk = make_disk_cache(settings);
  return new KernelLibrary(std::move(parts));
}

}  // namespace

KernelLibrary& KernelLibrary::get() {
  if (KernelLibrary* library = replacement.load(std::memory_order_acquire)) return *library;
  process::check_usable();
  static KernelLibrary* library = make_library();
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
