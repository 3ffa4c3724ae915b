// Files that use what real headers and .metal files use: every kernel of them compiles, runs, and
// finds what it expects. A kernel stores 1 for each thing that is right, and 0 for each that is
// not.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "devices/cpu/jit/kernel_log.h"
#include "msl/stdlib_testing.h"
#include "support/stderr_text.h"

using namespace holdfast;
using namespace holdfast::msl;
using namespace holdfast::msl::testing;

namespace {

const std::filesystem::path features = std::filesystem::path(HOLDFAST_TEST_DATA) / "features";

KernelSource source_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  KernelSource source;
  source.kernel = path.filename().string();
  source.text.assign(std::istreambuf_iterator<char>(file), {});
  source.parts = {{source.kernel, 0, source.text.size()}};
  source.directory = path.parent_path().string();
  source.include_directories = {features.string()};
  source.assume_missing_constants = true;
  return source;
}

// What one kernel found wrong; empty: nothing.
std::string run_feature(KernelSource source, const KernelInterface& kernel,
                        jit::Lowering lowering) {
  source.kernel = source.entry = kernel.entry;
  std::vector<std::vector<uint32_t>> memory(std::max<size_t>(1, kernel.arguments.size()),
                                            std::vector<uint32_t>(256, 2));
  std::vector<void*> buffers;
  for (auto& buffer : memory) buffers.push_back(buffer.data());
  try {
    run_stdlib(source, lowering, buffers, 32);
  } catch (const std::exception& error) {
    return error.what();
  }
  const std::vector<uint32_t>& ok = memory[0];
  if (std::count(ok.begin(), ok.end(), 1u) == 0) return "it checked nothing";
  const auto wrong = std::find(ok.begin(), ok.end(), 0u);
  return wrong == ok.end() ? "" : "ok[" + std::to_string(wrong - ok.begin()) + "] is 0";
}

}  // namespace

TEST_CASE("what real headers use compiles and runs") {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(features)) {
    if (entry.path().extension() != ".metal") continue;
    ++files;
    const KernelSource source = source_of(entry.path());
    holdfast::testing::StderrText quiet;
    std::vector<std::string> failures;
    const std::vector<KernelInterface> kernels = list_kernels(source);
    for (const KernelInterface& kernel : kernels) {
      // These are wrong on purpose, each by itself.
      if (kernel.entry == "product_half" || kernel.entry.ends_with("_13")) continue;
      for (jit::Lowering lowering : lowerings()) {
        std::string problem = run_feature(source, kernel, lowering);
        if (!problem.empty()) failures.push_back(kernel.entry + ": " + problem);
      }
    }
    CHECK_MESSAGE(!kernels.empty(), entry.path().filename().string());
    for (const std::string& failure : failures)
      FAIL_CHECK(entry.path().filename().string() << ": " << failure);
  }
  CHECK(files == 12);
}

TEST_CASE("of many kernels, those that are asked for are compiled") {
  const KernelSource source = source_of(features / "many_kernels.metal");
  const std::vector<KernelInterface> kernels = list_kernels(source);
  CHECK(kernels.size() == 21);
  auto problem = [&](const char* name) {
    KernelSource one = source;
    one.entry = one.kernel = name;
    return problem_of(one);
  };
  CHECK(problem("filled_half_16") == "");
  CHECK(problem("filled_half_13").find("thirteen is never asked for") != std::string::npos);
  // All of them together: the first error is there, with its kernel's place.
  CHECK_THROWS_AS(ParsedSource{source}, CompileError);
}

TEST_CASE("a kernel that needs MetalPerformancePrimitives is refused by itself") {
  KernelSource source = source_of(features / "performance_primitives.metal");
  source.entry = source.kernel = "product_half";
  CHECK(problem_of(source).find("[product_half] error: uses mpp::tensor_ops: "
                                "MetalPerformancePrimitives are not available here") == 0);
}

TEST_CASE("messages of kernels are lines on stderr, of each thread") {
  KernelSource source = source_of(features / "logging.metal");
  source.entry = source.kernel = "speaks";
  for (jit::Lowering lowering : lowerings()) {
    std::vector<uint32_t> ok(32, 0);
    holdfast::testing::StderrText messages;
    run_stdlib(source, lowering, {ok.data()}, 32);
    const std::string text = messages.take();
    INFO(text);
    CHECK(std::count(text.begin(), text.end(), '\n') == 3);
    CHECK(text.find("holdfast: [stdlib] debug: thread 5 of -3,  2.50, "
                    "1.000000,2.000000,3.000000,4.000000\n") != std::string::npos);
    CHECK(text.find("debug: thread 21 of -3, 10.50") != std::string::npos);
    CHECK(text.find("holdfast: [stdlib] error: half 0.25, ffffffffff\n") != std::string::npos);
    CHECK(std::count(ok.begin(), ok.end(), 1u) == 32);
  }
}

TEST_CASE("formats of messages: what is wrong with one harms nothing") {
  auto text = [](const char* format, std::vector<uint64_t> values, uint32_t kinds) {
    jit::LogMessage message{};
    message.format = format;
    message.what = static_cast<uint32_t>(values.size());
    message.kinds = kinds;
    std::copy(values.begin(), values.end(), message.values);
    return jit::text_of(message);
  };
  constexpr uint64_t minus_one = ~uint64_t{0};
  CHECK(text("%d %u %x", {minus_one, minus_one, minus_one}, 0b010101) == "-1 4294967295 ffffffff");
  CHECK(text("%hhd %hx %ld", {0x1ff, 0x12345, minus_one}, 0b010101) == "-1 2345 -1");
  CHECK(text("100%% %s %n %*d %", {1}, 0) == "100% %s %n %*d %");
  CHECK(text("%d %d", {7}, 1) == "7 <missing>");
  CHECK(text("%f %d", {5, 0x40200000}, 0b1001) == "5.000000 2");
  CHECK(text("%99999d", {5}, 1) == "%99999d");
  CHECK(text("%c%c", {'a', 7}, 0) == "a?");
}

TEST_CASE("a format that is not known when the kernel is compiled") {
  KernelSource source = stdlib_source(
      "kernel void k(device char* text, device int* x) { "
      "metal::os_log_default.log((const thread char*)(x[0] > 0 ? \"a\" : \"b\")); x[0] = text[0]; "
      "}");
  CHECK(problem_of(source).find("must be a string literal") != std::string::npos);
  CHECK(problem_of(stdlib_source("kernel void k(device int* x) { "
                                 "metal::os_log_default.log(\"%d\", 1, 2, 3, 4, 5, 6, 7, 8, 9); }"))
            .find("at most 8 values") != std::string::npos);
}
