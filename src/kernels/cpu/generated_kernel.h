// GeneratedKernels: the second way to run a group of element-wise steps, as a compiled kernel.
//
// The block engine runs every group at once, and a kernel takes 50 to 100 ms to compile. So a group
// is run by the block engine first; once it has worked long enough that compiling would have paid,
// another thread makes the kernel (or finds it on disk), and later calls use it. Both give the same
// bits, so that it does not matter when that happens. The kernel is one of the library's, as those
// of fast::metal_kernel are.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/sync.h"
#include "exec/kernel_library.h"
#include "graph/op.h"
#include "kernels/cpu/generated_source.h"

namespace holdfast::kernels::cpu {

// Of one group. Any thread may use it at any time.
class GeneratedKernels {
 public:
  GeneratedKernels(exec::Target& target, std::span<const FusedStep> steps);

  // The kernel for these inputs: `group` has the same steps with the same outputs. Null when there
  // is none: the block engine has to run the group.
  std::unique_ptr<const Prepared> prepare(const FusedGroup& group);
  // Gives the outputs memory and encodes what `prepare` returned for the group.
  static void encode(Encoder& encoder, const FusedGroup& group);

 private:
  struct Steps {
    std::vector<FusedStep> list;
    std::vector<char> is_output;
  };
  // How the outputs are walked.
  struct Walk {
    std::vector<GeneratedInput> inputs;
    uint32_t columns = 0, rows = 1;
    int per_thread = 1;
  };
  struct PreparedKernel;
  // The kernel for one way in which the inputs lie in memory.
  struct Variant {
    enum class State : uint8_t { not_wanted, wanted, ready, impossible };
    std::vector<GeneratedInput> inputs;
    int per_thread;
    sync::Atomic<State> state{State::not_wanted};
    Ref<const exec::KernelRequest> request;  // once it is ready
  };

  bool find_walk(const FusedGroup& group, Walk& walk) const;
  std::shared_ptr<Variant> variant_for(const Walk& walk);
  Ref<exec::Pipeline> pipeline_of(const std::shared_ptr<Variant>& variant) const;
  static void make(exec::Target& target, const Steps& steps, Variant& variant) noexcept;

  exec::Target& target_;
  std::shared_ptr<const Steps> steps_;
  size_t outputs_ = 0;
  int64_t weight_ = 0;             // of the steps, in chained steps of the block engine
  sync::Atomic<int64_t> work_{0};  // of the block engine so far; lost additions do no harm
  sync::Mutex mutex_{sync::Rank::generated_kernels};
  std::vector<std::shared_ptr<Variant>> variants_;  // guarded by mutex_
};

}  // namespace holdfast::kernels::cpu
