// Looks at what the threads of a checked kernel do to memory: out-of-bounds, races, reads of what
// nobody wrote, divergent barriers. One checker for one dispatch:
//
//   KernelChecker checker(pipeline, buffers, arguments.buffers);
//   arguments.checker = &checker;
//   run_groups(pipeline, arguments, 0, threadgroups(arguments));
//   for (const exec::KernelFinding& finding : checker.findings()) …
//
// Groups may run on several OS threads at once (`is_shared`), unless the kernel has fences.
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
  // at. `addresses` likewise: DispatchArguments::buffers.
  KernelChecker(const CpuPipeline& pipeline, std::vector<Buffer> buffers, void* const* addresses,
                bool is_shared = false);

  // After the dispatch. Each pair of places in the source once, in the order in which they were
  // found; at most `most_findings`. A read that races with the write it should have waited for is
  // a race, and no read of what nobody wrote.
  std::vector<exec::KernelFinding> findings() const;
  static constexpr size_t most_findings = 256;

  // What threads of checked kernels read and write in device arguments of more than 64 bytes (what
  // is smaller is in a cache at once), in bytes: each access of each thread. Added up while
  // `traffic` is set, for measurements; dispatches are slower then.
  struct Traffic {
    sync::Atomic<uint64_t> read{0}, written{0};
  };
  static inline sync::Atomic<Traffic*> traffic{nullptr};

 private:
  friend class GroupChecker;
  using Key = std::tuple<const char*, const void*, const void*, const void*>;
  // Adds up equal findings.
  void report(const Key& key, exec::KernelFinding finding);

  // Whether this dispatch can write to the memory of a device argument, through any of its
  // arguments.
  bool may_be_written(uint32_t argument) const;
  void make_shadows(bool is_shared);
  // Places of the source as numbers: all are constants of one image.
  uint32_t number_of(const AccessSite* site) const {
    return static_cast<uint32_t>(reinterpret_cast<const char*>(site) - code_) + first_number;
  }
  const AccessSite& site_of(uint32_t number) const {
    return *reinterpret_cast<const AccessSite*>(code_ +
                                                static_cast<int32_t>(number - first_number));
  }
  static constexpr uint32_t first_number = uint32_t{1} << 31;

  const char* const code_;
  const msl::KernelInterface& interface_;
  const std::vector<Buffer> buffers_;
  void* const* const addresses_;
  // Of what is written, each byte once; and by argument, null for those that nobody writes.
  std::vector<std::unique_ptr<ShadowMemory>> shadows_;
  std::vector<ShadowMemory*> shadow_of_;
  // Only kernels with fences have any: one thread runs all groups then.
  ReleaseLogs release_logs_;
  Releases releases_;
  mutable sync::Mutex mutex_;  // guards what follows
  std::map<Key, size_t> known_;
  std::vector<exec::KernelFinding> findings_;
};

// The checker's part for one OS thread that runs groups: threadgroup memory, and which barriers the
// group has passed.
class GroupChecker {
 public:
  // `group`: the context of all groups that will run; its buffers are known, and it has so many
  // bytes of threadgroup memory.
  GroupChecker(KernelChecker& checker, const DispatchArguments& arguments,
               const GroupContext& group, size_t threadgroup_bytes);

  // For GroupContext::free_ranges.
  const FreeRange* free_ranges() const { return free_ranges_.data(); }
  // Called when the next group starts.
  void begin();
  // ReferenceRuntime::access, for the checker of the thread's group if it has one. Throws nothing:
  // when memory runs out, it looks at less.
  static uint32_t access(ThreadContext* thread, const AccessSite* site, const AccessObject* object,
                         const void* base, const void* address, uint64_t bytes,
                         uint64_t value) noexcept;
  void fence(const ThreadContext& thread) noexcept;
  // The watchdog stopped the group.
  void stopped(const LastTurn& last) noexcept;
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
    uint64_t bytes;                  // UINT64_MAX: not known
    uint64_t before = 0;             // that belong to it, too
    ShadowMemory* shadow = nullptr;  // somebody may write to it: its accesses must be ordered
    bool is_undefined = false;       // what nobody has written must not be read
    bool holds(const char* at, uint64_t count) const {
      const uint64_t from_start = static_cast<uint64_t>(at - base) + before;
      return bytes == UINT64_MAX ||
             (from_start <= before + bytes && count <= before + bytes - from_start);
    }
  };
  struct Access {
    const ThreadContext& thread;
    const AccessSite& site;
    const char* address;
    uint64_t bytes, value;
    bool is(AccessSite::Kind kind) const { return (site.kind & kind) != 0; }
  };
  // What is wrong with an access: where it comes first.
  struct Trouble {
    const char *race = nullptr, *undefined = nullptr;
    PastAccess other;  // of the race
    bool is_any_defined = false;
    [[gnu::cold]] void race_with(PastAccess with, const char* at) {
      if (race) return;
      race = at;
      other = with;
    }
    [[gnu::cold]] void read_undefined(const char* at) {
      if (!undefined) undefined = at;
    }
  };
  // Of what is no argument, or may be one; `made` is a place for it.
  const Target& find_target(const AccessObject& object, const void* base, const char* address,
                            Target& made);
  Target make_target(uint32_t index, const DispatchArguments& arguments);
  // Whether it may be made.
  bool look_at(const Access& access, const Target& target);
  void check_order(const Access& access, const Target& target);
  void report_trouble(const Access& access, const Target& target, const Trouble& trouble);
  void report_race(const Access& access, const Target& target, PastAccess other, const char* at);
  // The thread as it is now, at an access or (0) between two.
  PastAccess state_of(const ThreadContext& thread, uint32_t site) const {
    return PastAccess(site, group_number_, thread.index, epoch_,
                      stamp_of_simdgroup_[thread.simdgroup], fences_.fences_of(thread.index));
  }
  void report(const KernelChecker::Key& key, exec::KernelFinding found) {
    checker_.report(key, std::move(found));
  }
  exec::KernelFinding finding(const char* kind, const Access& access, const Target& target) const;
  void set_thread(uint32_t (&position)[3], uint32_t group, uint32_t index) const;

  KernelChecker& checker_;
  KernelChecker::Traffic* const traffic_ = KernelChecker::traffic.load(std::memory_order_acquire);
  const GroupContext& group_;
  std::vector<Target> targets_;  // of the arguments
  std::vector<FreeRange> free_ranges_;
  uint32_t group_number_ = 0;
  uint32_t epoch_ = 0;
  bool has_diverged_ = false;
  uint16_t stamp_of_simdgroup_[32] = {};
  ShadowMemory threadgroup_;
  Releases threadgroup_releases_;
  FenceOrder fences_{checker_.release_logs_};
};

}  // namespace holdfast::jit
