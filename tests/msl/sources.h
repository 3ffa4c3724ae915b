// Kernels for tests of the front-end by itself: a prelude of a few lines instead of metal_stdlib.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <string>

#include "msl/frontend/frontend.h"

namespace holdfast::msl::testing {

inline const std::string small_prelude = R"(
namespace metal {
template <class T, int N> struct vec;
template <class T> struct vec<T, 2> { T x, y; vec() = default; constexpr vec(T a, T b) : x(a), y(b) {} };
template <class T> struct vec<T, 3> { T x, y, z; vec() = default; constexpr vec(T a, T b, T c) : x(a), y(b), z(c) {} };
template <class T> struct vec<T, 4> {
  T x, y, z, w; vec() = default; constexpr vec(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
};
typedef vec<uint, 2> uint2; typedef vec<uint, 3> uint3; typedef vec<float, 4> float4; typedef vec<ushort, 2> ushort2;
enum class mem_flags : uint { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
inline void threadgroup_barrier(mem_flags f) { __hf_threadgroup_barrier(uint(f)); }
inline float simd_sum(float f) { return __hf_reduce_add_f32(f); }
}
using namespace metal;
)";

struct Compiled {
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module;
  KernelInterface interface;
  std::string error;  // what() of the CompileError
};

// Compiles `user` behind the prelude above; the user's text is the part "body".
inline Compiled compile(const std::string& user, const std::string& entry = "",
                        KernelSource source = {}) {
  source.kernel = "kernel_of_test";
  source.entry = entry;
  source.text = small_prelude + user;
  source.parts = {{"body", small_prelude.size(), source.text.size()}};
  Compiled compiled;
  try {
    compiled.module = to_scalar_ir(source, *compiled.context, compiled.interface);
  } catch (const CompileError& error) {
    compiled.error = error.what();
  }
  return compiled;
}

}  // namespace holdfast::msl::testing
