// What users get wrong, through fast::metal_kernel and the real compiler: each is an exception with
// the kernel's name and the reason, and the process, the queue and the cache go on. Skipped where
// the build has no compiler.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "kernel_library/fake_metal.h"
#include "support/child.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

array numbers() { return astype(arange(100), float32); }

// What comes of calling and evaluating the kernel.
std::string message_of(const std::string& body, const std::string& header = "",
                       std::function<void(Call&)> change = {},
                       std::vector<std::string> inputs = {"x"},
                       std::vector<std::string> outputs = {"y"}) {
  try {
    auto kernel = fast::metal_kernel("wrong", inputs, outputs, body, header);
    Call call{{}, {}, {}, {100, 1, 1}, {64, 1, 1}};
    for (size_t i = 0; i < inputs.size(); ++i) call.inputs.push_back(numbers());
    for (size_t i = 0; i < outputs.size(); ++i) {
      call.shapes.push_back({100});
      call.dtypes.push_back(float32);
    }
    if (change) change(call);
    eval(call(kernel));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// A kernel that is right, on the same stream.
bool all_goes_on() {
  auto kernel = fast::metal_kernel("right", {"x"}, {"y"},
                                   "uint i = thread_position_in_grid.x; y[i] = x[i] * 2 + 1;");
  array x = numbers();
  array y = Call{{x}, {{100}}, {float32}, {100, 1, 1}, {64, 1, 1}}(kernel)[0];
  return all(equal(y, x * array(2.0f) + array(1.0f))).item<bool>();
}

const std::string good = "uint i = thread_position_in_grid.x; y[i] = x[i];";

}  // namespace

TEST_CASE("bad input: sources that do not compile point at the header or the body") {
  if (!metal::is_available()) return;
  struct Row {
    const char *header, *body, *place, *reason;
  };
  const Row rows[] = {
      {"", "y[0] = nothing_like_it;", "body:1:8", "undeclared identifier 'nothing_like_it'"},
      {"", "float v = 0.5;\n  y[0] = v + foo(v);", "body:2:14", "'foo'"},
      {"// one\nfloat f() { return no; }", "y[0] = f();", "header:2:20", "'no'"},
      {"", "y[0] = 1", "body:1:9", "expected ';'"},
      {"", "if (x[0] > 1) { y[0] = 1;", "body:1:26", "expected '}'"},
      {"#error not for this machine", "y[0] = 1;", "header:1:2", "not for this machine"},
      {"", "static_assert(sizeof(half) == 4, \"half\");", "body:1:15", "half"},
      {"", "x[0] = 1;", "body:1:6", "read-only"},
      {"", "threadgroup float s[2]; device float* p = s;", "body:1:39", "threadgroup float"},
      {"", "y[0] = float(T(1));", "body:1:14", "'T'"},
      {"#include <no_such_file.h>", "y[0] = 1;", "header:1:10", "no_such_file.h"},
      {"#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>",
       "constexpr mpp::tensor_ops::matmul2d_descriptor d(16, 32, 16); mpp::tensor_ops::m"
       "atmul2d<d, metal::execution_simdgroup> p; auto a = p.get_left_input_cooperative_"
       "tensor<float, float, float>(); p.run(a, a, a); y[0] = a[0];",
       "", "MetalPerformancePrimitives"},
      {"float f(texture2d<float> t) { return 1; }", "y[0] = 1;", "header:1:9", "textures"},
      {"", "double d = x[0]; y[0] = d;", "body:1:1", "no double"},
      {"float f(int n) { return n == 0 ? 1 : f(n - 1); }", "y[0] = f(int(x[0]));", "", "recursion"},
      {"float g(int);", "y[0] = g(1);", "", "'g(int)', which is declared but not defined"},
      {"", "threadgroup float s[9000]; s[int(x[0])] = 1; y[0] = s[int(x[1])];", "", "32768"},
      {"",
       "float big[9000000]; for (int k = 0; k < 9000000; ++k) big[k] = x[k % 100]; y[0] = "
       "big[int(x[0])];",
       "", "private arrays"},
  };
  uint64_t failures = kernel_cache_stats().failures, entries = 0;
  CHECK(all_goes_on());
  entries = kernel_cache_stats().entries;
  for (const Row& row : rows) {
    std::string message = message_of(row.body, row.header);
    CAPTURE(message);
    CAPTURE(std::string(row.place));
    CHECK(message.starts_with(std::string("[wrong] ") + row.place));
    CHECK(message.find(row.reason) != std::string::npos);
    CHECK(all_goes_on());
  }
  CHECK(kernel_cache_stats().failures == failures + std::size(rows));
  CHECK(kernel_cache_stats().entries == entries);
}

TEST_CASE("bad input: names that collide with the language, with ours, or with each other") {
  auto made_with = [](std::vector<std::string> inputs, std::vector<std::string> outputs) {
    return message_of(good, "", {}, std::move(inputs), std::move(outputs));
  };
  for (const char* name :
       {"float", "class", "thread", "device", "kernel", "half", "while", "double", "__hf_reduce",
        "holdfast_x", "thread_position_in_grid", "two words", "1x", "", "x-y", "ü"}) {
    CAPTURE(std::string(name));
    for (const std::string& message : {made_with({name}, {"y"}), made_with({"x"}, {name})}) {
      CAPTURE(message);
      CHECK(message.find("kernel 'wrong'") != std::string::npos);
      CHECK(message.find("'" + std::string(name) + "'") != std::string::npos);
    }
  }
  CHECK(made_with({"x", "x"}, {"y"}).find("used twice") != std::string::npos);
  CHECK(made_with({"x"}, {"x"}).find("used twice") != std::string::npos);
  CHECK(made_with({"x"}, {"y", "y"}).find("used twice") != std::string::npos);
  CHECK(made_with({"x"}, {}).find("at least one output") != std::string::npos);
  CHECK_THROWS_WITH(fast::metal_kernel("", {"x"}, {"y"}, good),
                    "[metal_kernel] a kernel must have a name");
  std::vector<std::string> many;
  for (int i = 0; i < 32; ++i) many.push_back("x" + std::to_string(i));
  CHECK(made_with(many, {"y"}).find("at most 31") != std::string::npos);
  for (const char* name : {"float", "x", "y", "holdfast_n", "thread_position_in_grid", "a b"}) {
    std::string message =
        message_of(good, "", [&](Call& call) { call.template_arguments = {{name, 3}}; });
    CAPTURE(message);
    CHECK(message.find("kernel 'wrong'") != std::string::npos);
    CHECK(message.find(name) != std::string::npos);
  }
  if (!metal::is_available()) return;
  // Macros of the language are found by the compiler, in what was generated.
  std::string macro = message_of("y[0] = 1;", "", {}, {"INFINITY"});
  CHECK_MESSAGE(macro.starts_with("[wrong] signature:1:"), macro);
  // Names of functions, types and of other languages are free.
  for (const char* name :
       {"exp", "float4", "metal", "vec", "atomic", "index", "time", "linux", "NULL"}) {
    std::string body = std::string("uint i = thread_position_in_grid.x; y[i] = ") + name + "[i];";
    CHECK(message_of(body, "", {}, {name}) == "nothing was thrown");
  }
  CHECK(all_goes_on());
}

TEST_CASE("bad input: counts, dtypes, grids and threadgroups") {
  if (!metal::is_available()) return;
  struct Row {
    std::function<void(Call&)> change;
    const char* reason;
  };
  const Row rows[] = {
      {[](Call& c) { c.inputs.clear(); }, "expected 1 inputs"},
      {[](Call& c) { c.inputs.push_back(numbers()); }, "expected 1 inputs"},
      {[](Call& c) { c.shapes.clear(); }, "expected 1 output shapes"},
      {[](Call& c) { c.dtypes.clear(); }, "expected 1 output dtypes"},
      {[](Call& c) { c.shapes = {{100}, {100}}; }, "expected 1 output shapes"},
      {[](Call& c) { c.shapes = {{-1}}; }, "negative"},
      {[](Call& c) { c.inputs[0] = astype(numbers(), float64, Device::cpu); }, "float64"},
      {[](Call& c) { c.dtypes = {float64}; }, "float64"},
      {[](Call& c) { c.template_arguments = {{"T", float64}}; }, "float64"},
      {[](Call& c) { c.grid = {0, 1, 1}; }, "the grid"},
      {[](Call& c) { c.grid = {1, 1, -5}; }, "the grid"},
      {[](Call& c) { c.grid = {2147483647, 2147483647, 2147483647}; }, "2^40"},
      {[](Call& c) { c.threadgroup = {0, 1, 1}; }, "the threadgroup"},
      {[](Call& c) { c.grid = {4096, 1, 1}, c.threadgroup = {1025, 1, 1}; }, "at most 1024"},
      {[](Call& c) { c.grid = {64, 64, 64}, c.threadgroup = {16, 16, 5}; }, "at most 1024"},
  };
  for (const Row& row : rows) {
    std::string message = message_of(good, "", row.change);
    CAPTURE(message);
    CHECK(message.find("wrong") != std::string::npos);
    CHECK(message.find(row.reason) != std::string::npos);
    CHECK(all_goes_on());
  }
}

TEST_CASE("bad input: kernels that do not end or touch what is not theirs [child]") {
  if (!is_child("bad input: kernels that do not end or touch what is not theirs [child]")) return;
  const std::string at = "uint i = thread_position_in_grid.x;\n";
  const auto late = "ran longer than 0.25 s and was stopped (HOLDFAST_KERNEL_TIMEOUT)";
  auto with = [](int grid, int threadgroup) {
    return [=](Call& call) {
      call.grid = {grid, 1, 1};
      call.threadgroup = {threadgroup, 1, 1};
    };
  };
  for (const std::string& message :
       {message_of(at + "while (true) {}"), message_of(at + "while (x[i % 100] >= 0) y[i] += 1;"),
        message_of(at + "if (i == 99) while (x[5] > 0) y[i] += 1;"),
        message_of(at + "while (x[0] >= 0) { threadgroup_barrier(mem_flags::mem_none); }"),
        // No group is endless, all of them are: 2^31 threads, one by one.
        message_of("y[thread_position_in_grid.x % 100] += 1;", "", with(2147483647, 1))}) {
    CAPTURE(message);
    CHECK(message.starts_with("[wrong] "));
    CHECK(message.find(late) != std::string::npos);
    CHECK(all_goes_on());
  }
  std::string wild = message_of(at + "((device float*)(ulong(x[i]) + 16))[0] = 1;");
  CHECK_MESSAGE(wild.starts_with("[wrong] the kernel writes outside of \""), wild);
  CHECK(all_goes_on());
  // What depends on a failed output fails with it; others do not.
  auto endless = fast::metal_kernel("endless", {"x"}, {"y"}, "while (true) {}");
  array y = Call{{numbers()}, {{100}}, {float32}, {100, 1, 1}, {64, 1, 1}}(endless)[0];
  array z = y + array(1.0f), other = numbers() + array(1.0f);
  std::string message = "nothing was thrown";
  try {
    eval(z, other);
  } catch (const std::exception& error) {
    message = error.what();
  }
  CHECK_MESSAGE(message.starts_with("[endless] "), message);
  CHECK(all(equal(other, numbers() + array(1.0f))).item<bool>());
  CHECK(all_goes_on());
}

TEST_CASE("bad input: a fault of a kernel without guards [child]") {
  if (!is_child("bad input: a fault of a kernel without guards [child]")) return;
  std::string wild =
      message_of("y[thread_position_in_grid.x] = ((device float*)(ulong(x[0]) + 16))[0];");
  CHECK_MESSAGE(wild.starts_with("[wrong] "), wild);
  CHECK_MESSAGE(wild.find("SIGSEGV") != std::string::npos, wild);
  CHECK(all_goes_on());
}

TEST_CASE("bad input: a fault of a kernel without guards") {
  if (!metal::is_available()) return;
  ChildResult result = run_child("bad input: a fault of a kernel without guards [child]",
                                 {"HOLDFAST_GUARD_KERNELS=0"});
  CHECK_MESSAGE(result.exit_code == 0, result.output);
}

TEST_CASE("bad input: kernels that do not end or touch what is not theirs") {
  if (!metal::is_available()) return;
  ChildResult result =
      run_child("bad input: kernels that do not end or touch what is not theirs [child]",
                {"HOLDFAST_KERNEL_TIMEOUT=0.25"});
  CHECK_MESSAGE(result.exit_code == 0, result.output);
}
