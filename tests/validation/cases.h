// The validator's table of tests: for each kind of report, programs that have the bug and twins of
// them that do not. docs/validation.md is made from it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <holdfast/holdfast.h>
#include <holdfast/validation.h>

#include "devices/cpu/cpu_kernel.h"
#include "exec/kernel_library.h"
#include "kernel_library/fake_compiler.h"
#include "support/device.h"
#include "support/gate.h"
#include "support/inspection.h"
#include "support/test_ops.h"

namespace holdfast::testing {

// A stream of the test's own; given back when all its work is done, errors forgotten.
struct OwnStream {
  Stream stream;
  operator Stream() const { return stream; }
  explicit OwnStream(Device device = Device::cpu) : stream(new_stream(device)) {}
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  ~OwnStream() { exec::Runtime::get().give_back(queue_of(stream)); }
};

struct ValidationCase {
  const char* id;                 // what the bug is reported as
  const char* name;               // the bug, for the documentation
  const char* checks;             // that are switched on
  std::function<void()> planted;  // has the bug
  std::function<void()> clean;    // does the same without it
  // Fields that the report must have.
  std::map<std::string, std::string> fields;
  bool needs_device_memory = false;  // a GPU with memory of its own (HOLDFAST_GPU)
};

std::span<const ValidationCase> lifetime_cases();
std::span<const ValidationCase> hazard_cases();
std::span<const ValidationCase> binding_cases();
std::span<const ValidationCase> cache_cases();
std::span<const ValidationCase> resource_cases();
std::span<const ValidationCase> kernel_cases();
std::span<const ValidationCase> limit_cases();
std::span<const ValidationCase> origin_cases();
std::span<const ValidationCase> device_memory_cases();
std::vector<ValidationCase> all_cases();
// Those of kernels need a compiler.
inline bool can_run(const ValidationCase& c) {
  if (c.needs_device_memory && exec::Runtime::get().device(Device::gpu).memory.is_host())
    return false;
  return std::string(c.checks) != "kernels" || metal::is_available();
}

// --- parts of programs ---

// Encodes a command that holds `pointer` and does nothing with it.
inline void hold(Encoder& encoder, const char* command, const void* pointer) {
  encoder.native(command, 1, 0, [pointer](int64_t, int64_t) { (void)pointer; });
}

// Nothing that was submitted to the stream and has not begun will run.
inline void give_up_work(Stream stream, Gate& gate) {
  gate.wait_until_reached();
  cancel(stream);
  gate.open();
  queue_of(stream).drain();
}

// A kernel that does nothing, with these arguments.
inline Ref<exec::Pipeline> idle_kernel(const std::string& name,
                                       std::vector<msl::KernelArgument> arguments,
                                       uint32_t threadgroup_bytes = 0) {
  msl::KernelInterface interface;
  interface.entry = name;
  interface.arguments = std::move(arguments);
  interface.threadgroup_bytes = threadgroup_bytes;
  return make_ref<exec::NativeKernel>(name, interface,
                                      [](const jit::DispatchArguments&, int64_t) {});
}

inline msl::KernelArgument reads(const std::string& name, uint32_t slot, uint32_t size = 4) {
  return {name, msl::KernelArgument::Kind::device, false, slot, size};
}
inline msl::KernelArgument writes(const std::string& name, uint32_t slot, uint32_t size = 4) {
  return {name, msl::KernelArgument::Kind::device, true, slot, size};
}

// 64 int32 that the GPU has filled with zeros.
inline array of_gpu() {
  array x = make_op("Zeros", default_stream(Device::gpu), {}, {64},
                    [](Encoder& encoder, const auto&, std::vector<array>& out) {
                      const int32_t zero = 0;
                      encoder.allocate(out[0]);
                      encoder.fill(out[0], &zero);
                    });
  eval(x);
  return x;
}

// An op without inputs and with one small output, which `encode` may use.
inline array lone_op(const std::string& name, Stream stream,
                     std::function<void(Encoder&, array& out)> encode,
                     std::vector<array> inputs = {}) {
  return make_op(name, stream, std::move(inputs), {16},
                 [encode](Encoder& encoder, const auto&, std::vector<array>& out) {
                   encoder.allocate(out[0]);
                   encode(encoder, out[0]);
                 });
}

// Memory of allocator::malloc, freed at the end.
struct RawBuffer {
  explicit RawBuffer(size_t size) : buffer(allocator::malloc(size)) {}
  ~RawBuffer() { allocator::free(buffer); }
  RawBuffer(const RawBuffer&) = delete;
  RawBuffer& operator=(const RawBuffer&) = delete;
  allocator::Buffer buffer;
};

}  // namespace holdfast::testing
