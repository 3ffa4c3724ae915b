#include "kernels/metal/entries.h"

#include <algorithm>
#include <iterator>
#include <list>
#include <stdexcept>
#include <unordered_map>

#include "base/sync.h"
#include "base/text.h"
#include "devices/device.h"
#include "exec/kernel_library.h"

namespace holdfast::kernels::metal {
namespace {

const EmbeddedSource& find_source(std::string_view name) {
  const std::vector<EmbeddedSource>& all = embedded_sources();
  auto found = std::find_if(all.begin(), all.end(),
                            [&](const EmbeddedSource& one) { return name == one.name; });
  if (found == all.end()) throw std::logic_error(text("there is no file ", name, ".metal"));
  return *found;
}

Ref<const exec::KernelRequest> make_request(exec::Target& target, const char* source,
                                            const std::string& name, const Constants& constants) {
  msl::KernelSource kernel;
  kernel.kernel = kernel.entry = name;
  kernel.text = find_source(source).text;
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

  // Null where there is neither an image nor a compiler.
  Ref<const exec::KernelRequest> find(exec::Target& target, const char* source,
                                      const std::string& name, const Constants& constants) {
    std::string key = text(target.name(), '/', source, '/', name);
    for (const msl::FunctionConstant& constant : constants) {
      key += text(' ', constant.index, '=');
      for (uint64_t bits : constant.bits) key += text(bits, ',');
    }
    {
      std::lock_guard guard(mutex_);
      auto found = table_.find(key);
      if (found != table_.end()) return found->second;
    }
    Ref<const exec::KernelRequest> made = make_request(target, source, name, constants);
    if (!target.has_compiler() && find_image(*made).empty()) made = nullptr;
    std::lock_guard guard(mutex_);
    return table_.try_emplace(std::move(key), std::move(made)).first->second;
  }

 private:
  sync::Mutex mutex_;
  std::unordered_map<std::string, Ref<const exec::KernelRequest>> table_;  // guarded by mutex_
};

}  // namespace

Ref<exec::Pipeline> find_entry(const exec::Device& device, const char* source,
                               const std::string& name, const Constants& constants) {
  if (!device.target) throw exec::NoKernel();
  const Ref<const exec::KernelRequest> request =
      Requests::get().find(*device.target, source, name, constants);
  if (!request) throw exec::NoKernel();
  return exec::KernelLibrary::get().get(request);
}

exec::KernelImages& images_of(std::string_view source) {
  static auto* const all = [] {
    auto* images = new std::list<exec::KernelImages>;
    for (const EmbeddedSource& one : embedded_sources()) images->emplace_back(one.images, one.text);
    return images;
  }();
  const auto number = &find_source(source) - embedded_sources().data();
  return *std::next(all->begin(), number);
}

std::string_view find_image(const exec::KernelRequest& request) {
  const msl::KernelSource& source = request.source();
  if (source.math != msl::MathMode::safe || !source.constants.empty() || !source.directory.empty())
    return {};
  for (const EmbeddedSource& one : embedded_sources()) {
    if (one.images.empty() || one.text != source.text) continue;
    for (const std::string& image : request.target().image_names(request.options())) {
      const std::string_view bytes = images_of(one.name).find(image, source.entry);
      if (!bytes.empty()) return bytes;
    }
  }
  return {};
}

}  // namespace holdfast::kernels::metal
