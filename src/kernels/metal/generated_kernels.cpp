#include "kernels/metal/generated_kernels.h"

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/environment.h"
#include "base/sync.h"
#include "exec/background.h"
#include "exec/kernel_library.h"

namespace holdfast::kernels::metal {
namespace {

using environment::CompileKernels;

// What groups of one kind have computed when their kernel is made.
constexpr int64_t worth_compiling = int64_t{1} << 24;
constexpr int64_t call_weight = int64_t{1} << 14;
constexpr size_t most_variants = 4096;

struct Variant {
  enum class State : uint8_t { interpreted, wanted, ready, impossible };
  sync::Atomic<State> state{State::interpreted};
  sync::Atomic<int64_t> work{0};       // lost additions do no harm
  Ref<const exec::Pipeline> pipeline;  // once it is ready
};

class Variants {
 public:
  static Variants& get() {
    static auto* variants = new Variants;  // as long as the process
    return *variants;
  }

  // Null when there are too many.
  std::shared_ptr<Variant> find(const std::string& key) {
    std::lock_guard guard(mutex_);
    auto found = table_.find(key);
    if (found != table_.end()) return found->second;
    if (table_.size() == most_variants) return nullptr;
    return table_.emplace(key, std::make_shared<Variant>()).first->second;
  }

 private:
  sync::Mutex mutex_{sync::Rank::generated_kernels};
  std::unordered_map<std::string, std::shared_ptr<Variant>> table_;  // guarded by mutex_
};

std::string key_on(exec::Target& target, const GeneratedGroup& group) {
  return key_of(group) + target.name();
}

bool is_wanted_by(Variant& variant) {
  Variant::State expected = Variant::State::interpreted;
  return variant.state.load(std::memory_order_relaxed) == expected &&
         variant.state.compare_exchange_strong(expected, Variant::State::wanted);
}

void make(exec::Target& target, const GeneratedGroup& group, Variant& variant) noexcept {
  try {
    msl::KernelSource source;
    source.kernel = source.entry = "compiled";
    source.text = source_of(group);
    variant.pipeline = exec::KernelLibrary::get().get(
        make_ref<exec::KernelRequest>(std::move(source), exec::KernelOptions{}, target));
    variant.state.store(Variant::State::ready, std::memory_order_release);
  } catch (const std::exception&) {
    // No compiler, or no memory: the interpreter does as well.
    variant.state.store(Variant::State::impossible);
  }
}

}  // namespace

Ref<const exec::Pipeline> find_generated(exec::Device& device, const GeneratedGroup& group,
                                         int64_t elements) {
  const CompileKernels setting = environment::settings().compile_kernels;
  if (setting == CompileKernels::never || !device.target) return nullptr;
  std::shared_ptr<Variant> variant = Variants::get().find(key_on(*device.target, group));
  if (!variant) return nullptr;
  if (variant->state.load(std::memory_order_acquire) == Variant::State::ready)
    return variant->pipeline;
  const int64_t work = variant->work.load(std::memory_order_relaxed) + elements + call_weight;
  variant->work.store(work, std::memory_order_relaxed);
  if ((work >= worth_compiling || setting == CompileKernels::at_once) && is_wanted_by(*variant)) {
    exec::run_in_background(
        [&target = *device.target, group, variant] { make(target, group, *variant); });
  }
  return nullptr;
}

void make_generated(exec::Device& device, const GeneratedGroup& group) {
  if (environment::settings().compile_kernels != CompileKernels::at_once || !device.target) return;
  std::shared_ptr<Variant> variant = Variants::get().find(key_on(*device.target, group));
  if (variant && is_wanted_by(*variant)) make(*device.target, group, *variant);
}

}  // namespace holdfast::kernels::metal
