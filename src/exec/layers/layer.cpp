#include "exec/layers/layer.h"

#include <algorithm>

namespace holdfast::exec::layers {

std::atomic<bool> any{false};

namespace {

sync::Mutex mutex;
std::shared_ptr<const Chain>& chain() {
  static auto* current_chain = new std::shared_ptr<const Chain>(std::make_shared<Chain>());
  return *current_chain;
}

void swap_chain(Chain changed) {
  any.store(!changed.empty(), std::memory_order_relaxed);
  chain() = std::make_shared<const Chain>(std::move(changed));
}

}  // namespace

void add(std::shared_ptr<Layer> layer) {
  std::lock_guard guard(mutex);
  Chain changed = *chain();
  changed.push_back(std::move(layer));
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

void create_slow(const Buffer& buffer) {
  for (const auto& layer : *current()) layer->on_create(buffer);
}

void retire_slow(const Buffer& buffer) {
  for (const auto& layer : *current()) layer->on_retire(buffer);
}

void on_commit(CommandList& list) {
  if (!any.load(std::memory_order_relaxed)) return;
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
