#include "exec/kernel_warming.h"

#include <cstdio>
#include <stdexcept>

#include "exec/kernel_library.h"

namespace holdfast::exec {
namespace {

Target* warmed = nullptr;

void warm(const KernelRequest& request) {
  if (request.options().variant != 0 || !request.is_cacheable()) return;
  try {
    warm_kernel(request.source(), request.options(), *warmed);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "holdfast: not compiled for %s: %s\n", warmed->name().c_str(),
                 error.what());
  }
}

}  // namespace

bool warm_kernel(const msl::KernelSource& source, const KernelOptions& options, Target& target) {
  static DiskCache* cache = KernelLibrary::process_parts().disk.release();
  if (!cache)
    throw std::runtime_error("[kernel] there is no cache on disk that kernels could be kept in");
  const KernelRequest request(source, options, target);
  if (cache->load(request)) return false;
  cache->store(request, *target.compile(source, options));
  return true;
}

void warm_for(Target& target) {
  warmed = &target;
  KernelLibrary::when_made = warm;
}

}  // namespace holdfast::exec
