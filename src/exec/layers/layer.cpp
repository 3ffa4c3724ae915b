#include "exec/layers/layer.h"

#include <algorithm>

#include "devices/device.h"

namespace holdfast::exec::layers {

std::atomic<uint32_t> interests{0};

namespace {

sync::Mutex mutex;
std::shared_ptr<const Chain>& chain() {
  static auto* current_chain = new std::shared_ptr<const Chain>(std::make_shared<Chain>());
  return *current_chain;
}

// The chain lives until all were told, whoever takes layers away meanwhile.
template <class Call>
void for_each_layer(Call call) {
  const std::shared_ptr<const Chain> now = current();
  for (const auto& layer : *now) call(*layer);
}

// Tells the layers where nothing may be thrown: one that has no memory does not know it.
template <class Call>
void tell(Call call) noexcept {
  try {
    for_each_layer(call);
  } catch (...) {
  }
}

void retire_pipeline(uint64_t identity) {
  tell([&](Layer& layer) { layer.on_retire_pipeline(identity); });
}

Ref<Failure> kernel_findings(const CommandList& list, const Command& command,
                             std::span<const KernelFinding> findings) {
  Ref<Failure> first;
  if (!list.layers) return first;
  const Chain& committed_under = *static_cast<const Chain*>(list.layers.get());
  for (const auto& layer : committed_under) {
    Ref<Failure> failure = layer->on_kernel_findings(list, command, findings);
    if (!first) first = failure;
  }
  return first;
}

void swap_chain(Chain changed) {
  kernel_findings_handler.store(changed.empty() ? nullptr : &kernel_findings);
  Pipeline::when_retired.store(changed.empty() ? nullptr : &retire_pipeline);
  uint32_t together = 0;
  for (const auto& layer : changed) together |= layer->interests() | Layer::lists;
  interests.store(together, std::memory_order_relaxed);
  chain() = std::make_shared<const Chain>(std::move(changed));
}

}  // namespace

void add(std::shared_ptr<Layer> layer) {
  std::lock_guard guard(mutex);
  Chain changed = *chain();
  auto place = changed.end();
  while (!layer->is_last() && place != changed.begin() && (*std::prev(place))->is_last()) --place;
  changed.insert(place, std::move(layer));
  swap_chain(std::move(changed));
}

void remove(const Layer* layer) {
  std::lock_guard guard(mutex);
  Chain changed = *chain();
  std::erase_if(changed, [&](const auto& member) { return member.get() == layer; });
  swap_chain(std::move(changed));
}

std::shared_ptr<const Chain> current() {
  std::lock_guard guard(mutex);
  return chain();
}

namespace slow {

void on_create(const Buffer& buffer) noexcept {
  tell([&](Layer& layer) { layer.on_create(buffer); });
}

void on_retire(const Buffer& buffer) noexcept {
  tell([&](Layer& layer) { layer.on_retire(buffer); });
}

void on_pipeline(const KernelRequest& request, const Pipeline& pipeline) {
  for_each_layer([&](Layer& layer) { layer.on_pipeline(request, pipeline); });
}

void on_begin() noexcept {
  tell([&](Layer& layer) { layer.on_begin(); });
}

void on_address(const Buffer& buffer) noexcept {
  tell([&](Layer& layer) { layer.on_address(buffer); });
}

Ref<const Pipeline> on_dispatch(const Pipeline& pipeline, std::span<BoundSlot> slots) {
  const std::shared_ptr<const Chain> now = current();
  for (const auto& layer : *now) {
    if (Ref<const Pipeline> checked = layer->on_dispatch(pipeline, slots)) return checked;
  }
  return nullptr;
}

void on_command(const CommandList& list) {
  for_each_layer([&](Layer& layer) { layer.on_command(list); });
}

void on_encode(const CommandList& list) {
  for_each_layer([&](Layer& layer) { layer.on_encode(list); });
}

bool wants_commit(const CommandList& list) {
  std::shared_ptr<const Chain> now = current();
  return std::any_of(now->begin(), now->end(),
                     [&](const auto& layer) { return layer->wants_commit(list); });
}

void on_observe(const DeviceQueue& queue, uint64_t serial) noexcept {
  tell([&](Layer& layer) { layer.on_observe(queue, serial); });
}

void on_take_over(const Buffer& buffer) noexcept {
  tell([&](Layer& layer) { layer.on_take_over(buffer); });
}

void on_host_access(const Buffer& buffer, int64_t begin, int64_t end) {
  // The commands themselves may ask, while they run.
  if (is_running_commands) return;
  for_each_layer([&](Layer& layer) { layer.on_host_access(buffer, begin, end); });
}

void on_host_fallback(const HostFallback& fallback) noexcept {
  tell([&](Layer& layer) { layer.on_host_fallback(fallback); });
}

void on_limit(const LimitReached& limit) noexcept {
  tell([&](Layer& layer) { layer.on_limit(limit); });
}

void on_exit() noexcept {
  tell([](Layer& layer) { layer.on_exit(); });
}

}  // namespace slow

void on_commit(CommandList& list) {
  if (!want(Layer::lists)) return;
  std::shared_ptr<const Chain> now = current();
  for (const auto& layer : *now) layer->on_commit(list);
  list.layers = std::const_pointer_cast<Chain>(now);
}

void on_complete(const CommandList& list) {
  if (!list.layers) return;
  const Chain& committed_under = *static_cast<const Chain*>(list.layers.get());
  // The outermost layer saw the list last, and sees its completion first.
  for (auto it = committed_under.rbegin(); it != committed_under.rend(); ++it) {
    (*it)->on_complete(list);
  }
}

}  // namespace holdfast::exec::layers
