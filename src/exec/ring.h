// Ring: the last command lists of a queue, as plain records, always on (HOLDFAST_RING). It retains
// nothing: names of ops are literals, and everything else is a copy. When a command fails, a report
// is made of the ring of its queue, and written to a file where nothing handles the failure
// (exec/unhandled_failures.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/sync.h"
#include "base/ticks.h"
#include "devices/command_list.h"
#include "devices/failure.h"

namespace holdfast::exec {

class Ring {
 public:
  // A list is about to be submitted. Called with the queue locked. Allocates for the first one.
  // `owns_pipelines`: it retains what it dispatches. Where lists own nothing (HOLDFAST_RETAIN), a
  // pipeline may have been destroyed, and its name is left out.
  void add(const CommandList& list, bool owns_pipelines) noexcept;
  // A command of the list failed: what the ring knows, as text; empty when it is off. Any thread.
  std::string report(const CommandList& list, const Command& command, const Failure& failure);

  // Of this process; for one arm of a benchmark.
  static inline std::atomic<bool> is_on{true};

 private:
  struct CommandRecord {
    const char* op;  // a literal
    int64_t work;
    uint64_t last_binding;  // a buffer: mostly what it writes
    uint32_t bindings;
    Command::Kind kind;
    char kernel[19];  // of a dispatch: as much of its name as fits
  };
  struct ListRecord {
    uint64_t serial = 0;     // 0: none
    uint64_t committed = 0;  // in ticks
    uint64_t first = 0;      // of its commands, among all of the queue's
    uint32_t count = 0;
  };

  const TickClock clock_;
  sync::SpinLock lock_;
  // Guarded by lock_; their sizes never change once they are there.
  std::vector<ListRecord> lists_;
  std::vector<CommandRecord> commands_;
  uint64_t next_list_ = 0, next_command_ = 0;
};

}  // namespace holdfast::exec
