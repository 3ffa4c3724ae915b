#include "exec/layers/validation/checks.h"

#include <cstring>
#include <stdexcept>

namespace holdfast::validation {
namespace {

constexpr CheckRow check_rows[] = {
    {Check::lifetime, "lifetime", "what a command refers to lives until it has run", true},
    {Check::hazards, "hazards",
     "commands, queues and the host that use the same bytes are ordered, if one of them writes",
     true},
    {Check::bindings, "bindings", "what is bound to a command fits it", true},
    {Check::cache, "cache", "a kernel that is dispatched is the one that was asked for", true},
    {Check::resources, "resources", "Metal's limits, and what is left over at the end", true},
    {Check::kernels, "kernels", "what the threads of a kernel do to memory and at barriers", true},
    {Check::ownership, "ownership",
     "what works here only because binding is retaining; to be asked for by name", false},
    {Check::host_writes, "host-writes",
     "the host leaves alone what commands read; reads all inputs twice, so to be asked for by name",
     false},
    {Check::nan, "nan",
     "where NaN and infinity come up; looks at all numbers that commands read and write, so to be "
     "asked for by name",
     false},
    {Check::performance, "performance",
     "what is right and slower than it could be; to be asked for by name", false},
};

constexpr Severity error = Severity::error, warning = Severity::warning;

constexpr KindRow kind_rows[] = {
    {Check::lifetime, "lifetime.buffer-released", error,
     "a buffer ended while a command that is bound to it had not run",
     "keep the array, or bind it through the encoder, which keeps it until the command has run"},
    {Check::lifetime, "lifetime.temporary-not-bound", error,
     "a buffer ended while a command that holds its address, but is not bound to it, had not run",
     "bind the array to the command (Encoder::input or Encoder::output): then it lives long "
     "enough, "
     "and its commands are ordered"},
    {Check::lifetime, "lifetime.pipeline-released", error,
     "a pipeline ended while a command that dispatches it had not run",
     "let the command list own the pipeline (Encoder::dispatch does), or keep the Kernel"},
    {Check::hazards, "hazards.read-after-write", error,
     "a command reads bytes that another one writes, and nothing makes it wait",
     "make the array that is written an input of the op that reads, or wait for its event"},
    {Check::hazards, "hazards.write-after-read", error,
     "a command writes bytes that another one reads, and nothing makes it wait",
     "make an output of the op that reads an input of the op that writes, or wait for its event"},
    {Check::hazards, "hazards.write-after-write", error,
     "two commands write the same bytes, and nothing orders them",
     "make the array that is written first an input of the second op, or wait for its event"},
    {Check::hazards, "hazards.host-read", error,
     "the host asked for the address of elements that a command may still be writing",
     "evaluate the array (eval) or wait for it (array::wait) before data() is called"},
    {Check::bindings, "bindings.out-of-range", error,
     "a command is bound to bytes that its buffer does not have",
     "give the buffer the size that the command uses, or bind fewer bytes"},
    {Check::bindings, "bindings.too-small", error,
     "what is bound to an argument of a kernel is smaller than one element of it",
     "bind a value of the argument's type"},
    {Check::bindings, "bindings.misaligned", error,
     "an array that is bound to a kernel does not start at a multiple of its item size, or of what "
     "the type of the kernel's argument needs",
     "start the array at such a multiple, or let the kernel take its elements one by one"},
    {Check::bindings, "bindings.input-written", error,
     "a kernel writes an argument that was bound as an input",
     "bind it as an output; the values of arrays never change"},
    {Check::bindings, "bindings.same-memory", error,
     "two arguments of one dispatch share memory, and the kernel writes one of them",
     "give the output memory of its own"},
    {Check::bindings, "bindings.left-over", error,
     "an argument of a dispatch was left over from an earlier one: it lies outside of what is "
     "bound",
     "bind every argument for each dispatch"},
    {Check::bindings, "bindings.kept", warning,
     "an argument of a dispatch is what was bound for the dispatch of another kernel",
     "bind every argument for each kernel; bindings stay until they are replaced"},
    {Check::cache, "cache.other-source", error,
     "a pipeline was made from another source than the one asked for",
     "key pipelines by their whole source, not by name"},
    {Check::cache, "cache.other-signature", error,
     "a pipeline was made for other arguments than those asked for",
     "make dtypes and template values part of the key"},
    {Check::resources, "resources.buffer-slots", error,
     "a dispatch binds more slots than Metal has (31)",
     "put small values into one struct, or arrays into one buffer"},
    {Check::resources, "resources.threadgroup-memory", error,
     "a dispatch wants more threadgroup memory than Metal has (32 KiB)",
     "use smaller threadgroups, or work through the data in tiles"},
    {Check::resources, "resources.live-buffers", warning,
     "more buffers live at once than Metal allows",
     "put many small arrays into few large ones, and let go of arrays that are not needed"},
    {Check::resources, "resources.residency-sets", error,
     "more residency sets than Metal attaches to a queue (32)",
     "put more into each set, or attach each set once"},
    {Check::resources, "resources.memory-limit", warning,
     "an allocation did not fit the memory limit: it waits for all work, or fails",
     "raise the limit (set_memory_limit), or let go of arrays earlier"},
    {Check::resources, "resources.wired-limit", warning,
     "memory stays unwired, because the wired limit leaves no room for it",
     "raise the limit (set_wired_limit), or wire less"},
    {Check::resources, "resources.wired-refused", warning,
     "memory stays unwired, because the system does not let the process lock it",
     "raise `ulimit -l`, or lower the wired limit"},
    {Check::resources, "resources.leaked-capture", warning,
     "a capture was started and not stopped before the end", "call stop_capture"},
    {Check::resources, "resources.leaked-stream", warning,
     "a stream has work at the end that nobody waited for",
     "wait for what was computed, or synchronize the stream: an error of it would be lost"},
    {Check::resources, "resources.leaked-event", warning,
     "a stream was told to wait for an event, and nothing was submitted to it afterwards",
     "submit the work that was to wait, or leave the wait out"},
    {Check::kernels, "kernels.out-of-bounds", error,
     "a thread uses bytes outside of an argument, a variable or an array; the access is not made",
     "compare the index with the size before it is used, or give the array more elements"},
    {Check::kernels, "kernels.misaligned", error,
     "a thread uses an address that is no multiple of what the type needs",
     "use packed types, or begin rows at multiples of the type's size"},
    {Check::kernels, "kernels.race", error,
     "two threads use the same bytes, at least one of them writes, and nothing orders them",
     "give each thread bytes of its own, use atomic operations, or put a barrier between them; "
     "between threadgroups nothing but another dispatch orders plain accesses"},
    {Check::kernels, "kernels.missing-barrier", error,
     "a thread reads threadgroup memory that another one writes, with no barrier between them",
     "put threadgroup_barrier(mem_flags::mem_threadgroup) between the write and the read"},
    {Check::kernels, "kernels.same-value-race", warning,
     "two threads write the same value to the same bytes, and nothing orders them",
     "let one thread write, or use an atomic store"},
    {Check::kernels, "kernels.uninitialised-read", error,
     "a thread reads memory that nobody has written",
     "write it first, or give the call of the kernel an init_value"},
    {Check::kernels, "kernels.divergent-barrier", error,
     "threads of a threadgroup wait at a barrier while others of it wait elsewhere",
     "take barriers out of branches and loops that threads of a group take differently"},
    {Check::kernels, "kernels.barrier-after-return", warning,
     "threads of a threadgroup wait at a barrier after others of it have returned",
     "let all threads come to the barrier, and put the condition around the work"},
    {Check::kernels, "kernels.endless-loop", error,
     "the watchdog stopped a kernel (HOLDFAST_KERNEL_TIMEOUT)",
     "look at the condition of the loop; threads of other groups may run later, or never"},
    {Check::host_writes, "host-writes.input-changed", error,
     "bytes that a command reads were changed by no command, between its encoding and its end",
     "wait for what was computed from an array before its memory is written"},
    {Check::host_writes, "host-writes.pointer-kept", Severity::note,
     "a device writes to an array whose address the host has: what is there is no longer the array",
     "call data() again after each op of a device that writes to the array"},
    {Check::nan, "nan.made", error, "a command whose inputs are all finite wrote a NaN",
     "look at what the op was given: a logarithm or a root of a negative number, 0 / 0, or an "
     "infinity on the way to a result"},
    {Check::nan, "nan.infinity", warning, "a command whose inputs are all finite wrote an infinity",
     "look at what the op was given: a division by zero, or a result beyond the largest number of "
     "its type"},
    {Check::ownership, "ownership.only-binding", warning,
     "a temporary of an op is kept alive by nothing but its binding",
     "on an encoder that does not retain, register it (add_temporary)"},
    {Check::performance, "performance.host-fallback", Severity::note,
     "an op of a GPU's stream ran on the host, since the device has no kernel for it",
     "put the op on a CPU stream together with those around it, so that less is copied, or give a "
     "primitive of the program commands that the device has (Encoder::dispatch, copy, fill)"},
};

std::string names_of(auto rows, auto name) {
  std::string names;
  for (const auto& row : rows) names += (names.empty() ? "" : ", ") + std::string(name(row));
  return names;
}

template <class Use>
void for_each_name(const std::string& text, Use use) {
  for (size_t at = 0; at <= text.size();) {
    size_t comma = std::min(text.find(',', at), text.size());
    use(text.substr(at, comma - at));
    at = comma + 1;
  }
}

}  // namespace

std::span<const CheckRow> checks() { return check_rows; }

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::note:
      return "note";
  }
  return "";
}

std::span<const KindRow> kinds() { return kind_rows; }

const KindRow& kind(const char* id) {
  for (const KindRow& row : kind_rows) {
    if (std::strcmp(row.id, id) == 0) return row;
  }
  throw std::logic_error(std::string("[validation] there is no report ") + id);
}

CheckSet CheckSet::parse(const std::string& text, const std::string& what) {
  CheckSet set;
  for_each_name(text, [&](const std::string& name) {
    bool is_known = name == "1";
    for (const CheckRow& row : check_rows) {
      if (name != row.name && !(name == "1" && row.is_default)) continue;
      set.bits_ |= uint32_t{1} << static_cast<int>(row.check);
      is_known = true;
    }
    if (is_known) return;
    throw std::invalid_argument("[validation] " + what + " must be 1 or names of checks (" +
                                names_of(checks(), [](auto& row) { return row.name; }) +
                                ") with commas, got \"" + name + "\"");
  });
  return set;
}

std::vector<std::string> parse_identifiers(const std::string& text, const std::string& what) {
  std::vector<std::string> identifiers;
  if (text.empty()) return identifiers;
  for_each_name(text, [&](const std::string& name) {
    for (const KindRow& row : kind_rows) {
      if (name != row.id) continue;
      identifiers.push_back(name);
      return;
    }
    throw std::invalid_argument("[validation] " + what + " must be identifiers of reports (" +
                                names_of(kinds(), [](auto& row) { return row.id; }) +
                                ") with commas, got \"" + name + "\"");
  });
  return identifiers;
}

}  // namespace holdfast::validation
