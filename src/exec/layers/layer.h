// Layers: observers and transformers of the execution layer (validation, chaos, capture). The chain
// is swapped at commit boundaries: a list is committed and completed under the same layers. Without
// a layer each hook is one relaxed load.
#pragma once

#include <memory>
#include <vector>

#include "devices/command_list.h"
#include "devices/memory.h"

namespace holdfast::exec {

class Layer {
 public:
  virtual ~Layer() = default;
  // A buffer came into being or ended. Any thread, under no lock. Buffers older than the layer are
  // retired without having been created.
  virtual void on_create(const Buffer&) {}
  virtual void on_retire(const Buffer&) {}
  // A list is about to be submitted; the layer may change it. Called with the queue locked.
  virtual void on_commit(CommandList&) {}
  // Every command has run; nothing was released yet. Called by the thread that ran the list.
  virtual void on_complete(const CommandList&) {}
};

namespace layers {

using Chain = std::vector<std::shared_ptr<Layer>>;

void add(std::shared_ptr<Layer> layer);
void remove(const Layer* layer);

extern std::atomic<bool> any;
std::shared_ptr<const Chain> current();

void create_slow(const Buffer& buffer);
void retire_slow(const Buffer& buffer);

inline void on_create(const Buffer& buffer) {
  if (any.load(std::memory_order_relaxed)) create_slow(buffer);
}
inline void on_retire(const Buffer& buffer) {
  if (any.load(std::memory_order_relaxed)) retire_slow(buffer);
}
// Ties the current chain to the list and lets it see the list.
void on_commit(CommandList& list);
void on_complete(const CommandList& list);

}  // namespace layers
}  // namespace holdfast::exec
