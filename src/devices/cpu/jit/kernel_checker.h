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
// simdgroup; and threads of any groups by fences (fence_order.h). Every memory flag of a barrier
// counts. Atomic operations do not race with each other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "base/sync.h"
#include "devices/cpu/jit/dispatch.h"
#include "devices/cpu/jit/fence_order.h"
#include "devices/cpu/jit/shadow_memory.h"
#include "devices/kernel_finding.h"

namespace holdfast::jit {

class KernelChecker {
 public:
  struct Buffer {
    uint64_t bytes = 0;   // from the address that the kernel gets
    uint64_t before = 0;  // and before it: of views that run backwards
    // Whether somebody has written to it before: else reading what this dispatch has not written is
    // a finding.
    bool has_contents = true;
  };
  // `buffers` by KernelInterface::arguments; what is said of threadgroup arguments is not looked
  // at.
  KernelChecker(const CpuPipeline& pipeline, std::vector<Buffer> buffers);

  // After the dispatch. Each pair of places in the source once, in the order in which they were
  // found; at most `most_findings`. A read that races with the write it should have waited for is
  // a race, and no read of what nobody wrote.
  std::vector<exec::KernelFinding> findings() const;
  static constexpr size_t most_findings = 256;

 private:
  friend class GroupChecker;
  using Key = std::tuple<const char*, const void*, const void*, const void*>;
  // Adds up equal findings.
  void report(const Key& key, exec::KernelFinding finding);

  const msl::KernelInterface& interface_;
  const std::vector<Buffer> buffers_;
  mutable sync::Mutex mutex_;  // guards what follows; a GroupChecker has it
  ShadowMemory device_;
  Releases releases_;
  std::map<Key, size_t> known_;
  std::vector<exec::KernelFinding> findings_;
};

// The checker's part for one OS thread that runs groups: threadgroup memory, and which barriers the
// group has passed. Threads that run parts of one dispatch take turns: each has the checker for as
// long as this lives.
class GroupChecker {
 public:
  GroupChecker(KernelChecker& checker, const DispatchArguments& arguments)
      : checker_(checker),
        lock_(checker.mutex_),
        arguments_(arguments),
        targets_(checker.interface_.arguments.size()) {}

  // Called when the group in the context starts.
  void begin(const GroupContext& group);
  // What ReferenceRuntime::access promises. Throws nothing: when memory runs out, it looks at less.
  bool access(const ThreadContext& thread, const AccessSite& site, const AccessObject& object,
              const void* base, const void* address, uint64_t bytes, uint64_t value) noexcept;
  void fence(const ThreadContext& thread) noexcept;
  void turn(const ThreadContext& thread, const AccessSite& site) {
    looping_ = &site;
    looping_thread_ = thread.index;
  }
  // The watchdog stopped the group.
  void stopped() noexcept;
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
    uint64_t bytes;           // UINT64_MAX: not known
    uint64_t before = 0;      // that belong to it, too
    bool is_ordered = false;  // somebody may write to it: its accesses must be ordered
    bool holds(const char* address, uint64_t count) const;
  };
  struct Access {
    const ThreadContext& thread;
    const AccessSite& site;
    const char* address;
    uint64_t bytes, value;
  };
  Target target_of(const AccessObject& object, const void* base, const char* address) const;
  Target make_target(uint32_t index) const;
  void check(const Access& access, const Target& target);
  void check_order(const Access& access, const Target& target, ShadowMemory& shadow,
                   Releases& releases);
  // The thread as it is now, between accesses.
  PastAccess state_of(const ThreadContext& thread, const AccessSite* site) const;
  bool may_be_written(uint32_t argument) const;
  void report(const KernelChecker::Key& key, exec::KernelFinding found) {
    checker_.report(key, std::move(found));
  }
  exec::KernelFinding finding(const char* kind, const Access& access, const Target& target) const;
  void set_thread(uint32_t (&position)[3], uint32_t group, uint32_t index) const;

  KernelChecker& checker_;
  const std::unique_lock<sync::Mutex> lock_;
  const DispatchArguments& arguments_;
  std::vector<Target> targets_;  // of the arguments
  const GroupContext* group_ = nullptr;
  uint32_t group_number_ = 0;
  uint32_t epoch_ = 0;
  const AccessSite* looping_ = nullptr;  // the loop whose turn was last
  uint32_t looping_thread_ = 0;
  bool has_diverged_ = false;
  uint16_t stamp_of_simdgroup_[32] = {};
  ShadowMemory threadgroup_;
  Releases threadgroup_releases_;
  FenceOrder fences_;
};

}  // namespace holdfast::jit
