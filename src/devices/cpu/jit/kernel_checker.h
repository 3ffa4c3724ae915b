// Looks at what the threads of a checked kernel do to memory: out-of-bounds, races, reads of what
// nobody wrote, divergent barriers. One checker for one dispatch:
//
//   KernelChecker checker(pipeline, buffers);
//   arguments.checker = &checker;
//   run_groups(pipeline, arguments, 0, threadgroups(arguments));
//   for (const exec::KernelFinding& finding : checker.findings()) …
//
// Two accesses are ordered when one thread makes both, or both threads are of one threadgroup and
// it has passed a barrier between them; threads of one simdgroup also by a barrier of the
// simdgroup. Every memory flag of a barrier counts. Atomic operations do not race with each other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "devices/cpu/jit/dispatch.h"
#include "devices/cpu/jit/shadow_memory.h"
#include "devices/kernel_finding.h"

namespace holdfast::jit {

class KernelChecker {
 public:
  struct Buffer {
    uint64_t bytes = 0;
    // Whether somebody has written to it before: else reading what this dispatch has not written is
    // a finding.
    bool has_contents = true;
  };
  // `buffers` by KernelInterface::arguments; what is said of threadgroup arguments is not looked
  // at.
  KernelChecker(const CpuPipeline& pipeline, std::vector<Buffer> buffers);

  // After the dispatch. Each pair of places in the source once, in the order in which they were
  // found; at most `most_findings`.
  std::vector<exec::KernelFinding> findings() const;
  static constexpr size_t most_findings = 256;

 private:
  friend class GroupChecker;
  using Key = std::tuple<const char*, const void*, const void*, const void*>;
  // Adds up equal findings.
  void report(const Key& key, exec::KernelFinding finding);

  const msl::KernelInterface& interface_;
  const std::vector<Buffer> buffers_;
  mutable std::mutex mutex_;  // guards what follows
  ShadowMemory device_;
  std::map<Key, size_t> known_;
  std::vector<exec::KernelFinding> findings_;
};

// The checker's part for one OS thread that runs groups: threadgroup memory, and which barriers the
// group has passed.
class GroupChecker {
 public:
  GroupChecker(KernelChecker& checker, const DispatchArguments& arguments)
      : checker_(checker), arguments_(arguments) {}

  // Called when the group in the context starts.
  void begin(const GroupContext& group);
  // What ReferenceRuntime::access promises. Throws nothing: when memory runs out, it looks at less.
  bool access(const ThreadContext& thread, const AccessSite& site, const AccessObject& object,
              const void* base, const void* address, uint64_t bytes, uint64_t value) noexcept;
  // A simdgroup of the group, or all of it, has passed a barrier.
  void pass_simdgroup_barrier(uint32_t simdgroup) { ++stamp_of_simdgroup_[simdgroup]; }
  void pass_threadgroup_barrier() { ++epoch_; }
  // Threads of the group wait at a barrier, `site`, while another waits at `other`, at something
  // that is no barrier (null), or has returned.
  void diverge(const ThreadContext& thread, const AccessSite* site, const ThreadContext& other,
               const AccessSite* other_site, bool other_returned) noexcept;

 private:
  struct Target {
    uint32_t argument;
    const char* name;
    AccessObject::Space space;
    const char* base;
    uint64_t bytes;  // UINT64_MAX: not known
  };
  struct Access {
    const ThreadContext& thread;
    const AccessSite& site;
    const char* address;
    uint64_t bytes, value;
  };
  Target target_of(const AccessObject& object, const void* base, const char* address) const;
  Target argument(uint32_t index) const;
  void check(const Access& access, const Target& target);
  void check_order(const Access& access, const Target& target, ShadowMemory& shadow);
  bool may_be_written(uint32_t argument) const;
  exec::KernelFinding finding(const char* kind, const Access& access, const Target& target) const;
  void set_thread(uint32_t (&position)[3], uint32_t group, uint32_t index) const;
  void report(const KernelChecker::Key& key, exec::KernelFinding found, bool takes_lock);

  KernelChecker& checker_;
  const DispatchArguments& arguments_;
  const GroupContext* group_ = nullptr;
  uint32_t group_number_ = 0;
  uint32_t epoch_ = 0;
  uint16_t stamp_of_simdgroup_[32] = {};
  ShadowMemory threadgroup_;
};

}  // namespace holdfast::jit
