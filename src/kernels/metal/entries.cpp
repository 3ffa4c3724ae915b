#include "kernels/metal/entries.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "base/sync.h"
#include "base/text.h"
#include "devices/device.h"
#include "exec/kernel_library.h"

namespace holdfast::kernels::metal {
namespace {

Ref<const exec::KernelRequest> make_request(exec::Target& target, const char* source,
                                            const std::string& name, const Constants& constants) {
  const std::vector<EmbeddedSource>& all = embedded_sources();
  auto found = std::find_if(all.begin(), all.end(), [&](const EmbeddedSource& one) {
    return source == std::string(one.name);
  });
  if (found == all.end()) throw std::logic_error(text("there is no file ", source, ".metal"));
  msl::KernelSource kernel;
  kernel.kernel = kernel.entry = name;
  kernel.text = found->text;
  kernel.constants = constants;
  exec::KernelOptions options;
  options.is_of_library = true;
  return make_ref<exec::KernelRequest>(std::move(kernel), options, target);
}

// Requests are made once: the library finds one that it has seen without comparing its bytes.
class Requests {
 public:
  static Requests& get() {
    static auto* requests = new Requests;
    return *requests;
  }

  Ref<const exec::KernelRequest> find(exec::Target& target, const char* source,
                                      const std::string& name, const Constants& constants) {
    std::string key = text(target.name(), '/', source, '/', name);
    for (const msl::FunctionConstant& constant : constants) {
      key += text(' ', constant.index, '=');
      for (uint64_t bits : constant.bits) key += text(bits, ',');
    }
    std::lock_guard guard(mutex_);
    Ref<const exec::KernelRequest>& request = table_[key];
    if (!request) request = make_request(target, source, name, constants);
    return request;
  }

 private:
  sync::Mutex mutex_;
  std::unordered_map<std::string, Ref<const exec::KernelRequest>> table_;  // guarded by mutex_
};

}  // namespace

Ref<exec::Pipeline> find_entry(const exec::Device& device, const char* source,
                               const std::string& name, const Constants& constants) {
  if (!device.target || !device.target->has_compiler()) throw exec::NoKernel();
  return exec::KernelLibrary::get().get(
      Requests::get().find(*device.target, source, name, constants));
}

}  // namespace holdfast::kernels::metal
