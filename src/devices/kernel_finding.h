// KernelFinding: what a checked kernel did wrong while it ran. The CPU device finds them
// (jit/kernel_checker.h), the validator puts names to them.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "base/ref.h"

namespace holdfast::exec {

struct Command;
struct CommandList;
class Failure;

struct KernelFinding {
  // A literal:
  //   out-of-bounds         the access was not made: a load gave 0
  //   misaligned            the address is no multiple of the size of what is accessed
  //   race                  two threads, at least one of which writes, with no barrier between them
  //   uninitialised-read    of memory that nobody has written in this dispatch
  //   divergent-barrier     some threads of a group wait at one barrier, others elsewhere
  //   barrier-after-return  some threads of a group wait at a barrier, others have returned
  //   endless-loop          the watchdog stopped the dispatch; `line` is the loop it was in
  const char* kind = "";
  static constexpr uint32_t no_buffer = UINT32_MAX;
  uint32_t buffer = no_buffer;  // by KernelInterface::arguments
  std::string object;  // the name of that argument, or of a variable or array; empty: not known
  enum class Space : uint8_t { device, constant, threadgroup, thread };
  Space space = Space::device;
  static constexpr uint64_t unknown_size = UINT64_MAX;
  uint64_t size = unknown_size;  // of the object
  int64_t byte = 0;              // from its start
  uint32_t bytes = 0;            // of the access
  bool writes = false;
  uint32_t thread[3] = {0, 0, 0};  // in the grid
  uint32_t line = 0, column = 0;   // of the user's source, in `part`; 0: not known
  std::string part;                // "body", "header", a file
  // The other side of a race, or a thread that is not at the barrier.
  bool has_other_thread = false;
  bool other_writes = false;
  bool writes_same_value = false;  // both wrote the same bytes
  uint32_t other_thread[3] = {0, 0, 0};
  uint32_t other_line = 0, other_column = 0;
  std::string other_part;
  uint64_t count = 1;  // how often it was found, at the same places of the source
};

// Takes what the dispatch `command` found, from the thread that runs it, and returns what fails the
// dispatch, if anything does. Null: no layer validates.
using KernelFindingsHandler = Ref<Failure>(const CommandList&, const Command&,
                                           std::span<const KernelFinding>);
inline std::atomic<KernelFindingsHandler*> kernel_findings_handler{nullptr};

}  // namespace holdfast::exec
