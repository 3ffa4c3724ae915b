#include "devices/cpu/jit/reference_runtime.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <span>
#include <stdexcept>
#include <vector>

#include "devices/cpu/jit/cross_lane.h"
#include "devices/cpu/jit/fibre.h"
#include "devices/cpu/jit/kernel_checker.h"

namespace holdfast::jit {
namespace {

bool is_cancelled(const GroupContext& group) {
  return __atomic_load_n(group.cancelled, __ATOMIC_RELAXED) != 0;
}

ThreadContext thread_of(const GroupContext& group, const ReferenceRuntime* runtime,
                        uint32_t index) {
  ThreadContext thread;
  thread.group = &group;
  thread.runtime = runtime;
  thread.position[0] = index % group.size[0];
  thread.position[1] = index / group.size[0] % group.size[1];
  thread.position[2] = index / group.size[0] / group.size[1];
  thread.index = index;
  thread.lane = index % simdgroup_width;
  thread.simdgroup = index / simdgroup_width;
  thread.values = nullptr;
  return thread;
}

void check_fence(ThreadContext* thread) {
  if (thread->group->checker) thread->group->checker->fence(*thread);
}

uint32_t threads_of(const GroupContext& group) {
  return group.size[0] * group.size[1] * group.size[2];
}

// What our own frames on a fibre's stack may use, above what the kernel asks for.
constexpr size_t runtime_stack = 16 * 1024;

struct Simdgroup;

struct Fibre : ThreadContext {
  Simdgroup* simd;
  ThreadFunction* function;
  const AccessSite* barrier;  // of a checked kernel: the last one that it has come to
};

// Lanes are bits.
struct Simdgroup : LaneTurns {
  Fibre* lanes;
  uint32_t parked;  // when none is ready: all that have not returned
  uint32_t active;  // of these: those where the program comes by first,
  uint64_t waits;   // for this

  void find_active() {
    if (parked == ~uint32_t{0}) {
      // Mostly, all have come to the same place.
      uint64_t differ = 0;
      for (uint64_t one : waits_for) differ |= one ^ waits_for[0];
      if (differ == 0) {
        active = parked;
        waits = waits_for[0];
        return;
      }
    }
    active = 0;
    for (uint32_t rest = parked; rest != 0; rest &= rest - 1) {
      const uint32_t bit = rest & -rest;
      const uint64_t one = waits_for[__builtin_ctz(rest)];
      if (active == 0 || one < waits) {
        active = bit;
        waits = one;
      } else if (one == waits) {
        active |= bit;
      }
    }
  }

  // The active lanes may go on.
  void release() { ready = active; }

  static uint32_t operation_of(uint64_t wait) { return wait & 255; }
};

void reach_barrier(ThreadContext* thread, const AccessSite* site) {
  static_cast<Fibre*>(thread)->barrier = site;
}

constexpr ReferenceRuntime runtime_table{holdfast_wait, GroupChecker::access, reach_barrier,
                                         check_fence};

LaneTurns* enter_fibre(void* argument) {
  auto* fibre = static_cast<Fibre*>(argument);
  fibre->function(fibre);
  fibre->simd->parked &= ~(uint32_t{1} << fibre->lane);
  return fibre->simd;
}

// Stacks of one size, side by side, each with a page below it that faults.
class Stacks {
 public:
  ~Stacks() { unmap(); }

  void reserve(uint32_t count, size_t bytes) {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_t stride = (bytes + page - 1) / page * page + page;
    if (count <= count_ && stride <= stride_) return;
    unmap();
    void* memory = mmap(nullptr, stride * count, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<char*>(memory);
    stride_ = stride;
    count_ = count;
    for (uint32_t i = 0; i < count; ++i) mprotect(memory_ + i * stride, page, PROT_NONE);
  }

  // The stacks are used at the same depth in turn: they must not all lie in the same lines of the
  // cache.
  char* top(uint32_t index) const {
    return memory_ + (index + 1) * stride_ - index % colours * colour_bytes;
  }
  static constexpr size_t colours = 32, colour_bytes = 128;

 private:
  void unmap() {
    if (memory_) munmap(memory_, stride_ * count_);
    memory_ = nullptr;
    stride_ = count_ = 0;
  }

  char* memory_ = nullptr;
  size_t stride_ = 0;
  uint32_t count_ = 0;
};

}  // namespace

class ReferenceRunner::Fibres {
 public:
  void prepare(uint32_t threads, uint32_t stack_bytes) {
    if (!has_fibres) throw std::runtime_error("[jit] kernels run on x86-64 only");
    stacks_.reserve(threads, stack_bytes + runtime_stack + Stacks::colours * Stacks::colour_bytes);
    if (fibres_.size() < threads) fibres_.resize(threads);
    const uint32_t simdgroups = (threads + simdgroup_width - 1) / simdgroup_width;
    if (simdgroups_.size() < simdgroups) simdgroups_.resize(simdgroups);
  }

  void run(const GroupContext& group, ThreadFunction* function) {
    const uint32_t threads = threads_of(group);
    const std::span<Simdgroup> all(simdgroups_.data(), group.simdgroups);
    for (uint32_t i = 0; i < threads; ++i) {
      Fibre& fibre = fibres_[i];
      Simdgroup& simd = simdgroups_[i / simdgroup_width];
      static_cast<ThreadContext&>(fibre) = thread_of(group, &runtime_table, i);
      fibre.values = &simd.values.operands[0][fibre.lane];
      fibre.simd = &simd;
      fibre.function = function;
      fibre.barrier = nullptr;
      simd.stacks[fibre.lane] = start_of_stack(stacks_.top(i), enter_fibre, &fibre);
      if (fibre.lane == 0) {
        simd.lanes = &fibre;
        simd.parked = 0;
      }
      simd.parked |= uint32_t{1} << fibre.lane;
      simd.ready = simd.parked;
    }
    // Each turn takes every simdgroup to its next threadgroup barrier, or to its end.
    bool any_waits = true;
    while (any_waits) {
      any_waits = false;
      for (Simdgroup& simd : all) {
        any_waits |= run_simdgroup(group, simd);
        if (is_cancelled(group)) return;
      }
      if (any_waits && group.checker) {
        check_barrier(*group.checker, threads);
        group.checker->pass_threadgroup_barrier();
      }
      for (Simdgroup& simd : all) simd.release();
    }
  }

 private:
  // Every thread must wait at one and the same barrier.
  void check_barrier(GroupChecker& checker, uint32_t threads) const {
    auto is_parked = [](const Fibre& fibre) { return (fibre.simd->parked >> fibre.lane & 1) != 0; };
    auto waits_for_group = [&](const Fibre& fibre) {
      return is_parked(fibre) && waits_for(fibre, msl::Intrinsic::threadgroup_barrier);
    };
    const Fibre* first = &fibres_[0];
    while (!waits_for_group(*first)) ++first;
    const Fibre *elsewhere = nullptr, *gone = nullptr;
    for (uint32_t i = 0; i < threads; ++i) {
      const Fibre& fibre = fibres_[i];
      if (!is_parked(fibre)) {
        gone = &fibre;
      } else if (wait_of(fibre) != wait_of(*first)) {
        elsewhere = &fibre;
      }
    }
    if (elsewhere) {
      const bool waits = is_at_barrier(*elsewhere);
      checker.diverge(*first, first->barrier, *elsewhere, waits ? elsewhere->barrier : nullptr,
                      false);
    } else if (gone) {
      checker.diverge(*first, first->barrier, *gone, nullptr, true);
    }
  }

  // Every lane must wait at the barrier that the active ones are at.
  static void check_simdgroup_barrier(const GroupContext& group, const Simdgroup& simd) {
    const uint32_t rest = threads_of(group) - simd.lanes->index;
    const uint32_t all = rest < simdgroup_width ? (uint32_t{1} << rest) - 1 : ~uint32_t{0};
    const uint32_t missing = all & ~simd.active;
    if (missing == 0) return;
    const Fibre& first = simd.lanes[__builtin_ctz(simd.active)];
    const uint32_t elsewhere = missing & simd.parked;
    const Fibre& other = simd.lanes[__builtin_ctz(elsewhere != 0 ? elsewhere : missing)];
    const bool waits = elsewhere != 0 && is_at_barrier(other);
    group.checker->diverge(first, first.barrier, other, waits ? other.barrier : nullptr,
                           elsewhere == 0);
  }

  static bool is_at_barrier(const Fibre& fibre) {
    return waits_for(fibre, msl::Intrinsic::threadgroup_barrier) ||
           waits_for(fibre, msl::Intrinsic::simdgroup_barrier);
  }
  static uint64_t wait_of(const Fibre& fibre) { return fibre.simd->waits_for[fibre.lane]; }
  static bool waits_for(const Fibre& fibre, msl::Intrinsic operation) {
    return Simdgroup::operation_of(wait_of(fibre)) == static_cast<uint32_t>(operation);
  }

  // True when it waits at a threadgroup barrier, false when every lane has returned.
  static bool run_simdgroup(const GroupContext& group, Simdgroup& simd) {
    for (;;) {
      if (simd.ready != 0) {
        simd.ready |= LaneTurns::caller;
        holdfast_take_turns(&simd);
      }
      simd.find_active();
      if (simd.active == 0) return false;
      if (is_cancelled(group)) return true;
      const auto operation = static_cast<msl::Intrinsic>(Simdgroup::operation_of(simd.waits));
      if (operation == msl::Intrinsic::threadgroup_barrier) return true;
      if (operation == msl::Intrinsic::simdgroup_barrier) {
        if (group.checker) {
          check_simdgroup_barrier(group, simd);
          group.checker->pass_simdgroup_barrier(simd.lanes->simdgroup);
        }
      } else if (static_cast<uint32_t>(operation) != converge) {
        perform_cross_lane(operation, simd.active, simd.values);
      }
      simd.release();
    }
  }

  Stacks stacks_;
  std::vector<Fibre> fibres_;
  std::vector<Simdgroup> simdgroups_;
};

ReferenceRunner::ReferenceRunner() = default;
ReferenceRunner::~ReferenceRunner() = default;

void ReferenceRunner::prepare(uint32_t threads, uint32_t stack_bytes) {
  if (stack_bytes == 0) return;
  if (!fibres_) fibres_ = std::make_unique<Fibres>();
  fibres_->prepare(threads, stack_bytes);
}

void ReferenceRunner::run(const GroupContext& group, ThreadFunction* function,
                          uint32_t stack_bytes) noexcept {
  if (group.checker) group.checker->begin();
  if (stack_bytes != 0) {
    fibres_->run(group, function);
    return;
  }
  // Its threads do not wait for each other.
  static constexpr ReferenceRuntime runtime{nullptr, GroupChecker::access, nullptr, check_fence};
  uint32_t threads = threads_of(group);
  for (uint32_t i = 0; i < threads && !is_cancelled(group); ++i) {
    ThreadContext thread = thread_of(group, &runtime, i);
    function(&thread);
  }
}

}  // namespace holdfast::jit
