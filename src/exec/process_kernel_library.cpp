// The kernel library of the process, with the user's disk cache.
#include "base/environment.h"
#include "base/process.h"
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
