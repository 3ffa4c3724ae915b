// A driver of CUDA without a GPU: the functions of the table on the host's memory. Streams run on a
// thread of its own, in an order that is drawn from a seed, as far as CUDA leaves it open: across
// streams, and among the nodes of a graph that no edges order. Device addresses are none of the
// host's: who uses one there dies. What reaches outside of live allocations is a fault that loses
// the GPU, as on a real one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "devices/cpu/jit/dispatch.h"
#include "devices/cuda/driver.h"
#include "devices/cuda/gpu_kernel.h"

namespace holdfast::testing {

// A launch of a fake kernel, on the host's addresses.
struct FakeLaunch {
  jit::DispatchArguments arguments;
  cuda::LaunchParameters parameters;
  uint32_t* cancelled = nullptr;         // may be null
  cuda::GuardReport* outside = nullptr;  // may be null
  std::string symbol;                    // of the image that was chosen
};

struct FakeKernel {
  msl::KernelInterface interface;
  bool is_guarded = false, has_inline_constants = false;
  std::function<void(const FakeLaunch&)> run;
};

struct FakeCounts {
  size_t allocations = 0, bytes = 0, streams = 0, events = 0, modules = 0, graphs = 0;
};

class FakeDriver {
 public:
  // One at a time exists as long as the process: threads and queues may use it until the end.
  static FakeDriver& get();
  cuda::Driver& driver();

  // The images of a kernel: the driver loads their code and finds the kernel again.
  cuda::CompiledKernel add(const std::string& name, FakeKernel kernel);

  // The order of everything that is left open, from now on. `slowness`: of 100 steps so many take
  // some time.
  void set_seed(uint64_t seed, int slowness = 10);
  // Steps wait while it is held: what is launched does not run.
  void hold();
  void release();
  // Bytes that can be allocated.
  void set_memory(size_t bytes);

  // The k-th call (1 is the next one) of a function, by the symbol that it has in libcuda, or of
  // any where that is empty, fails with `code`; a sticky one loses the GPU.
  void fail_call(uint64_t k, int code, const std::string& symbol = "");
  // No more of that; and the GPU works again, as in a new process.
  void mend();
  uint64_t calls(const std::string& symbol = "");
  FakeCounts counts();
  // Was there a fault?
  bool is_lost();
};

// Kernels of Metal sources for the fake GPU: compiled for this processor. Null where there is no
// compiler.
cuda::CompiledKernel compile_for_fake(const msl::KernelSource& source,
                                      const exec::KernelOptions& options);

// The fake GPU, as Device::gpu of this process; before the first stream of it.
cuda::Gpu& install_fake_gpu();

}  // namespace holdfast::testing
