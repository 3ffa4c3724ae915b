// What generated code and the runtime that calls it agree on. Changing anything here changes
// `abi_version`, which is part of the key of every compiled kernel.
//
// Both lowerings export one function. Generated code refers to no symbol outside its own object:
// what it needs from the runtime it reaches through the context.
//   widened:    void <entry>.group(GroupContext*)   runs `count` threadgroups
//   reference:  void <entry>.thread(ThreadContext*)  runs one thread; the runtime calls it on a
//   fibre for each
#pragma once

#include <cstddef>
#include <cstdint>

#include "devices/argument_range.h"

namespace holdfast::jit {

using exec::ArgumentRange;

inline constexpr uint32_t abi_version = 10;
inline constexpr uint32_t simdgroup_width = 32;

struct GroupContext {
  void* const* buffers;  // by parameter of the scalar function; threadgroup arguments too
  char*
      threadgroup_memory;  // CompiledKernel::threadgroup_bytes, aligned to 128; contents undefined
  char* frame;  // CompiledKernel::frame_bytes × simdgroups (rounded up to 128 each), aligned to 128
  const uint32_t* cancelled;  // read atomically (relaxed); not zero: return soon
  uint32_t group[3];          // threadgroup_position_in_grid
  uint32_t size[3];       // threads of this group, less than `full_size` at the edges of the grid
  uint32_t full_size[3];  // dispatch_threads_per_threadgroup
  uint32_t groups[3];     // threadgroups_per_grid
  uint32_t grid[3];       // threads_per_grid
  uint32_t simdgroups;    // ceil(size[0] * size[1] * size[2] / 32)
  // Groups to run, x first, from `group` on; all are of one size. A reference kernel runs one.
  uint64_t count;
  // Of checked kernels:
  class GroupChecker* checker;          // may be null: nothing is looked at
  const struct FreeRange* free_ranges;  // by parameter of the scalar function
  struct LastTurn* last_turn;
  // Of guarded kernels:
  const ArgumentRange* ranges;  // by parameter of the scalar function
  const struct GuardRuntime* guards;
  struct OutsideAccess {
    const struct OutsideSite* site;  // null: there was none
    int64_t offset;                  // in bytes, from the first place that belongs to the object
  };
  // The first access of each kind that was not inside of what it may touch. Written by the thread
  // that runs the groups.
  OutsideAccess outside_read, outside_write;
  // What a message of a kernel (metal::os_log) is handed to, and the pipeline that it is of.
  void (*log)(GroupContext*, const struct LogMessage*);
  const class CpuPipeline* pipeline;
};

// A message of one thread.
struct LogMessage {
  static constexpr uint32_t most_values = 8;
  enum Level : uint8_t { normal, debug, info, error, fault };
  enum Kind : uint8_t { unsigned_integer, signed_integer, real, pointer };
  const char* format;            // as of printf, ends with 0
  uint32_t what;                 // the level, from bit 8 on, and the number of values
  uint32_t kinds;                // two bits for each value, the first in the lowest
  uint64_t values[most_values];  // integers extended to 64 bits; the bits of a float
};

// An access of a guarded kernel. A constant of its object.
struct OutsideSite {
  uint32_t line, column;  // 0: not known
  uint32_t argument;      // by KernelInterface::arguments, or
  static constexpr uint32_t no_argument = UINT32_MAX;
  uint8_t writes;
  char part[30];  // of the user-provided source: "body", "header", a file; ends with 0
  char name[45];  // of what is no argument; ends with 0
};

// Memory that an access may touch.
struct MemoryRange {
  const char* begin;
  uint64_t bytes;
};

// An access that a quick look could not tell to be inside as a whole.
struct GuardedAccess {
  const OutsideSite* site;
  const char* const* addresses;  // of the 32 lanes; null: base + lane * stride
  const char* base;
  int64_t stride;
  const MemoryRange* ranges;  // it must lie inside of one of these
  uint32_t range_count;
  uint32_t bytes;  // of a lane
  uint32_t lanes;  // that make it, as bits
};
// What a guarded kernel calls for such an access. What is outside is not accessed, but noted in the
// context.
struct GuardRuntime {
  // Writes 32 results; 0 for lanes that are off or outside.
  void (*load)(GroupContext*, const GuardedAccess*, void* results);
  void (*store)(GroupContext*, const GuardedAccess*, const void* values);
  // Returns the lanes that are inside.
  uint32_t (*inside)(GroupContext*, const GuardedAccess*);
};

// Memory of an argument that nobody writes: what lies inside and is aligned needs no look.
struct FreeRange {
  const char* begin;
  uint64_t bytes;  // 0: the checker must be asked
};

// What a checked kernel says about the accesses of its source. Constants of its object.
struct AccessSite {
  // A struct has gaps between its members that nobody writes, and copies of it read them: a block
  // is reported as not written only when nothing of it is, and what may be a gap by itself never.
  enum Kind : uint8_t { reads = 1, writes = 2, atomic = 4, block = 8, gap = 16 };
  uint32_t line, column;  // 0: not known
  uint8_t kind;
  uint8_t alignment;  // of the address
  char part[30];      // of the user-provided source: "body", "header", a file; ends with 0
};
// What an access may touch: an argument, a variable, a table, a private array.
struct AccessObject {
  enum Space : uint8_t { device, constant, threadgroup, thread };
  uint64_t bytes;     // of what is no argument
  uint32_t argument;  // by KernelInterface::arguments, or
  static constexpr uint32_t no_argument = UINT32_MAX;
  uint8_t space;
  char name[43];  // ends with 0
};
// Which thread of a checked kernel was the last to begin another turn of a loop, and where the loop
// stands; null: none yet.
struct LastTurn {
  const AccessSite* site;
  uint32_t thread;
};

// What the lanes of a simdgroup bring to a cross-lane operation, and what they get.
struct LaneValues {
  static constexpr uint32_t most_operands = 11;
  uint64_t operands[most_operands][simdgroup_width];
  uint64_t results[simdgroup_width];
};

// Cross-lane operations, barriers and some back edges of the reference lowering are calls through
// this table: the runtime parks the fibre until the others of the simdgroup or group have come, or
// have returned.
//
// What a fibre waits for is a number: its site, and below that, in the last eight bits, the
// operation (a msl::Intrinsic, or `converge`). Sites are the places of the function where a thread
// can be parked, numbered so that every path visits them in rising order but for the back edges of
// loops: blocks in topological order, a loop's blocks next to each other, then the loop's back edge
// (`converge`, only in loops in whose sites lanes of different turns could meet), then what follows
// the loop. When no lane of a simdgroup can run, those at the smallest site go on, as one
// operation. These are exactly the lanes that a mask would hold there.
constexpr uint64_t wait_at(uint32_t site, uint32_t operation) {
  return uint64_t{site} << 8 | operation;
}
constexpr uint32_t converge = 255;

struct ThreadContext;
struct ReferenceRuntime {
  // uint64_t wait(uint64_t* values, uint64_t what): `values` is ThreadContext::values, where the
  // thread has put the operands; they and the result are bits. The call is of LLVM's preserve_none
  // convention: it keeps no register but the frame pointer, so that switching to another lane moves
  // little else than the stack pointer.
  void (*wait)();
  // Checked kernels only, and in all of them; none parks.
  //
  // Before each access to memory that GroupContext::free_ranges does not allow: `address` and so
  // many bytes, reached from `base`, where `object` begins (null: not known; then only the object's
  // space is). `value` is what a store of up to eight bytes will write. Returns 0 when the access
  // must not be made.
  uint32_t (*access)(ThreadContext*, const AccessSite*, const AccessObject*, const void* base,
                     const void* address, uint64_t bytes, uint64_t value);
  // Before each barrier, of the threadgroup or of the simdgroup: where it stands.
  void (*reach)(ThreadContext*, const AccessSite*);
  // At each atomic_thread_fence that is not relaxed.
  void (*fence)(ThreadContext*);
};

struct ThreadContext {
  const GroupContext* group;
  const ReferenceRuntime* runtime;
  uint32_t position[3];  // thread_position_in_threadgroup
  uint32_t index;        // in the threadgroup: x + y * size[0] + z * size[0] * size[1]
  uint32_t lane;         // index % 32
  uint32_t simdgroup;    // index / 32
  uint64_t* values;      // LaneValues of the simdgroup, from the lane on
};

}  // namespace holdfast::jit
