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

TEST_CASE("arithmetic that a kernel would repeat is shared, all else is inlined") {
  auto functions_of = [](const std::string& header, const std::string& body) {
    Compiled k = compile(header +
                         "[[kernel]] void k(device float* x [[buffer(0)]],\n"
                         "    uint i [[thread_position_in_grid]]) {\n" +
                         body + "}\n");
    REQUIRE_MESSAGE(k.module != nullptr, k.error);
    CHECK(check_scalar_ir(*k.module, k.interface) == "");
    return count(print(*k.module), "define");
  };
  auto repeated = [](const std::string& statement, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += statement;
    return text;
  };
  const std::string sine = "x[i] += sin(x[i] * 3);\n";
  CHECK(functions_of("", repeated(sine, 1)) == 1);
  CHECK(functions_of("", repeated(sine, 10)) == 2);
  CHECK(functions_of("", repeated("x[i] += sin(x[i]) + tanh(x[i]);\n", 10)) == 3);
  // Nothing to gain: a function of constants is a constant, a small one is smaller than its call.
  CHECK(functions_of("", repeated("x[i] += sin(0.5f);\n", 10)) == 1);
  CHECK(functions_of("", repeated("x[i] = x[i] * x[i] + max(x[i], 1.0f);\n", 50)) == 1);
  // What it depends on is not its arguments alone.
  const std::string memory =
      "void f(device float* x, uint i) { x[i] += 1.0f + 0.5f * x[i + 1]; }\n";
  CHECK(functions_of(memory, repeated("f(x, i);\n", 50)) == 1);
  const std::string lanes =
      "float f(float a) { return sin(simd_sum(a)) * 2 + sin(simd_max(a) + a) + cos(a * 2); }\n";
  CHECK(functions_of(lanes, "x[i] = f(f(x[i]));\n") == 1);
  const std::string loop =
      "float f(float a, int n) { for (int i = 0; i < n; ++i) a = a * a / 3 + 1; return a; }\n";
  CHECK(functions_of(loop, repeated("x[i] += f(x[i], i & 7);\n", 50)) == 1);
  // The user's own; what it calls is part of it.
  const std::string gelu =
      "float gelu(float a) { return a * (1 + tanh(a * (1 + 0.04f * a * a))); }\n";
  CHECK(functions_of(gelu, repeated("x[i] = gelu(x[i]);\n", 10)) == 2);
}
