// The form of scalar IR, and what the front-end says about a kernel.
#include <doctest/doctest.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/raw_ostream.h>

#include "msl/sources.h"

using namespace holdfast::msl;
using namespace holdfast::msl::testing;

namespace {

std::string print(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return stream.str();
}

unsigned count(const std::string& text, const std::string& what) {
  unsigned found = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++found;
  return found;
}

}  // namespace

TEST_CASE("a kernel template becomes one function of pointers") {
  Compiled k = compile(R"(
constant float table[4] = {1.0, 2.5, 3, 4};
float helper(threadgroup float buf[32], uint i) { return buf[i & 31] * 0.5; }
template <typename T, int N>
[[kernel]] void foo(const device T* a [[buffer(0)]], device T* out [[buffer(1)]], constant int& n [[buffer(2)]],
                    uint3 tid [[thread_position_in_grid]], ushort lane [[thread_index_in_simdgroup]]) {
  threadgroup float x[N];
  if (tid.x >= uint(n)) return;
  x[lane] = a[tid.x] * table[lane & 3];
  threadgroup_barrier(mem_flags::mem_none);
  out[tid.x] = T(simd_sum(x[lane ^ 1]) + helper(x, lane));
}
template [[host_name("foo_f16")]] [[kernel]] decltype(foo<half, 32>) foo<half, 32>;
template [[host_name("foo_f32")]] [[kernel]] decltype(foo<float, 64>) foo<float, 64>;
)",
                       "foo_f32");
  REQUIRE_MESSAGE(k.module != nullptr, k.error);
  CHECK(check_scalar_ir(*k.module, k.interface) == "");
  CHECK(k.interface.entry == "foo_f32");
  REQUIRE(k.interface.arguments.size() == 3);
  CHECK(k.interface.arguments[0].name == "a");
  CHECK(k.interface.arguments[0].kind == KernelArgument::Kind::device);
  CHECK_FALSE(k.interface.arguments[0].written);
  CHECK(k.interface.arguments[0].element_size == 4);
  CHECK(k.interface.arguments[1].written);
  CHECK(k.interface.arguments[1].slot == 1);
  CHECK(k.interface.arguments[2].kind == KernelArgument::Kind::constant);
  CHECK(k.interface.threadgroup_bytes == 256);
  CHECK(k.interface.attributes ==
        std::vector<std::string>{"thread_position_in_grid", "thread_index_in_simdgroup"});
  const std::string text = print(*k.module);
  CHECK(count(text, "define") == 1);
  CHECK(count(text, "addrspacecast") == 0);
  CHECK(count(text, "alloca") == 0);
  CHECK(count(text, "double") == 0);  // literals are float
  CHECK(count(text, "call void @__hf_threadgroup_barrier") == 1);
  CHECK(text.find("[64 x float] undef") != std::string::npos);
}
