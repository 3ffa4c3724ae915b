// Runs kernels of the reference lowering: a fibre for each thread of a threadgroup, which parks at
// barriers and cross-lane operations until those it belongs together with have come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {

using ThreadFunction = void(ThreadContext*);

// The stacks and the state of one threadgroup at a time; belongs to one OS thread and is used again
// for every group that it runs.
//
// Fibres are never unwound: generated code holds nothing that wants a destructor. A group that is
// cancelled, or whose kernel faults (siglongjmp out of `run`), just leaves its fibres where they
// are; the next group starts new ones on the same stacks.
class ReferenceRunner {
 public:
  ReferenceRunner();
  ~ReferenceRunner();

  // Makes room for a group; may throw std::bad_alloc, std::runtime_error. `stack_bytes`: what one
  // thread of the kernel needs; 0 when its threads never wait for each other and need no fibre.
  void prepare(uint32_t threads, uint32_t stack_bytes);
  // Runs one group. Throws nothing and allocates nothing. Returns early when the group's
  // `cancelled` is set.
  void run(const GroupContext& group, ThreadFunction* function, uint32_t stack_bytes) noexcept;

 private:
  class Fibres;
  std::unique_ptr<Fibres> fibres_;
};

}  // namespace holdfast::jit
