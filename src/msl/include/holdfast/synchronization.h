// Barriers and memory flags. Every flag synchronises and orders all memory: kernels rely on it.
#pragma once

#include <holdfast/base.h>

namespace metal {

enum class mem_flags : uint {
  mem_none = 0,
  mem_device = 1,
  mem_threadgroup = 2,
  mem_texture = 4,
  mem_threadgroup_imageblock = 8,
  mem_object_data = 16,
};
HF_INLINE constexpr mem_flags operator|(mem_flags a, mem_flags b) {
  return static_cast<mem_flags>(static_cast<uint>(a) | static_cast<uint>(b));
}
HF_INLINE constexpr mem_flags operator&(mem_flags a, mem_flags b) {
  return static_cast<mem_flags>(static_cast<uint>(a) & static_cast<uint>(b));
}
HF_INLINE constexpr mem_flags& operator|=(mem_flags& a, mem_flags b) { return a = a | b; }

enum thread_scope {
  thread_scope_thread,
  thread_scope_simdgroup,
  thread_scope_threadgroup,
  thread_scope_device,
  thread_scope_system,
};
using memory_scope = thread_scope;
inline constexpr memory_scope memory_scope_simdgroup = thread_scope_simdgroup;
inline constexpr memory_scope memory_scope_threadgroup = thread_scope_threadgroup;
inline constexpr memory_scope memory_scope_device = thread_scope_device;

HF_INLINE void threadgroup_barrier(mem_flags flags, memory_scope = thread_scope_threadgroup) {
  __hf_threadgroup_barrier(static_cast<uint>(flags));
}
HF_INLINE void simdgroup_barrier(mem_flags flags, memory_scope = thread_scope_simdgroup) {
  __hf_simdgroup_barrier(static_cast<uint>(flags));
}

}  // namespace metal
