#include "devices/cpu/jit/reference_runtime.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <vector>

#include "devices/cpu/jit/cross_lane.h"
#include "devices/cpu/jit/kernel_checker.h"

#if HOLDFAST_HAVE_FIBRES
#include <boost/context/detail/fcontext.hpp>
#endif

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
  return thread;
}

uint32_t check_access(ThreadContext* thread, const AccessSite* site, const AccessObject* object,
                      const void* base, const void* address, uint64_t bytes, uint64_t value) {
  GroupChecker* checker = thread->group->checker;
  return !checker || checker->access(*thread, *site, *object, base, address, bytes, value);
}

void check_fence(ThreadContext* thread) {
  if (thread->group->checker) thread->group->checker->fence(*thread);
}

void note_turn(ThreadContext* thread, const AccessSite* site) {
  if (thread->group->checker) thread->group->checker->turn(*thread, *site);
}

uint32_t threads_of(const GroupContext& group) {
  return group.size[0] * group.size[1] * group.size[2];
}

}  // namespace

#if HOLDFAST_HAVE_FIBRES

namespace {

namespace context = boost::context::detail;

// What our own frames on a fibre's stack may use, above what the kernel asks for.
constexpr size_t runtime_stack = 16 * 1024;
constexpr uint32_t converge_operation = UINT32_MAX;

enum class FibreState : uint8_t { runnable, parked, returned };

struct Fibre : ThreadContext {
  ThreadFunction* function;
  context::fcontext_t self;       // where to resume it
  context::fcontext_t scheduler;  // whom it returns to, while it runs
  FibreState state;
  uint32_t operation, site;   // while parked
  const AccessSite* barrier;  // of a checked kernel: the last one that it has come to
  LaneValues values;
};

void park(ThreadContext* thread, uint32_t operation, uint32_t site) {
  auto* fibre = static_cast<Fibre*>(thread);
  fibre->operation = operation;
  fibre->site = site;
  fibre->state = FibreState::parked;
  fibre->scheduler = context::jump_fcontext(fibre->scheduler, nullptr).fctx;
}

uint64_t park_for_cross_lane(ThreadContext* thread, uint32_t operation, uint32_t site,
                             const uint64_t* operands) {
  auto* fibre = static_cast<Fibre*>(thread);
  for (size_t i = 0; i < std::size(fibre->values.operands); ++i)
    fibre->values.operands[i] = operands[i];
  park(thread, operation, site);
  return fibre->values.result;
}

void park_at_barrier(ThreadContext* thread, uint32_t operation, uint32_t site, uint32_t) {
  park(thread, operation, site);
}

void park_at_back_edge(ThreadContext* thread, uint32_t site) {
  park(thread, converge_operation, site);
}

void reach_barrier(ThreadContext* thread, const AccessSite* site) {
  static_cast<Fibre*>(thread)->barrier = site;
}

constexpr ReferenceRuntime runtime_table{
    park_for_cross_lane, park_at_barrier, park_at_back_edge, check_access,
    reach_barrier,       check_fence,     note_turn};

void enter_fibre(context::transfer_t transfer) {
  auto* fibre = static_cast<Fibre*>(transfer.data);
  fibre->scheduler = transfer.fctx;
  fibre->function(fibre);
  fibre->state = FibreState::returned;
  context::jump_fcontext(fibre->scheduler, nullptr);
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

  void* top(uint32_t index) const { return memory_ + (index + 1) * stride_; }
  size_t size() const { return stride_; }

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
    stacks_.reserve(threads, stack_bytes + runtime_stack);
    if (fibres_.size() < threads) fibres_.resize(threads);
  }

  void run(const GroupContext& group, ThreadFunction* function) {
    uint32_t threads = threads_of(group);
    for (uint32_t i = 0; i < threads; ++i) {
      Fibre& fibre = fibres_[i];
      static_cast<ThreadContext&>(fibre) = thread_of(group, &runtime_table, i);
      fibre.function = function;
      fibre.state = FibreState::runnable;
      fibre.barrier = nullptr;
      fibre.self = context::make_fcontext(stacks_.top(i), stacks_.size(), enter_fibre);
    }
    // Each turn takes every simdgroup to its next threadgroup barrier, or to its end.
    bool any_waits = true;
    while (any_waits) {
      any_waits = false;
      for (uint32_t first = 0; first < threads; first += simdgroup_width) {
        uint32_t count = threads - first < simdgroup_width ? threads - first : simdgroup_width;
        any_waits |= run_simdgroup(group, &fibres_[first], count);
        if (is_cancelled(group)) return;
      }
      if (any_waits && group.checker) {
        check_barrier(*group.checker, threads);
        group.checker->pass_threadgroup_barrier();
      }
      for (uint32_t first = 0; any_waits && first < threads; first += simdgroup_width) {
        uint32_t count = threads - first < simdgroup_width ? threads - first : simdgroup_width;
        release(&fibres_[first], at_smallest_site(&fibres_[first], count));
      }
    }
  }

 private:
  // Every thread must wait at one and the same barrier.
  void check_barrier(GroupChecker& checker, uint32_t threads) const {
    auto is_at_barrier = [](const Fibre& fibre) {
      return fibre.state == FibreState::parked &&
             fibre.operation == static_cast<uint32_t>(msl::Intrinsic::threadgroup_barrier);
    };
    const Fibre* first = &fibres_[0];
    while (!is_at_barrier(*first)) ++first;
    const Fibre *elsewhere = nullptr, *gone = nullptr;
    for (uint32_t i = 0; i < threads; ++i) {
      const Fibre& fibre = fibres_[i];
      if (fibre.state == FibreState::returned) {
        gone = &fibre;
      } else if (fibre.state != FibreState::parked || fibre.site != first->site) {
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

  // True when it waits at a threadgroup barrier, false when every lane has returned.
  static bool run_simdgroup(const GroupContext& group, Fibre* lanes, uint32_t count) {
    for (;;) {
      for (uint32_t i = 0; i < count; ++i) {
        if (lanes[i].state == FibreState::runnable)
          lanes[i].self = context::jump_fcontext(lanes[i].self, &lanes[i]).fctx;
      }
      uint32_t active = at_smallest_site(lanes, count);
      if (active == 0) return false;
      if (is_cancelled(group)) return true;
      uint32_t operation = lanes[__builtin_ctz(active)].operation;
      if (operation == static_cast<uint32_t>(msl::Intrinsic::threadgroup_barrier)) return true;
      if (operation != converge_operation &&
          operation != static_cast<uint32_t>(msl::Intrinsic::simdgroup_barrier)) {
        LaneValues* values[simdgroup_width] = {};
        for (uint32_t i = 0; i < count; ++i) values[i] = &lanes[i].values;
        perform_cross_lane(static_cast<msl::Intrinsic>(operation), active, values);
      } else if (group.checker && operation != converge_operation) {
        group.checker->pass_simdgroup_barrier(lanes[0].simdgroup);
      }
      release(lanes, active);
    }
  }

  // The lanes that are parked where the program comes by first; 0 when none is parked.
  static uint32_t at_smallest_site(const Fibre* lanes, uint32_t count) {
    uint32_t site = 0, found = 0;
    for (uint32_t i = 0; i < count; ++i) {
      if (lanes[i].state != FibreState::parked) continue;
      if (found == 0 || lanes[i].site < site) {
        site = lanes[i].site;
        found = 0;
      }
      if (lanes[i].site == site) found |= uint32_t{1} << i;
    }
    return found;
  }

  static void release(Fibre* lanes, uint32_t set) {
    for (; set != 0; set &= set - 1) lanes[__builtin_ctz(set)].state = FibreState::runnable;
  }

  Stacks stacks_;
  std::vector<Fibre> fibres_;
};

bool ReferenceRunner::has_fibres() { return true; }

#else

class ReferenceRunner::Fibres {
 public:
  void prepare(uint32_t, uint32_t) {
    throw std::runtime_error(
        "[jit] threads of this kernel wait for each other, and this build has no fibres for that: "
        "build it with Boost.Context (libboost-context-dev)");
  }
  void run(const GroupContext&, ThreadFunction*) {}
};

bool ReferenceRunner::has_fibres() { return false; }

#endif

ReferenceRunner::ReferenceRunner() = default;
ReferenceRunner::~ReferenceRunner() = default;

void ReferenceRunner::prepare(uint32_t threads, uint32_t stack_bytes) {
  if (stack_bytes == 0) return;
  if (!fibres_) fibres_ = std::make_unique<Fibres>();
  fibres_->prepare(threads, stack_bytes);
}

void ReferenceRunner::run(const GroupContext& group, ThreadFunction* function,
                          uint32_t stack_bytes) noexcept {
  if (group.checker) group.checker->begin(group);
  if (stack_bytes != 0) {
    fibres_->run(group, function);
    return;
  }
  // Its threads do not wait for each other.
  static constexpr ReferenceRuntime runtime{nullptr, nullptr,     nullptr,  check_access,
                                            nullptr, check_fence, note_turn};
  uint32_t threads = threads_of(group);
  for (uint32_t i = 0; i < threads && !is_cancelled(group); ++i) {
    ThreadContext thread = thread_of(group, &runtime, i);
    function(&thread);
  }
}

}  // namespace holdfast::jit
