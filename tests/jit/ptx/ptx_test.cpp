// Kernels for NVIDIA GPUs: all reach PTX and, where the assembler is installed, machine code; what
// is promised of them is looked for in the text. No GPU here.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include "devices/cuda/assembler.h"
#include "devices/cuda/compiler/ptx.h"
#include "jit/ptx/gpu_cases.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::jit::testing;
using cuda::Positions;

namespace {

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++found;
  return found;
}

// What no kernel may have: ways to end that the process does not survive, masks from the machine,
// functions of CUDA's libraries, arithmetic that an assembler may contract or approximate, and
// halves by a move that unpacks, which ptxas 13.0 gets wrong.
std::string problem_of(const std::string& ptx) {
  for (const char* forbidden : {"trap;", "activemask", "mov.b64 {tmp", ".extern .func", "__nv_",
                                ".ftz", "div.full", "div.approx", "sqrt.approx", "\tmul.f",
                                "\tadd.f", "\tsub.f", "\tmul.bf", "\tadd.bf", "\tsub.bf"}) {
    if (ptx.find(forbidden) != std::string::npos) return std::string("has ") + forbidden;
  }
  return ptx.find(".maxntid") == std::string::npos ? "has no .maxntid" : "";
}

// Compiles and assembles the cases, as many at once as there are processors.
void check_all(const std::vector<GpuCase>& cases) {
  const std::string assembler = cuda::find_assembler();
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::vector<std::string> problems;
  testing::on_threads(
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency())), [&](int) {
        for (size_t i; (i = next++) < cases.size();) {
          // The two ways to know positions in turn: with sites both take long.
          const Positions positions = i % 2 == 0 ? Positions::general : Positions::rows;
          std::string problem;
          try {
            cuda::PtxOptions options = cases[i].options(positions);
            cuda::PtxKernel kernel = cuda::compile_to_ptx(cases[i].source, options);
            problem = problem_of(kernel.text);
            if (!assembler.empty()) cuda::assemble(assembler, kernel.text, options.target);
          } catch (const std::exception& error) {
            problem = error.what();
          }
          std::lock_guard lock(mutex);
          if (!problem.empty())
            problems.push_back(cases[i].group + ", " + cases[i].name + ": " + problem);
        }
      });
  CHECK(!cases.empty());
  for (const std::string& problem : problems) CHECK_MESSAGE(false, problem);
  if (assembler.empty()) MESSAGE("no ptxas: the kernels were not assembled");
}

}  // namespace

TEST_CASE("PTX: every feature of the language") { check_all(feature_cases()); }

TEST_CASE("PTX: random kernels") {
  std::vector<GpuCase> cases;
  for (uint64_t seed = 1; seed <= 40; ++seed) cases.push_back(random_case(seed));
  check_all(cases);
}

namespace {

// What is expected of a kernel of `bench kernels`, as it is dispatched there.
struct Expected {
  const char* name;
  size_t loads;  // from device memory, in the text at least: those of several turns
  size_t wide_loads, wide_stores;  // of 16 bytes, at least
  uint32_t registers;              // at most
  // Stands at least so many times in the text because several turns are made at once.
  const char* repeated = "";
  size_t times = 0;
};
const Expected expectations[] = {
    {"RMSNorm", 12, 0, 0, 40},
    {"softmax", 12, 0, 0, 40},
    {"gated delta step", 7, 3, 1, 64, "shfl.sync", 20},
    {"4-bit GEMV", 26, 2, 0, 96},
    {"attention", 16, 0, 0, 64, "shfl.sync", 26},
    {"Mandelbrot", 0, 0, 0, 32, "setp.gtu", 8},
    {"bitonic sort", 1, 0, 0, 32},
    {"8×8 simdgroup_matrix", 4, 0, 0, 96},
    {"histogram", 4, 0, 0, 40},
};

}  // namespace

TEST_CASE("PTX: properties of the kernels of `bench kernels`") {
  const std::string assembler = cuda::find_assembler();
  for (const GpuCase& gpu_case : bench_cases()) {
    CAPTURE(gpu_case.name);
    auto expected =
        std::find_if(std::begin(expectations), std::end(expectations),
                     [&](const Expected& one) { return gpu_case.name.starts_with(one.name); });
    REQUIRE(expected != std::end(expectations));
    const cuda::PtxOptions options = gpu_case.options(Positions::rows);
    const cuda::PtxKernel kernel = cuda::compile_to_ptx(gpu_case.source, options);
    CHECK(problem_of(kernel.text) == "");
    CHECK(kernel.text.find(".local") == std::string::npos);
    CHECK_FALSE(kernel.gathers);
    CHECK(count(kernel.text, "ld.global") >= expected->loads);
    CHECK(count(kernel.text, "ld.global.v4") + count(kernel.text, "ld.global.nc.v4") >=
          expected->wide_loads);
    CHECK(count(kernel.text, "st.global.v4") >= expected->wide_stores);
    if (expected->times > 0) CHECK(count(kernel.text, expected->repeated) >= expected->times);
    if (assembler.empty()) continue;
    const cuda::AssembledKernel code = cuda::assemble(assembler, kernel.text, options.target);
    CHECK(code.stack_bytes == 0);
    CHECK(code.spill_store_bytes == 0);
    CHECK(code.registers <= expected->registers);
    if (std::getenv("HOLDFAST_TEST_VERBOSE")) {
      MESSAGE(gpu_case.name, ": ", code.registers, " registers, ", code.shared_bytes,
              " shared, v4 loads ",
              count(kernel.text, "ld.global.v4") + count(kernel.text, "ld.global.nc.v4"),
              ", stores ", count(kernel.text, "st.global.v4"));
    }
  }
}

TEST_CASE("PTX: approximations only where the source allows them") {
  auto text_of = [](const std::string& type, const std::string& value) {
    msl::KernelSource source;
    source.kernel = "k";
    source.text = "#include <metal_stdlib>\nusing namespace metal;\nkernel void k(device " + type +
                  "* x [[buffer(0)]], uint i "
                  "[[thread_position_in_grid]]) { x[i] = " +
                  value + "; }";
    return cuda::compile_to_ptx(source, cuda::PtxOptions{}).text;
  };
  auto has = [&](const char* type, const char* value, const char* instruction) {
    return text_of(type, value).find(instruction) != std::string::npos;
  };
  CHECK(has("float", "fast::exp(x[i])", "ex2.approx.f32"));
  CHECK(has("float", "fast::log2(x[i])", "lg2.approx.f32"));
  CHECK(has("half", "exp(x[i])", "ex2.approx.f32"));
  CHECK_FALSE(has("half", "precise::log(x[i])", "lg2.approx"));
  for (const char* value :
       {"exp(x[i])", "log(x[i])", "pow(x[i], 0.3f)", "1 / sqrt(x[i])", "tanh(x[i])"})
    CHECK_FALSE(has("float", value, ".approx"));
}

TEST_CASE("PTX: high halves by shifts") {
  msl::KernelSource source;
  source.kernel = "k";
  source.text =
      R"(kernel void k(device uint* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    ulong factor = i;
    for (uint turn = 0; turn < x[0]; ++turn) x[i] += uint(x[i + turn] * factor >> 32);
  })";
  const std::string text = cuda::compile_to_ptx(source, cuda::PtxOptions{}).text;
  CHECK(problem_of(text) == "");
  CHECK(text.find("shr.u64 tmp") != std::string::npos);
}

TEST_CASE("PTX: text does not depend on what the process has compiled before") {
  // Lanes that leave a loop one by one gather, by calls, of which LLVM counts all.
  msl::KernelSource source;
  source.kernel = "k";
  source.text =
      R"(#include <metal_stdlib>
  using namespace metal;
  kernel void k(device uint* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    for (uint turn = 0; turn < x[i]; ++turn) {
      if (x[turn] != i) continue;
      x[i] += simd_sum(turn);
      return;
    }
  })";
  cuda::PtxOptions rows, general;
  general.positions = cuda::Positions::general;
  general.full_simdgroups = false;
  const auto first = cuda::compile_to_ptx(source, {rows, general});
  REQUIRE(first[0].gathers);
  CHECK(first[0].text.find("call.uni") != std::string::npos);
  CHECK(problem_of(first[0].text) == "");
  const auto second = cuda::compile_to_ptx(source, {rows, general});
  CHECK((first[0].text == second[0].text));
  CHECK((first[1].text == second[1].text));
  // Nor on what else is compiled with it.
  CHECK((cuda::compile_to_ptx(source, general).text == first[1].text));
}

TEST_CASE("PTX: private arrays stay in registers where loops end early, after at most 16 turns") {
  msl::KernelSource source;
  source.kernel = "k";
  source.text =
      R"(#include <metal_stdlib>
  using namespace metal;
  kernel void k(device float* x [[buffer(0)]], constant uint& size [[buffer(1)]],
                uint i [[thread_position_in_grid]]) {
    const uint count = min(8u, size - i);
    float values[8];
    for (uint k = 0; k < 8; ++k) values[k] = x[i * 8 + (k < count ? k : 0)];
    for (uint k = 1; k < 8; ++k) values[k] += values[k - 1];
    for (uint k = 0; k < count; ++k) x[i * 8 + k] = values[k];
  })";
  const std::string text = cuda::compile_to_ptx(source, cuda::PtxOptions{}).text;
  CHECK(problem_of(text) == "");
  CHECK(text.find(".local") == std::string::npos);
}

TEST_CASE("PTX: wide accesses need a proof, or an author who is trusted") {
  msl::KernelSource source;
  source.kernel = "k";
  source.text =
      R"(kernel void k(device const float* x [[buffer(0)]], constant uint& row [[buffer(1)]],
      device float* y [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    float4 v = ((device const float4*)(x + i * row))[0];
    y[i] = v.x + v.y + v.z + v.w;
  })";
  auto wide = [&](cuda::PtxOptions options) {
    return cuda::compile_to_ptx(source, options).text.find(".v4.f32") != std::string::npos;
  };
  cuda::PtxOptions options;
  options.alignment = {16, 16, 16};
  CHECK_FALSE(wide(options));
  options.trusts_source_alignment = true;
  CHECK(wide(options));
  source.text.replace(source.text.find("i * row"), 7, "i * 8  ");
  CHECK(wide(options));
  options.trusts_source_alignment = false;
  CHECK(wide(options));
  options.alignment.clear();
  CHECK_FALSE(wide(options));
}
