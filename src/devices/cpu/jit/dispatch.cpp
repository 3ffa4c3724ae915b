#include "devices/cpu/jit/dispatch.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <optional>
#include <stdexcept>
#include <vector>

#include "base/environment.h"
#include "base/of_this_thread.h"
#include "devices/cpu/jit/fault_guard.h"
#include "devices/cpu/jit/guard_runtime.h"
#include "devices/cpu/jit/image.h"
#include "devices/cpu/jit/kernel_checker.h"
#include "devices/cpu/jit/kernel_log.h"
#include "devices/cpu/jit/reference_runtime.h"
#include "devices/cpu/jit/watchdog.h"

namespace holdfast::jit {
namespace {

using GroupFunction = void(GroupContext*);

constexpr size_t alignment = 128;

size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

// What a thread needs to run groups; made at its first dispatch, kept until it ends.
class ThreadScratch {
 public:
  ThreadScratch() : slot(watchdog::take_slot()) {}
  ~ThreadScratch() {
    ::operator delete(memory_, std::align_val_t{alignment});
    watchdog::give_back(slot);
  }
  ThreadScratch(const ThreadScratch&) = delete;

  // At least `bytes`, aligned; contents are not kept.
  char* reserve(size_t bytes) {
    if (bytes > bytes_) {
      ::operator delete(std::exchange(memory_, nullptr), std::align_val_t{alignment});
      bytes_ = 0;
      memory_ = static_cast<char*>(::operator new(bytes, std::align_val_t{alignment}));
      bytes_ = bytes;
    }
    return memory_;
  }

  watchdog::Slot* const slot;
  ReferenceRunner reference;
  std::vector<void*> pointers;
  std::vector<ArgumentRange> ranges;

 private:
  char* memory_ = nullptr;
  size_t bytes_ = 0;
};

ThreadScratch& scratch() { return of_this_thread<ThreadScratch>(); }

uint32_t clamped(const DispatchArguments& arguments, int axis) {
  return std::min(arguments.threadgroup[axis], arguments.grid[axis]);
}

uint32_t groups_along(const DispatchArguments& arguments, int axis) {
  uint32_t size = clamped(arguments, axis);
  return static_cast<uint32_t>((uint64_t{arguments.grid[axis]} + size - 1) / size);
}

// The kernel's own variables, then its threadgroup arguments, each aligned.
size_t threadgroup_memory(const CompiledKernel& kernel, const DispatchArguments& arguments) {
  size_t bytes = aligned(kernel.threadgroup_bytes);
  for (size_t i = 0; i < kernel.interface.arguments.size(); ++i) {
    if (kernel.interface.arguments[i].kind == msl::KernelArgument::Kind::threadgroup)
      bytes += aligned(arguments.threadgroup_bytes ? arguments.threadgroup_bytes[i] : 0);
  }
  return bytes;
}

[[noreturn]] void reject(const CpuPipeline& pipeline, const std::string& what) {
  throw std::invalid_argument("[" + pipeline.name() + "] " + what);
}

std::string triple(const uint32_t (&sizes)[3]) {
  return "(" + std::to_string(sizes[0]) + ", " + std::to_string(sizes[1]) + ", " +
         std::to_string(sizes[2]) + ")";
}

std::string stopped_text(watchdog::Verdict verdict) {
  if (verdict == watchdog::Verdict::cancelled) return "the kernel was cancelled while it ran";
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%g", environment::settings().kernel_timeout);
  return std::string("the kernel ran longer than ") + seconds +
         " s and was stopped (HOLDFAST_KERNEL_TIMEOUT)";
}

// The groups [begin, end) one after the other. `run` holds nothing that wants a destructor: a fault
// leaves it in the middle.
class GroupLoop {
 public:
  GroupLoop(const CpuPipeline& pipeline, const DispatchArguments& arguments, ThreadScratch& own)
      : pipeline_(pipeline), own_(own) {
    const CompiledKernel& kernel = pipeline.kernel();
    uint32_t threads = 1;
    for (int axis = 0; axis < 3; ++axis) {
      context_.full_size[axis] = clamped(arguments, axis);
      context_.groups[axis] = groups_along(arguments, axis);
      context_.grid[axis] = arguments.grid[axis];
      threads *= context_.full_size[axis];
      all_full_ &= arguments.grid[axis] % context_.full_size[axis] == 0;
    }
    size_t shared = threadgroup_memory(kernel, arguments);
    size_t simdgroups = (threads + simdgroup_width - 1) / simdgroup_width;
    char* memory = own.reserve(shared + aligned(kernel.frame_bytes) * simdgroups);
    context_.threadgroup_memory = memory;
    context_.frame = memory + shared;
    context_.cancelled = &own.slot->stop;
    context_.buffers = arguments.buffers;
    context_.ranges = arguments.ranges;
    context_.guards = &guard_runtime;
    context_.log = &log_message;
    context_.pipeline = &pipeline;
    if (!arguments.ranges) set_endless_ranges();
    place_threadgroup_arguments(arguments, memory + aligned(kernel.threadgroup_bytes));
    if (kernel.lowering == Lowering::checked) prepare_checks(arguments, shared);
    if (!pipeline.is_widened()) own.reference.prepare(threads, kernel.register_bytes);
  }

  // Kernels do not have what clang's sanitizer looks for in front of a function that is called.
#if defined(__clang__)
  __attribute__((no_sanitize("function")))
#endif
  void
  run(int64_t begin, int64_t end) {
    advance(begin);
    while (begin < end) {
      set_size();
      int64_t count = pipeline_.is_widened() ? alike(end - begin) : 1;
      context_.count = static_cast<uint64_t>(count);
      if (pipeline_.is_widened()) {
        reinterpret_cast<GroupFunction*>(const_cast<void*>(pipeline_.entry()))(&context_);
      } else {
        last_turn_ = {};
        own_.reference.run(context_,
                           reinterpret_cast<ThreadFunction*>(const_cast<void*>(pipeline_.entry())),
                           pipeline_.kernel().register_bytes);
      }
      if (own_.slot->verdict() != watchdog::Verdict::none) return;
      begin += count;
      advance(count);
    }
  }

  void stopped() {
    if (checker_) checker_->stopped(last_turn_);
  }

  // Throws when the kernel wrote outside of its arguments; says it when it read there.
  void check_outside() const {
    if (context_.outside_write.site) throw std::runtime_error(text_of(context_.outside_write));
    if (!context_.outside_read.site) return;
    std::string text = text_of(context_.outside_read);
    if (environment::settings().guard_kernels == environment::GuardKernels::strict)
      throw std::runtime_error(text);
    if (!pipeline_.is_first_outside_read()) return;
    std::fprintf(stderr, "holdfast: %s; it got 0 (said once; HOLDFAST_VALIDATE=1 tells more)\n",
                 text.c_str());
  }

 private:
  std::string text_of(const GroupContext::OutsideAccess& access) const {
    const OutsideSite& site = *access.site;
    std::string name = site.name;
    std::string byte;  // arrays of the kernel's own lie in memory as the lowering likes
    if (site.argument != OutsideSite::no_argument) {
      name = pipeline_.interface().arguments[site.argument].name;
      byte = ": byte " + std::to_string(access.offset) + " of " +
             std::to_string(context_.ranges[site.argument].bytes);
    }
    std::string place;
    if (site.line != 0) {
      place = " at " + (site.part[0] ? site.part + std::string(":") : "line ") +
              std::to_string(site.line) + ":" + std::to_string(site.column);
    }
    return "[" + pipeline_.name() + "] the kernel " + (site.writes ? "writes" : "reads") +
           " outside of \"" + name + "\"" + place + byte;
  }

  void set_endless_ranges() {
    constexpr uint64_t half = uint64_t{1} << 62;
    own_.ranges.assign(pipeline_.interface().arguments.size(), {half, 2 * half});
    context_.ranges = own_.ranges.data();
  }

  void prepare_checks(const DispatchArguments& arguments, size_t threadgroup_bytes) {
    context_.last_turn = &last_turn_;
    if (arguments.checker) {
      checker_.emplace(*arguments.checker, arguments, context_, threadgroup_bytes);
      context_.checker = &*checker_;
      context_.free_ranges = checker_->free_ranges();
    } else {
      no_ranges_.resize(pipeline_.interface().arguments.size());
      context_.free_ranges = no_ranges_.data();
    }
  }

  void place_threadgroup_arguments(const DispatchArguments& arguments, char* memory) {
    const std::vector<msl::KernelArgument>& parameters = pipeline_.interface().arguments;
    own_.pointers.clear();
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].kind != msl::KernelArgument::Kind::threadgroup) continue;
      if (own_.pointers.empty()) {
        own_.pointers.assign(arguments.buffers, arguments.buffers + parameters.size());
        if (arguments.ranges)
          own_.ranges.assign(arguments.ranges, arguments.ranges + parameters.size());
      }
      own_.pointers[i] = memory;
      own_.ranges[i] = {0, arguments.threadgroup_bytes ? arguments.threadgroup_bytes[i] : 0};
      memory += aligned(arguments.threadgroup_bytes ? arguments.threadgroup_bytes[i] : 0);
    }
    if (own_.pointers.empty()) return;
    context_.buffers = own_.pointers.data();
    context_.ranges = own_.ranges.data();
  }

  void advance(int64_t count) {
    uint64_t carry = static_cast<uint64_t>(count);
    for (int axis = 0; axis < 3; ++axis) {
      carry += context_.group[axis];
      context_.group[axis] = static_cast<uint32_t>(carry % context_.groups[axis]);
      carry /= context_.groups[axis];
    }
  }

  // How many of the next groups, at most `limit`, have the size of the first one.
  int64_t alike(int64_t limit) const {
    if (all_full_) return limit;
    int64_t last = int64_t{context_.groups[0]} - 1 - context_.group[0];
    return std::clamp<int64_t>(last, 1, limit);
  }

  void set_size() {
    uint32_t threads = 1;
    for (int axis = 0; axis < 3; ++axis) {
      uint32_t full = context_.full_size[axis];
      context_.size[axis] = std::min(full, context_.grid[axis] - context_.group[axis] * full);
      threads *= context_.size[axis];
    }
    context_.simdgroups = (threads + simdgroup_width - 1) / simdgroup_width;
  }

  const CpuPipeline& pipeline_;
  ThreadScratch& own_;
  GroupContext context_{};
  LastTurn last_turn_{};
  std::optional<GroupChecker> checker_;
  std::vector<FreeRange> no_ranges_;  // of a kernel that nobody looks at
  bool all_full_ = true;              // no group is cut off by the grid's edge
};

}  // namespace

InstructionSet host_instruction_set() {
  static const InstructionSet widest =
      machine::supports(InstructionSet::avx512) ? InstructionSet::avx512
      : machine::supports(InstructionSet::avx2) ? InstructionSet::avx2
                                                : InstructionSet::baseline;
  return widest;
}

CpuPipeline::CpuPipeline() = default;
CpuPipeline::~CpuPipeline() = default;

Ref<CpuPipeline> CpuPipeline::load(std::string name, CompiledKernel kernel) {
  Ref<CpuPipeline> pipeline = Ref<CpuPipeline>::adopt(new CpuPipeline);
  pipeline->name_ = std::move(name);
  pipeline->image_ = std::make_unique<Image>(kernel.object);
  pipeline->entry_ = pipeline->image_->find(kernel.symbol);
  if (!pipeline->entry_)
    throw std::runtime_error("[jit] damaged kernel object: no function " + kernel.symbol);
  kernel.object = {};
  pipeline->kernel_ = std::move(kernel);
  return pipeline;
}

void check_dispatch(const CpuPipeline& pipeline, const DispatchArguments& arguments) {
  uint64_t threads = 1;
  for (int axis = 0; axis < 3; ++axis) {
    if (arguments.grid[axis] == 0 || arguments.grid[axis] > max_grid) {
      reject(pipeline, "the grid must have from 1 to " + std::to_string(max_grid) +
                           " threads along each axis, got " + triple(arguments.grid));
    }
    if (arguments.threadgroup[axis] == 0)
      reject(pipeline, "the threadgroup must have at least one thread along each axis, got " +
                           triple(arguments.threadgroup));
    threads = std::min<uint64_t>(threads * clamped(arguments, axis), uint64_t{1} << 32);
  }
  __uint128_t groups = 1;
  for (int axis = 0; axis < 3; ++axis) groups *= groups_along(arguments, axis);
  if (groups > static_cast<__uint128_t>(INT64_MAX) / 2)
    reject(pipeline,
           "the grid " + triple(arguments.grid) + " has more threadgroups than can be counted");
  uint32_t limit = std::min(max_threads_per_threadgroup, pipeline.interface().max_threads);
  if (threads > limit) {
    reject(pipeline, "a threadgroup may have at most " + std::to_string(limit) + " threads, got " +
                         triple(arguments.threadgroup) + " on a grid of " + triple(arguments.grid));
  }
  size_t bytes = pipeline.kernel().threadgroup_bytes;
  for (size_t i = 0; i < pipeline.interface().arguments.size(); ++i) {
    if (pipeline.interface().arguments[i].kind == msl::KernelArgument::Kind::threadgroup)
      bytes += arguments.threadgroup_bytes ? arguments.threadgroup_bytes[i] : 0;
  }
  if (bytes > max_threadgroup_memory) {
    reject(pipeline, "a threadgroup may use at most " + std::to_string(max_threadgroup_memory) +
                         " bytes of threadgroup memory, the kernel needs " + std::to_string(bytes));
  }
  const std::string& race = pipeline.kernel().race;
  if (race.empty() || threads <= simdgroup_width || !pipeline.is_first_race()) return;
  std::fprintf(stderr, "holdfast: [%s] %s (run with HOLDFAST_VALIDATE=1)\n",
               pipeline.name().c_str(), race.c_str());
}

int64_t threadgroups(const DispatchArguments& arguments) {
  int64_t groups = 1;
  for (int axis = 0; axis < 3; ++axis) groups *= groups_along(arguments, axis);
  return groups;
}

void begin_dispatch(DispatchArguments& arguments) { arguments.started = sync::now(); }

void run_groups(const CpuPipeline& pipeline, const DispatchArguments& arguments, int64_t begin,
                int64_t end) {
  // The watchdog may never see parts that are short: what follows the first one looks itself.
  if (begin > 0 && watchdog::is_late(arguments, sync::now()))
    throw std::runtime_error("[" + pipeline.name() + "] " +
                             stopped_text(watchdog::Verdict::timed_out));
  ThreadScratch& own = scratch();
  GroupLoop loop(pipeline, arguments, own);
  watchdog::Watch watch(*own.slot, arguments);
  FaultGuard guard(pipeline.image());
  if (sigsetjmp(guard.jump, 0) != 0) {
    throw std::runtime_error("[" + pipeline.name() +
                             "] the kernel did what the processor refuses: " + guard.what());
  }
  guard.arm();
  loop.run(begin, end);
  if (watchdog::Verdict verdict = own.slot->verdict(); verdict != watchdog::Verdict::none) {
    if (verdict == watchdog::Verdict::timed_out) loop.stopped();
    throw std::runtime_error("[" + pipeline.name() + "] " + stopped_text(verdict));
  }
  loop.check_outside();
}

}  // namespace holdfast::jit
