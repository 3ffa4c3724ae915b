// Layers: observers and transformers of the execution layer (validation, chaos, capture). The chain
// is swapped at commit boundaries: a list is committed and completed under the same layers. A hook
// that no layer is interested in is one relaxed load.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "devices/command_list.h"
#include "devices/kernel_finding.h"
#include "devices/memory.h"

namespace holdfast::exec {

class KernelRequest;

// Memory was wanted that a limit leaves no room for.
struct LimitReached {
  enum class Kind : uint8_t {
    memory,          // more than the memory limit
    wired,           // more than the wired limit: it stays unwired
    refused,         // the system does not let the process lock it: it stays unwired
    residency_sets,  // a set more than Metal attaches to a queue
  };
  Kind kind;
  const char* op = "";  // that wanted the memory
  size_t bytes = 0;     // wanted
  size_t used = 0, limit = 0;
};

// An op of a device's stream was encoded for the host, since the device has no kernel for it.
struct HostFallback {
  const char* op;
  const label::Label* label;
  int stream;
  const char* device;                     // whose memory it is (MemorySpace::name)
  size_t bytes_to_host, bytes_to_device;  // copied for it
};

class Layer {
 public:
  virtual ~Layer() = default;
  // What it is told of, beside lists that are committed and completed.
  enum Interest : uint32_t {
    lists = 1,
    buffers = 2,        // on_create, on_retire
    host_accesses = 4,  // on_host_access
    encoding = 8,       // everything else
    everything = 15,
  };
  virtual uint32_t interests() const { return everything; }
  // Does it need lists as they will run? Then it comes behind the layers that may change them.
  virtual bool is_last() const { return false; }
  // A buffer came into being or ended. Any thread, under no lock. Buffers older than the layer are
  // retired without having been created.
  virtual void on_create(const Buffer&) {}
  virtual void on_retire(const Buffer&) {}
  // A pipeline ended. Any thread; the library may hold its lock.
  virtual void on_retire_pipeline(uint64_t /*identity*/) {}
  // The kernel library answered a request. Under no lock.
  virtual void on_pipeline(const KernelRequest&, const Pipeline&) {}
  // The calling thread begins to encode an op.
  virtual void on_begin() {}
  // The calling thread asked for the address of a buffer's bytes. Under any lock.
  virtual void on_address(const Buffer&) {}
  // A dispatch of the pipeline is about to be added to the open list. Returns one that does the
  // same and has what its threads do wrong found, to run in its place; null: none. Called with the
  // queue locked; what it throws, the op throws.
  virtual Ref<const Pipeline> on_dispatch(const Pipeline&, std::span<BoundSlot>) { return nullptr; }
  // The last command of the open list was added, by the op that is being encoded. Called with the
  // queue locked; what it throws, the op throws.
  virtual void on_command(const CommandList&) {}
  // An op was encoded: everything in the open list will run. As above. An op that throws has no
  // such call: its commands are gone from the list when the list is committed.
  virtual void on_encode(const CommandList&) {}
  // Should the open list, to which an op was added, be committed now? With the queue locked.
  virtual bool wants_commit(const CommandList&) { return false; }
  // A list is about to be submitted; the layer may change it. Called with the queue locked.
  virtual void on_commit(CommandList&) {}
  // Every command has run; nothing was released yet. Called by the thread that ran the list.
  virtual void on_complete(const CommandList&) {}
  // An instrumented kernel found something wrong. Called by the thread that runs the dispatch,
  // which fails with what is returned; null: it does not.
  virtual Ref<Failure> on_kernel_findings(const CommandList&, const Command&,
                                          std::span<const KernelFinding>) {
    return nullptr;
  }
  // Somebody who may act on it was told that the queue's lists up to `serial` have completed. Any
  // thread, under any lock of the runtime.
  virtual void on_observe(const DeviceQueue&, uint64_t /*serial*/) {}
  // An op found that only its own queue still uses the buffer, and writes into it.
  virtual void on_take_over(const Buffer&) {}
  // The host asked for the address of bytes that it may read or write, under no lock. What it
  // throws, the caller throws.
  virtual void on_host_access(const Buffer&, int64_t /*begin*/, int64_t /*end*/) {}
  // Under no lock.
  virtual void on_host_fallback(const HostFallback&) {}
  // With the allocator locked.
  virtual void on_limit(const LimitReached&) {}
  // The process ends. Under no lock, before the runtime stops.
  virtual void on_exit() {}
};

namespace layers {

using Chain = std::vector<std::shared_ptr<Layer>>;

void add(std::shared_ptr<Layer> layer);
void remove(const Layer* layer);

// What the layers of the chain are interested in, together; 0 without one.
extern std::atomic<uint32_t> interests;
std::shared_ptr<const Chain> current();

inline bool want(Layer::Interest interest) {
  return interests.load(std::memory_order_relaxed) & interest;
}

namespace slow {
void on_create(const Buffer& buffer) noexcept;
void on_retire(const Buffer& buffer) noexcept;
void on_pipeline(const KernelRequest& request, const Pipeline& pipeline);
void on_begin() noexcept;
void on_address(const Buffer& buffer) noexcept;
Ref<const Pipeline> on_dispatch(const Pipeline& pipeline, std::span<BoundSlot> slots);
void on_command(const CommandList& list);
void on_encode(const CommandList& list);
bool wants_commit(const CommandList& list);
void on_observe(const DeviceQueue& queue, uint64_t serial) noexcept;
void on_take_over(const Buffer& buffer) noexcept;
void on_host_access(const Buffer& buffer, int64_t begin, int64_t end);
void on_host_fallback(const HostFallback& fallback) noexcept;
void on_limit(const LimitReached& limit) noexcept;
void on_exit() noexcept;
}  // namespace slow

inline void on_create(const Buffer& buffer) {
  if (want(Layer::buffers)) [[unlikely]]
    slow::on_create(buffer);
}
inline void on_retire(const Buffer& buffer) {
  if (want(Layer::buffers)) [[unlikely]]
    slow::on_retire(buffer);
}
inline void on_pipeline(const KernelRequest& request, const Pipeline& pipeline) {
  if (want(Layer::encoding)) [[unlikely]]
    slow::on_pipeline(request, pipeline);
}
inline void on_begin() {
  if (want(Layer::encoding)) [[unlikely]]
    slow::on_begin();
}
inline void on_address(const Buffer& buffer) {
  if (want(Layer::encoding)) [[unlikely]]
    slow::on_address(buffer);
}
inline Ref<const Pipeline> on_dispatch(const Pipeline& pipeline, std::span<BoundSlot> slots) {
  return want(Layer::encoding) ? slow::on_dispatch(pipeline, slots) : nullptr;
}
inline void on_command(const CommandList& list) {
  if (want(Layer::encoding)) [[unlikely]]
    slow::on_command(list);
}
inline void on_encode(const CommandList& list) {
  if (want(Layer::encoding)) [[unlikely]]
    slow::on_encode(list);
}
inline bool wants_commit(const CommandList& list) {
  return want(Layer::encoding) && slow::wants_commit(list);
}
inline void on_observe(const DeviceQueue& queue, uint64_t serial) {
  if (want(Layer::encoding)) [[unlikely]]
    slow::on_observe(queue, serial);
}
inline void on_take_over(const Buffer& buffer) {
  if (want(Layer::encoding)) [[unlikely]]
    slow::on_take_over(buffer);
}
inline void on_limit(const LimitReached& limit) {
  if (want(Layer::encoding)) [[unlikely]]
    slow::on_limit(limit);
}
inline void on_exit() {
  if (want(Layer::encoding)) [[unlikely]]
    slow::on_exit();
}
// Ties the current chain to the list and lets it see the list.
void on_commit(CommandList& list);
void on_complete(const CommandList& list);

}  // namespace layers
}  // namespace holdfast::exec
