// KernelFinding: what an instrumented kernel found while it ran. The compiler's side makes them,
// the validator puts names to them (Validator::on_kernel_finding).
#pragma once

#include <atomic>
#include <cstdint>

namespace holdfast::exec {

struct Command;
struct CommandList;

struct KernelFinding {
  // "out-of-bounds", "misaligned", "race", "uninitialised-read", "divergent-barrier", …: a literal.
  const char* kind = "";
  uint32_t buffer = 0;  // by KernelInterface::arguments
  int64_t byte = 0;     // of that argument
  uint32_t thread[3] = {0, 0, 0};
  bool has_other_thread = false;
  uint32_t other_thread[3] = {0, 0, 0};
  uint32_t line = 0, column = 0;  // of the user's source; 0: not known
};

// Takes what the dispatch `command` found, from the thread that runs it; null: nobody validates.
inline std::atomic<void (*)(const CommandList&, const Command&, const KernelFinding&)>
    kernel_finding_handler{nullptr};

}  // namespace holdfast::exec
