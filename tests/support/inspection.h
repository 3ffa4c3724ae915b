// Looking into the execution layer: what is left behind, and what was committed.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "base/sync.h"
#include "exec/allocator.h"
#include "exec/buffer_pool.h"
#include "exec/layers/layer.h"
#include "exec/runtime.h"

namespace holdfast::testing {

inline exec::Queue& queue_of(Stream stream) { return exec::Runtime::get().queue(stream); }

// Waits for something that another thread is about to do. False when it did not within a minute
// (of virtual time, in the controlled preset).
template <class Predicate>
bool eventually(Predicate predicate) {
  auto deadline = sync::now() + std::chrono::minutes(1);
  while (!predicate()) {
    if (sync::now() > deadline) return false;
    sync::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

// Everything that lives now may live at the end, nothing else. Waits for all work at both times;
// deleters of a list end a little after it.
class LeakCheck {
 public:
  LeakCheck() : buffers_(count()) {}
  void check() const {
    exec::Runtime::get().drain();
    eventually([&] { return count() == buffers_; });
    CHECK(count() == buffers_);
  }

 private:
  static size_t count() {
    exec::Runtime::get().drain();
    return exec::BufferPool::get().live();
  }
  size_t buffers_;
};

// Turns retaining off for a stream: the ablation. Errors of the scope are forgotten at its end.
class WithoutRetaining {
 public:
  explicit WithoutRetaining(Stream stream) : queue_(queue_of(stream)) {
    queue_.set_retaining(false);
  }
  ~WithoutRetaining() {
    queue_.set_retaining(true);
    for (bool clean = false; !clean;) {
      try {
        queue_.synchronize();
        clean = true;
      } catch (...) {
      }
    }
  }

 private:
  exec::Queue& queue_;
};

// Keeps a copy of the topology of every list that is committed while it lives.
class CommitRecorder {
 public:
  struct RecordedBinding {
    uint64_t identity;
    const exec::Storage* storage;
    const void* address;
    int64_t begin, end;
    bool writes;
  };
  struct RecordedCommand {
    std::string op;
    std::vector<RecordedBinding> bindings;
    std::vector<exec::Edge> edges;
  };
  struct RecordedList {
    const exec::DeviceQueue* queue;
    uint64_t serial;
    size_t waits;
    std::vector<RecordedCommand> commands;
  };

  CommitRecorder() : layer_(std::make_shared<Recorder>()) { exec::layers::add(layer_); }
  ~CommitRecorder() { exec::layers::remove(layer_.get()); }

  // The lists of a stream that have at least one command, so far.
  std::vector<RecordedList> lists(Stream stream) const {
    std::lock_guard guard(layer_->mutex);
    std::vector<RecordedList> result;
    for (const RecordedList& list : layer_->lists) {
      if (list.queue == &queue_of(stream).device_queue() && !list.commands.empty())
        result.push_back(list);
    }
    return result;
  }

 private:
  struct Recorder : exec::Layer {
    void on_commit(exec::CommandList& list) override {
      RecordedList recorded{list.queue, list.serial, list.waits.size(), {}};
      for (const exec::Command& command : list.commands) {
        RecordedCommand copy{command.op, {}, {}};
        for (uint32_t i = 0; i < command.binding_count; ++i) {
          const exec::Binding& binding = list.bindings[command.first_binding + i];
          copy.bindings.push_back({binding.identity, binding.storage, binding.storage->address,
                                   binding.begin, binding.end, binding.writes});
        }
        for (uint32_t i = 0; i < command.edge_count; ++i) {
          copy.edges.push_back(list.edges[command.first_edge + i]);
        }
        recorded.commands.push_back(std::move(copy));
      }
      std::lock_guard guard(mutex);
      lists.push_back(std::move(recorded));
    }
    mutable sync::Mutex mutex;
    std::vector<RecordedList> lists;
  };
  std::shared_ptr<Recorder> layer_;
};

}  // namespace holdfast::testing
