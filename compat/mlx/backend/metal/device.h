// MLX's way to dispatch kernels of one's own from eval_gpu: a device with libraries and kernels,
// and an encoder with arguments by slot. Kernels are compiled from MSL source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <holdfast/encoder.h>
#include <holdfast/kernel.h>

#include "mlx/backend/metal/metal.h"
#include "mlx/core.h"

namespace NS {
using UInteger = size_t;
}  // namespace NS

namespace MTL {

struct Size {
  Size() = default;
  Size(NS::UInteger w, NS::UInteger h, NS::UInteger d) : width(w), height(h), depth(d) {}
  NS::UInteger width = 0, height = 0, depth = 0;
};

enum DataType {
  DataTypeBool,
  DataTypeShort,
  DataTypeUShort,
  DataTypeInt,
  DataTypeUInt,
  DataTypeFloat
};

// Both live as long as the process.
class Library;
class ComputePipelineState {
 public:
  explicit ComputePipelineState(holdfast::Kernel kernel) : kernel_(std::move(kernel)) {}
  NS::UInteger maxTotalThreadsPerThreadgroup() const {
    return kernel_.max_threads_per_threadgroup();
  }
  NS::UInteger threadExecutionWidth() const { return 32; }
  const holdfast::Kernel& kernel() const { return kernel_; }

 private:
  holdfast::Kernel kernel_;
};

}  // namespace MTL

namespace holdfast::metal {

// (value, type, index)
using MTLFCList = std::vector<std::tuple<const void*, MTL::DataType, NS::UInteger>>;

// Of the stream that this thread is encoding for; to be used inside eval_gpu. A dispatch holds what
// is bound until it is done. Kernel and bindings stay for the next dispatch until the op is
// encoded. Order follows from what is bound: barriers have nothing to add.
class CommandEncoder {
 public:
  explicit CommandEncoder(Stream stream) : stream_(stream) {}
  CommandEncoder(const CommandEncoder&) = delete;
  CommandEncoder& operator=(const CommandEncoder&) = delete;

  void set_compute_pipeline_state(MTL::ComputePipelineState* kernel);
  // `offset` in bytes.
  void set_input_array(const array& a, int index, int64_t offset = 0);
  void set_output_array(array& a, int index, int64_t offset = 0);
  void add_temporary(array a) { Encoder::of(stream_).output(a); }
  void add_temporaries(std::vector<array> arrays) {
    for (array& a : arrays) add_temporary(a);
  }
  void set_threadgroup_memory_length(size_t bytes, int index);

  template <typename T>
  void set_bytes(const T& value, int index) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    bind_bytes(&value, sizeof(T), index);
  }
  template <typename T>
  void set_bytes(const T* values, int count, int index) {
    bind_bytes(values, static_cast<size_t>(count) * sizeof(T), index);
  }
  template <typename Vector>
  void set_vector_bytes(const Vector& values, size_t count, int index) {
    bind_bytes(values.data(), count * sizeof(typename Vector::value_type), index);
  }
  template <typename Vector>
  void set_vector_bytes(const Vector& values, int index) {
    set_vector_bytes(values, values.size(), index);
  }

  // The grid in threads, or in threadgroups.
  void dispatch_threads(MTL::Size grid, MTL::Size group);
  void dispatch_threadgroups(MTL::Size groups, MTL::Size group);

  void barrier() {}
  void maybeInsertBarrier() {}

 private:
  struct Slot {
    KernelBinding::Kind kind = KernelBinding::Kind::none;
    std::optional<array> bound;
    std::vector<std::byte> bytes;
    // The kernel whose dispatch came first since it was bound.
    MTL::ComputePipelineState* used_by = nullptr;
  };
  void bind(const array& a, KernelBinding::Kind kind, int index, int64_t offset);
  void bind_bytes(const void* bytes, size_t size, int index);
  Slot& slot(int index);

  Stream stream_;
  MTL::ComputePipelineState* kernel_ = nullptr;
  std::vector<Slot> slots_;
  std::vector<uint32_t> threadgroup_bytes_;
};

class Device {
 public:
  // `name`.metal in the folder `path`: where programs for Metal keep `name`.metallib, there must be
  // its source. Included files are looked for in the same folder.
  MTL::Library* get_library(const std::string& name, const std::string& path = "");
  // The source that `builder` gives, once for each name.
  MTL::Library* get_library(const std::string& name, const std::function<std::string()>& builder);
  // A function of the library, or its [[host_name]]. The same name and `hash_name` give the same
  // kernel again. Compiles it the first time.
  MTL::ComputePipelineState* get_kernel(const std::string& name, MTL::Library* library,
                                        const std::string& hash_name = "",
                                        const MTLFCList& constants = {});
  CommandEncoder& get_command_encoder(int stream_index);
  ResidencySets& residency_sets() { return metal::residency_sets(); }
};

Device& device(const ::holdfast::Device& device);
CommandEncoder& get_command_encoder(Stream stream);

}  // namespace holdfast::metal
