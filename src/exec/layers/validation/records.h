// What the validator remembers: buffers, who uses them, and the order of queues. Plain data; all of
// it is guarded by the validator's mutex.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <holdfast/small_vector.h>

#include "base/hash.h"
#include "devices/device.h"
#include "exec/layers/validation/checks.h"

namespace holdfast::validation {

using exec::DeviceQueue;

// A command, as reports name it.
struct Side {
  const char* op = "";
  const char* detail = "";
  label::Label label;
  const std::string* kernel = nullptr;  // interned; null: no dispatch
  const DeviceQueue* queue = nullptr;
  uint64_t serial = 0;  // of its list
  uint32_t command = 0;
};

// A command that used bytes, as addresses.
struct Access {
  Side side;
  uint64_t buffer = 0;  // identity
  uintptr_t begin = 0, end = 0;
};

// Memory that is used as one: a storage, or several that overlap (adopted ones).
struct Region {
  uintptr_t end = 0;
  int live = 0;  // buffers in it that have not ended
  uint64_t newest = 0;
  uint64_t version = 0;        // counts the commands that write here
  std::vector<Access> writes;  // those that no later write covers
  std::vector<Access> reads;   // since those writes
};
using Regions = std::map<uintptr_t, Region>;

struct BufferRecord {
  uint64_t identity = 0;
  size_t size = 0;
  const char* op = "";
  label::Label label;
  uintptr_t address = 0;
  Region* region = nullptr;
  uint64_t number = 0;           // counts the buffers that were made
  bool is_written = true;        // a command writes to it, or the host may have
  bool has_numbers = true;       // likewise, once the command runs
  bool is_host_visible = false;  // the host has its address, since a device wrote to it last
  // The last command of each queue that refers to it.
  struct Use {
    Side side;
    bool is_bound;  // else the command only holds an address
  };
  SmallVector<Use, 2> uses;
};

struct PipelineRecord {
  const std::string* name = nullptr;  // interned
  std::string key, text, signature;   // of what it was made for; empty: not known
  SmallVector<Side, 2> uses;
};

// The bytes that a command reads, as they were when it was encoded.
struct Digest {
  Access access;
  uint64_t version;  // of the region
  Hash128 hash;
};

struct QueueRecord {
  uint64_t open = 0;     // serial of the open list
  size_t waits = 0;      // of it
  uint32_t seen = 0;     // commands of it
  uint32_t encoded = 0;  // of those: that belong to ops that will not be taken back
  // What is reported if the op that is being encoded is not taken back.
  std::vector<Report> pending;
  // What the commands of a list read, by its serial.
  std::map<uint64_t, std::vector<Digest>> digests;
  uint64_t encoded_buffers = 0;  // buffers made before the op that is being encoded
  uint64_t observed = 0;         // lists up to here are known to have completed
  Side newest;                   // the last command
  Side last;                     // the last one whose op will not be taken back
  // Since list `from` its lists start after these: for each queue, the last list waited for.
  struct Clock {
    uint64_t from;
    std::vector<std::pair<const DeviceQueue*, uint64_t>> after;
  };
  std::vector<Clock> clocks;  // by `from`
};

inline bool has_run(const Side& side) {
  return exec::is_executed({const_cast<DeviceQueue*>(side.queue), side.serial});
}

}  // namespace holdfast::validation
