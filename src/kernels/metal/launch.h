// Launch: one dispatch of an entry, argument by argument. And the host's side of
// support/indexing.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/encoder.h>
#include <holdfast/small_vector.h>

#include "kernels/metal/entries.h"
#include "kernels/plan/layout.h"

namespace holdfast::kernels::metal {

// As in the Metal language: for the structures of support/*_parameters.h.
using uint = uint32_t;
using ulong = uint64_t;

// A number as a parameter of a kernel: becomes any type of integers. What that type does not hold,
// the kernel cannot compute; the host does.
class Fitted {
 public:
  explicit Fitted(int64_t number) : number_(number) {}
  template <std::integral T>
  operator T() const {
    if (!std::in_range<T>(number_)) throw exec::NoKernel();
    return static_cast<T>(number_);
  }

 private:
  int64_t number_;
};
template <typename T>
  requires std::integral<T> || std::is_enum_v<T>
Fitted fit(T number) {
  return Fitted(static_cast<int64_t>(number));
}

struct Output {
  array& memory;
};
inline Output output(array& memory) { return {memory}; }

// Arguments are given in the order of the kernel's parameters, then `over` encodes the dispatch.
// Arrays must stay where they are until then; values are copied.
class Launch {
 public:
  Launch(Encoder& encoder, const char* source, const std::string& entry,
         const Constants& constants = {});
  Launch(Encoder& encoder, const exec::Pipeline& pipeline)
      : encoder_(encoder), pipeline_(&pipeline) {}

  Launch& input(const array& a);
  Launch& output(array& a);
  template <typename T>
  Launch& value(const T& parameter) {
    static_assert(std::is_trivially_copyable_v<T>);
    return bytes(&parameter, sizeof(T));
  }
  // A list of structures or numbers; the kernel gets a pointer even when there are none.
  template <typename List>
  Launch& list(const List& parameters) {
    return bytes(parameters.data(), parameters.size() * sizeof(*parameters.data()));
  }
  // A `device Errors&` (support/errors.h): what the kernel may find wrong with its data, as
  // messages for its codes 1, 2, …, with "{}" for its numbers. The op's command fails with one.
  Launch& errors(const std::vector<std::string>& messages);
  // Several arguments: arrays are inputs unless they are marked as outputs, and what has elements
  // is a list.
  template <typename... Arguments>
  Launch& with(const Arguments&... arguments) {
    return (add(arguments), ..., *this);
  }
  // Arguments that the kernel has and does not touch this time.
  Launch& nothing(size_t arguments) {
    for (size_t i = 0; i < arguments; ++i) bytes(nullptr, 0);
    return *this;
  }
  // The size of the kernel's argument [[threadgroup(0)]].
  Launch& threadgroup_memory(uint32_t size) {
    threadgroup_bytes_ = size;
    return *this;
  }

  // At least `threads` threads, in a grid whose rows the kernel counts with thread_number(). There
  // may be more: the kernel leaves those out.
  void over(int64_t threads, uint32_t threadgroup = 256);
  void over(Encoder::Grid grid, Encoder::Grid threadgroup);
  // At least `groups` threadgroups, which the kernel counts with group_number(): as above.
  void groups(int64_t groups, uint32_t threadgroup);

 private:
  Launch& bytes(const void* address, size_t size);
  template <typename T>
  void add(const T& argument) {
    if constexpr (std::is_same_v<T, array>) {
      input(argument);
    } else if constexpr (std::is_same_v<T, Output>) {
      output(argument.memory);
    } else if constexpr (requires { argument.data(); }) {
      list(argument);
    } else {
      value(argument);
    }
  }

  Encoder& encoder_;
  Ref<const exec::Pipeline> pipeline_;
  SmallVector<KernelBinding, 12> bindings_;
  std::string errors_;
  uint32_t threadgroup_bytes_ = 0;
};

// A grid of `groups` threadgroups along an axis, in threads. Throws std::invalid_argument with the
// op's name when no grid is that long.
uint32_t grid_length(const Encoder& encoder, int64_t groups, uint32_t threadgroup);

// Threadgroups of 256 threads that keep a large device busy: below, work is cut finer.
inline constexpr int64_t enough_groups = 1024;

// Where the first element lies in memory, as far as multiples of 16 go: addresses of buffers are.
inline bool is_aligned(const array& a, size_t bytes) {
  return static_cast<uint64_t>(a.offset()) % bytes == 0;
}

// As in support/indexing.h.
struct Extent {
  int64_t stride;
  uint64_t size;
  uint32_t multiplier, shift;
};
Extent extent_of(int64_t size, int64_t stride);
using Extents = SmallVector<Extent, 6>;
Extents extents_of(const CollapsedLayout& layout);

// Positions up to here are uint in kernels (Extent).
inline constexpr int64_t most_small_elements = (int64_t{1} << 31) - 1;

}  // namespace holdfast::kernels::metal
