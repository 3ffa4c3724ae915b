// Running compiled kernels: a pipeline is machine code that is ready to run; a dispatch runs it
// over a grid.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/ref.h"
#include "base/sync.h"
#include "devices/cpu/jit/compiler.h"

namespace holdfast::jit {

class Image;
class KernelChecker;

// Metal's limits, which the CPU device keeps so that what breaks there breaks here.
inline constexpr uint32_t max_threads_per_threadgroup = 1024;
inline constexpr uint32_t max_threadgroup_memory = 32 * 1024;
inline constexpr uint32_t max_grid = uint32_t{1} << 31;  // threads along one axis

// The widest instruction set that this processor runs; what CompileOptions wants.
InstructionSet host_instruction_set();

// A kernel that is loaded and can run. Never changes after `load`: any number of threads and
// command lists may use it at once. Command lists own the pipelines that they dispatch
// (Ref<CpuPipeline>).
class CpuPipeline final : public RefCounted {
 public:
  // Loads the object. `name` is the user's name of the kernel, for messages. Throws
  // std::runtime_error when the object is not sound (a damaged cache entry): nothing is mapped
  // then.
  static Ref<CpuPipeline> load(std::string name, CompiledKernel kernel);
  ~CpuPipeline();

  const std::string& name() const { return name_; }
  const msl::KernelInterface& interface() const { return kernel_.interface; }
  // Without the object's bytes: they are in the image now.
  const CompiledKernel& kernel() const { return kernel_; }
  bool is_widened() const { return kernel_.lowering <= Lowering::widened; }
  const Image& image() const { return *image_; }
  const void* entry() const { return entry_; }
  // True once: for what is said of a kernel only the first time.
  bool is_first_outside_read() const { return !has_read_outside_.exchange(true); }
  bool is_first_race() const { return !has_raced_.exchange(true); }
  // How many messages the kernel has sent, with the one that is counted now; it stays at the
  // greatest number that is looked at.
  uint32_t count_message() const {
    if (messages_.load(std::memory_order_relaxed) > uint32_t{1} << 30) return uint32_t{1} << 30;
    return messages_.fetch_add(1, std::memory_order_relaxed) + 1;
  }

 private:
  CpuPipeline();

  std::string name_;
  CompiledKernel kernel_;
  std::unique_ptr<Image> image_;
  const void* entry_ = nullptr;
  mutable sync::Atomic<bool> has_read_outside_{false}, has_raced_{false};
  mutable sync::Atomic<uint32_t> messages_{0};
};

// One dispatch. Plain data; what it points to must stay until the last run_groups has returned.
struct DispatchArguments {
  // By KernelInterface::arguments. Entries of threadgroup arguments are not looked at.
  void* const* buffers = nullptr;
  // Bytes of each threadgroup argument, by KernelInterface::arguments (other entries are not looked
  // at); may be null when there are none.
  const uint32_t* threadgroup_bytes = nullptr;
  // How far guarded kernels may go, by KernelInterface::arguments (entries of threadgroup arguments
  // are not looked at); null: arguments have no end.
  const ArgumentRange* ranges = nullptr;
  uint32_t grid[3] = {1, 1, 1};         // threads
  uint32_t threadgroup[3] = {1, 1, 1};  // as asked for; clamped to the grid when it runs
  // The dispatch stops soon after `*queue_cancelled >= list`. May be null.
  const sync::Atomic<uint64_t>* queue_cancelled = nullptr;
  uint64_t list = 0;
  // Looks at what the threads of a checked kernel do. May be null.
  KernelChecker* checker = nullptr;
  // When its first group began, for the watchdog: begin_dispatch sets it.
  sync::Clock::time_point started{};
};

// Throws std::invalid_argument, "[name] …", when the grid is empty or beyond max_grid, when the
// threadgroup has no or too many threads, or more memory than max_threadgroup_memory. To be called
// when the dispatch is encoded. Says on stderr, once for a pipeline, where a barrier seems to be
// missing.
void check_dispatch(const CpuPipeline& pipeline, const DispatchArguments& arguments);

// How many threadgroups the grid has: the tasks of a dispatch.
int64_t threadgroups(const DispatchArguments& arguments);

// Called once before the first run_groups of a dispatch: the watchdog's time counts from the first
// group on, over all threads that take part.
void begin_dispatch(DispatchArguments& arguments);

// Runs threadgroups [begin, end), counted x first, on the calling thread. Several threads may run
// parts of one dispatch at once. Throws std::runtime_error "[name] …" when the dispatch was
// cancelled, ran longer than HOLDFAST_KERNEL_TIMEOUT, did something that the processor refuses
// (SIGSEGV and its kind inside the kernel's own code), or, when its accesses are guarded, wrote
// outside of its arguments (with HOLDFAST_GUARD_KERNELS=strict: read): the groups that ran have
// left their results, others none.
void run_groups(const CpuPipeline& pipeline, const DispatchArguments& arguments, int64_t begin,
                int64_t end);

}  // namespace holdfast::jit
