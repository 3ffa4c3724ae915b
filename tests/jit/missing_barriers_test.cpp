// What is said of a kernel that lacks a barrier, without the validator: what is found races, and of
// kernels that are right nothing is said.
#include <doctest/doctest.h>

#include <algorithm>

#include "devices/cpu/jit/compiler/service.h"
#include "jit/features/feature.h"
#include "jit/race_pairs.h"
#include "jit/random_kernels.h"
#include "jit/widen_testing.h"
#include "support/stderr_text.h"

namespace {

using namespace holdfast;
using namespace holdfast::jit;
using namespace holdfast::jit::testing;
using holdfast::testing::StderrText;

CompiledKernel compile(const std::string& text, Size threadgroup, const std::string& name = "k") {
  msl::KernelSource source;
  source.kernel = name;
  source.entry = name;
  source.text = "#include <metal_stdlib>\nusing namespace metal;\n#line 1\n" + text;
  CompileOptions options;
  options.lowering = Lowering::reference;
  options.threadgroup = threadgroup;
  return service().compile(source, options);
}

// A body with the usual names, and what is said of it.
std::string race_in(const std::string& body, Size threadgroup = {64, 1, 1}) {
  return compile(
             "[[kernel]] void k(device float* out [[buffer(0)]], device const float* in "
             "[[buffer(1)]], device atomic_uint* counts [[buffer(2)]], device uint* plain "
             "[[buffer(3)]], constant uint& n [[buffer(4)]], threadgroup float* given "
             "[[threadgroup(0)]], uint gid [[thread_position_in_grid]], uint tid "
             "[[thread_index_in_threadgroup]], uint2 at [[thread_position_in_threadgroup]], uint "
             "group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]], "
             "uint sg [[simdgroup_index_in_threadgroup]], uint sgs "
             "[[simdgroups_per_threadgroup]], uint size [[threads_per_threadgroup]]) {{\n" +
                 body + "\n}}\n",
             threadgroup)
      .race;
}

const char* const barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);";

// `@` in a body is the barrier that matters.
std::string with(std::string body, const std::string& what) {
  for (size_t at; (at = body.find('@')) != body.npos;) body.replace(at, 1, what);
  return body;
}

}  // namespace

TEST_CASE("missing barriers: both places, and what is there") {
  CHECK(race_in("threadgroup float s[64];\ns[tid] = in[gid];\nout[gid] =\n  s[63 - tid];") ==
        "threads read \"s\" at line 5:3 which others write at line 3:8, with no "
        "threadgroup_barrier between them: results may differ from run to run");
  CHECK(race_in("given[tid] = in[gid];\nout[gid] = given[tid ^ 40];").find("\"given\"") !=
        std::string::npos);
}

TEST_CASE("missing barriers: what people forget") {
  // Each with a barrier (nothing is said) and without.
  const std::pair<const char*, const char*> bodies[] = {
      {"one thread's value for all",
       "threadgroup float m; if (tid == 0) m = in[gid]; @ out[gid] = m;"},
      {"sums of simdgroups",
       "threadgroup float p[32]; float v = simd_sum(in[gid]); if (lane == 0) p[sg] = v; @\n"
       "if (sg == 0) { v = simd_sum(lane < sgs ? p[lane] : 0); if (lane == 0) out[group] = v; }"},
      {"an array that is used again",
       "threadgroup float p[32]; float v = simd_max(in[gid]); if (lane == 0) p[sg] = v;\n"
       "threadgroup_barrier(mem_flags::mem_threadgroup); v = p[0] + p[1]; @\n"
       "float e = simd_sum(in[gid] - v); if (lane == 0) p[sg] = e;\n"
       "threadgroup_barrier(mem_flags::mem_threadgroup); out[gid] = p[0] + p[1];"},
      {"a tree whose size the group tells",
       "threadgroup float s[256]; s[tid] = in[gid];\n"
       "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
       "for (uint k = size / 2; k > 0; k /= 2) { if (tid < k) s[tid] += s[tid + k]; @ }\n"
       "if (tid == 0) out[group] = s[0];"},
      {"tiles that are loaded before the last one is used up",
       "threadgroup float s[256]; float v = 0;\n"
       "for (uint k = 0; k < n; k += size) { s[tid] = in[k + tid];\n"
       "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
       "for (uint j = 0; j < size; ++j) v += s[j]; @ }\nout[gid] = v;"},
      {"tiles that are used before they are there",
       "threadgroup float s[256]; float v = 0;\n"
       "for (uint k = 0; k < n; k += size) { s[tid] = in[k + tid]; @\n"
       "for (uint j = 0; j < size; ++j) v += s[j];\n"
       "threadgroup_barrier(mem_flags::mem_threadgroup); }\nout[gid] = v;"},
      {"a loop fills what a loop reads",
       "threadgroup float s[512]; for (uint i = tid; i < n; i += size) s[i] = in[i]; @\n"
       "float v = 0; for (uint i = 0; i < n; ++i) v += s[i]; out[gid] = v;"},
      {"counts that are cleared",
       "threadgroup atomic_uint h[64]; atomic_store_explicit(&h[tid & 63], 0u, "
       "memory_order_relaxed); ((threadgroup uint*)h)[tid & 63] = 0; @\n"
       "atomic_fetch_add_explicit(&h[(tid + 32) & 63], 1u, memory_order_relaxed);"},
      {"some write, the others read",
       "threadgroup float s[32]; if (tid < 32) { s[tid] = in[gid]; @ } else { @ out[gid] = "
       "s[tid & 31]; }"},
  };
  for (auto [name, body] : bodies) {
    CAPTURE(std::string(name));
    for (uint32_t threads : {128u, 256u}) {
      CAPTURE(threads);
      // A barrier in each branch is not one: the validator says so, this does not ask.
      CHECK(race_in(with(body, barrier), {threads, 1, 1}) == "");
      const std::string said = race_in(with(body, ""), {threads, 1, 1});
      CHECK_MESSAGE(!said.empty(), body);
      // A simdgroup's barrier is not enough.
      CHECK(race_in(with(body, "simdgroup_barrier(mem_flags::mem_threadgroup);"),
                    {threads, 1, 1}) != "");
    }
    // Threads that go in step.
    CHECK(race_in(with(body, ""), {32, 1, 1}) == "");
    CHECK(race_in(with(body, ""), {8, 4, 1}) == "");
  }
}

TEST_CASE("missing barriers: what is right without one") {
  for (const char* body : {
           // A simdgroup's own row, a thread's own element.
           "threadgroup float s[256]; s[tid] = in[gid]; out[gid] = s[tid] + s[tid ^ 5];",
           "threadgroup float s[8][32]; s[sg][lane] = in[gid]; out[gid] = s[sg][31 - lane];",
           "given[tid] = in[gid]; for (uint k = 0; k < n; ++k) given[tid] += k; out[gid] = "
           "given[tid];",
           // One thread, one simdgroup.
           "threadgroup float s[64]; if (tid == 0) { for (uint k = 0; k < 64; ++k) s[k] = in[k]; "
           "float v = 0; for (uint k = 0; k < 64; ++k) v += s[63 - k]; out[0] = v; }",
           "threadgroup float s[64]; if (sg == 1) { s[lane] = in[gid]; out[gid] = s[31 - lane]; }",
           // Values that nobody can compute here.
           "threadgroup float s[64]; s[plain[gid] & 63] = in[gid]; out[gid] = s[plain[gid ^ 1] & "
           "63];",
           // The same value from all.
           "threadgroup uint f; f = 7; if (tid == 9) f = 7; out[gid] = 1;",
           // Ways that exclude each other.
           "threadgroup float s[64]; if (n > 3) s[tid] = in[gid]; else out[gid] = s[63 - tid];",
           "threadgroup float s[64]; if (n > 3) { s[tid] = in[gid]; "
           "threadgroup_barrier(mem_flags::mem_threadgroup); } out[gid] = n > 3 ? s[63 - tid] : 0;",
           // Two halves in turn.
           "threadgroup float s[2][64]; float v = 0; for (uint k = 0; k < n; ++k) { s[k & 1][tid] "
           "= in[k]; threadgroup_barrier(mem_flags::mem_threadgroup); v += s[k & 1][63 - tid]; } "
           "out[gid] = v;",
           // Only atomic operations.
           "threadgroup atomic_uint c; if (tid == 0) atomic_store_explicit(&c, 0u, "
           "memory_order_relaxed); atomic_fetch_add_explicit(&c, 1u, memory_order_relaxed);",
           // Only as many as a simdgroup have work.
           "threadgroup float s[64]; if (tid < 32) s[tid] = in[gid]; if (tid < 32) out[gid] = "
           "s[31 - tid];",
           "threadgroup float s[64]; if (tid >= 32) return; s[tid] = in[gid]; out[gid] = "
           "s[31 - tid];",
       }) {
    CAPTURE(std::string(body));
    CHECK(race_in(body) == "");
  }
  // The same text is right or wrong by the threadgroup's shape: four rows are one simdgroup, or
  // each is.
  const char* tile =
      "threadgroup float s[32][32]; s[at.y][at.x] = in[gid]; out[gid] = s[at.y ^ 1][at.x];";
  CHECK(race_in(tile, {8, 32, 1}) == "");
  CHECK(race_in(tile, {32, 8, 1}) != "");
}

TEST_CASE("missing barriers: the calibrated suite") {
  int found = 0;
  for (const RacePair& pair : race_pairs()) {
    INFO(std::string(pair.group), ": ", std::string(pair.name));
    CHECK_MESSAGE(race_in(race_free(pair)) == "", race_free(pair));
    found += !race_in(racy(pair)).empty();
  }
  // A cheap look; the validator finds them all.
  CHECK(found >= 35);
}

TEST_CASE("missing barriers: random kernels have theirs") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const RandomKernel kernel = random_kernel(seed);
    CHECK(compile(kernel.source, kernel.threadgroup, "random_kernel").race == "");
  }
}

TEST_CASE("missing barriers: said once, where threads of several simdgroups run") {
  Ref<CpuPipeline> pipeline =
      CpuPipeline::load("mine", compile("kernel void k(device float* y [[buffer(0)]], uint i "
                                        "[[thread_position_in_threadgroup]]) {\n"
                                        "threadgroup float s[64];\ns[i] = i;\ny[i] = s[63 - i]; }",
                                        {}));
  std::vector<float> y(64);
  auto said_for = [&](uint32_t threads) {
    StderrText said;
    void* buffers[] = {y.data()};
    DispatchArguments arguments;
    arguments.buffers = buffers;
    arguments.grid[0] = arguments.threadgroup[0] = threads;
    check_dispatch(*pipeline, arguments);
    return said.take();
  };
  CHECK(said_for(32) == "");
  CHECK(said_for(64) ==
        "holdfast: [mine] threads read \"s\" at line 4:8 which others write at line 3:6, with no "
        "threadgroup_barrier between them: results may differ from run to run (run with "
        "HOLDFAST_VALIDATE=1)\n");
  CHECK(said_for(64) == "");
}
