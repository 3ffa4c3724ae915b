// Checked kernels: for each kind of finding, kernels that must be reported, by name and line, and
// twins of them that must not.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "devices/cpu/jit/compiler/service.h"
#include "jit/checking.h"
#include "jit/random_kernels.h"
#include "msl/kernel_source.h"

using namespace holdfast;
using namespace holdfast::jit;
using namespace holdfast::jit::testing;
using exec::KernelFinding;

namespace {

// Line 1 is the line of the signature: the body begins on line 2.
std::string kernel(const std::string& body) {
  return "[[kernel]] void k(device float* out [[buffer(0)]], device const float* in [[buffer(1)]], "
         "device atomic_uint* counts [[buffer(2)]], uint gid [[thread_position_in_grid]], "
         "uint tid [[thread_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) "
         "{\n" +
         body + "\n}\n";
}

const Dispatch two_groups{{128, 1, 1}, {64, 1, 1}};
const Dispatch one_group{{64, 1, 1}, {64, 1, 1}};
const Dispatch one_simdgroup{{32, 1, 1}, {32, 1, 1}};

std::vector<KernelFinding> check(const std::string& body, const Dispatch& dispatch = two_groups,
                                 bool has_contents = true) {
  Ref<CpuPipeline> pipeline =
      CpuPipeline::load("k", compile_msl(kernel(body), Lowering::checked, host_instruction_set()));
  std::vector<Memory> memory(3);
  memory[0] = {std::vector<uint32_t>(128), has_contents};
  memory[1] = {std::vector<uint32_t>(128), true};
  memory[2] = {std::vector<uint32_t>(16), true};
  return run_checked(*pipeline, memory, dispatch);
}

// "race out 4:3" for each: what was found, where. Lines count from the body.
std::string found(const std::vector<KernelFinding>& findings) {
  std::string text;
  for (const KernelFinding& one : findings) {
    if (!text.empty()) text += "; ";
    text += one.kind + std::string(" ") + one.object + " " + std::to_string(one.line - 3);
    if (one.has_other_thread) text += "/" + std::to_string(one.other_line - 3);
  }
  return text;
}

}  // namespace

TEST_CASE("checker: out of bounds of a buffer") {
  CHECK(found(check("out[gid] = in[gid];")) == "");
  CHECK(found(check("float x = in[gid];\nout[gid + 1] = x;")) == "out-of-bounds out 2");
  std::vector<KernelFinding> before = check("out[gid] = in[int(gid) - 1];");
  REQUIRE(found(before) == "out-of-bounds in 1");
  CHECK(before[0].buffer == 1);
  CHECK(before[0].byte == -4);
  CHECK(before[0].bytes == 4);
  CHECK(!before[0].writes);
  CHECK(before[0].thread[0] == 0);
  CHECK(before[0].count == 1);
  // What is allowed depends on which of two pointers it is.
  CHECK(found(check("device float* p = gid < 64 ? out : out + 1;\np[gid] = 1;")) ==
        "out-of-bounds out 2");
  CHECK(found(check("const device float* p = gid & 1 ? in : out;\nfloat x = p[gid + 2];\n"
                    "if (gid > 200) out[gid] = x;")) == "out-of-bounds out 2; out-of-bounds in 2");
  CHECK(found(check("device float* p = out;\nfor (uint i = 0; i <= 128; ++i, ++p)\n"
                    "  if (gid == 0) *p = 1;")) == "out-of-bounds out 3");
  CHECK(found(check("atomic_fetch_add_explicit(counts + 16, 1u, memory_order_relaxed);")) ==
        "out-of-bounds counts 1");
  CHECK(found(check("out[gid] = ((const device float4*)in)[gid / 4].x;")) == "");
  CHECK(found(check("out[gid] = ((const device float4*)in)[gid / 3].w;")) == "out-of-bounds in 1");
}

TEST_CASE("checker: an access out of bounds is not made") {
  Ref<CpuPipeline> pipeline = CpuPipeline::load(
      "k", compile_msl("kernel void k(device float* out [[buffer(0)]], "
                       "uint gid [[thread_position_in_grid]]) { out[gid] = out[gid + 8] + 2; }",
                       Lowering::checked, host_instruction_set()));
  std::vector<float> memory(16, 5.0f);
  void* pointer = memory.data();
  KernelChecker checker(*pipeline, {{8 * sizeof(float), 0, true}}, &pointer);
  DispatchArguments arguments;
  arguments.buffers = &pointer;
  arguments.checker = &checker;
  arguments.grid[0] = 16;
  arguments.threadgroup[0] = 16;
  begin_dispatch(arguments);
  run_groups(*pipeline, arguments, 0, 1);
  for (size_t i = 0; i < 16; ++i) CHECK(memory[i] == (i < 8 ? 2.0f : 5.0f));
  CHECK(checker.findings().size() == 2);
  CHECK(checker.findings()[0].count == 16);
}

TEST_CASE("checker: out of bounds of arrays") {
  CHECK(found(check("threadgroup float s[64];\ns[tid] = 1;\nout[gid] = s[tid];")) == "");
  CHECK(found(check("threadgroup float s[64], t[64];\nt[tid] = 2;\ns[tid + 1] = 1;\n"
                    "out[gid] = t[tid];")) == "out-of-bounds s 3");
  CHECK(found(check("float p[4] = {1, 2, 3, 4};\np[gid & 3] = 5;\nout[gid] = p[tid & 3];")) == "");
  CHECK(found(check("float p[4] = {1, 2, 3, 4};\np[gid & 3] = 5;\nout[gid] = p[tid & 7];")) ==
        "out-of-bounds p 3");
}

// Each group has other addresses than a constant could have.
TEST_CASE("checker: arrays of pointers to threadgroup memory") {
  const std::string barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);\n";
  const std::string start =
      "threadgroup float a[64], b[64];\nthreadgroup float* s[2] = {a, b};\n"
      "for (uint k = 0; k < 4; ++k) {\ns[k & 1][tid] = in[gid] + k;\n";
  const std::string end = "out[gid] = s[k & 1][63 - tid];\n}";
  CHECK(found(check(start + barrier + end)) == "");
  CHECK(found(check(start + end)).starts_with("race  "));
  CHECK(found(check("struct Two { uint n; threadgroup float* p; };\nthreadgroup float a[64];\n"
                    "Two s[2] = {{1, a}, {2, a + 1}};\nif (tid < 32) s[1].p[tid] = 1;\n" +
                    barrier + "out[gid] = s[gid & 1].p[1 + (tid & 15)] + s[gid & 1].n;")) == "");
}

TEST_CASE("checker: races in threadgroup memory") {
  const std::string start = "threadgroup float s[64];\ns[tid] = in[gid];\n";
  const std::string barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);\n";
  CHECK(found(check(start + barrier + "out[gid] = s[63 - tid];")) == "");
  std::vector<KernelFinding> race = check(start + "out[gid] = s[63 - tid];");
  // A thread that comes later has not written yet when the first ones read, or has read already.
  REQUIRE(!race.empty());
  for (const KernelFinding& one : race)
    CHECK((one.kind == std::string("race") || one.kind == std::string("uninitialised-read")));
  CHECK(std::any_of(race.begin(), race.end(), [](const KernelFinding& one) {
    return one.kind == std::string("race") && one.object == "s" && one.has_other_thread &&
           std::min(one.line, one.other_line) == 5 && std::max(one.line, one.other_line) == 6;
  }));
  // Reading, then writing again.
  const std::string read = "float x = s[63 - tid];\n", write = "s[tid] = x;\n";
  CHECK(found(check(start + barrier + read + barrier + write + barrier + "out[gid] = s[tid];")) ==
        "");
  CHECK(found(check(start + barrier + read + write + barrier + "out[gid] = s[tid];"))
            .starts_with("race s "));
  // Barriers of a simdgroup order its own threads only.
  const std::string within = "simdgroup_barrier(mem_flags::mem_threadgroup);\n";
  CHECK(found(check(start + within + "out[gid] = s[tid ^ 1];")) == "");
  CHECK(found(check(start + "out[gid] = s[tid ^ 1];")) != "");
  CHECK(found(check(start + within + "out[gid] = s[tid ^ 32];")) != "");
  // In a loop: the next turn's write and this turn's read.
  const std::string loop =
      "for (uint i = 0; i < 3; ++i) {\ns[tid] = i;\n" + barrier + "out[gid] = s[63 - tid];\n";
  const std::string shared = "threadgroup float s[64];\n";
  CHECK(found(check(shared + loop + barrier + "}")) == "");
  CHECK(found(check(shared + loop + "}")) == "race s 5/3");
  // Not only the thread that writes has read before; shuffles order nothing.
  const std::string sum = "float x = simd_sum(s[0]);\n", put = "if (tid == 0) s[0] = x;";
  CHECK(found(check(start + barrier + sum + barrier + put, one_simdgroup)) == "");
  CHECK(found(check(start + barrier + sum + put, one_simdgroup)) == "race s 5/4");
}

TEST_CASE("checker: races in device memory") {
  CHECK(found(check("out[gid & 63] = 1;")) == "race out 1/1");
  CHECK(check("out[gid & 63] = 1;")[0].writes_same_value);
  CHECK(!check("out[gid & 63] = gid + 1;")[0].writes_same_value);
  CHECK(found(check("out[gid ^ 64] = out[gid];")) == "race out 1/1");
  CHECK(found(check("if (tid == 0) out[group] = 1;")) == "");
  // A barrier orders the threads of one group, not groups.
  const std::string barrier = "threadgroup_barrier(mem_flags::mem_device);\n";
  CHECK(found(check("out[gid] = 1;\n" + barrier + "out[gid ^ 1] += 1;")) == "");
  CHECK(found(check("out[gid] = 1;\n" + barrier + "out[gid ^ 64] += 1;")) != "");
  CHECK(found(check("atomic_fetch_add_explicit(counts + (gid & 3), 1u, memory_order_relaxed);")) ==
        "");
  CHECK(found(check("atomic_fetch_add_explicit(counts, 1u, memory_order_relaxed);\n"
                    "if (gid == 100) ((device uint*)counts)[0] = 2;")) == "race counts 2/1");
  // Neighbours in one word.
  CHECK(found(check("((device uchar*)out)[gid] = 1;")) == "");
  CHECK(found(check("((device uchar*)out)[gid / 2 * 2] = 1;")) == "race out 1/1");
  const std::string byte =
                        "device uchar* bytes = (device uchar*)out;\nif (gid == 0) bytes[32] = 1;\n",
                    word = "if (gid == 1) out[10] = 1;\n";
  CHECK(found(check(byte + word + "if (gid == 2) bytes[44] = 1;", one_group)) == "");
  CHECK(found(check(byte + word + "if (gid == 2) bytes[41] = 1;", one_group)) == "race out 4/3");
}

TEST_CASE("checker: reads of what nobody wrote") {
  for (const Dispatch& dispatch : {one_group, two_groups}) {
    CHECK(found(check("threadgroup float s[64];\nif (tid != 5) s[tid] = 1;\n"
                      "threadgroup_barrier(mem_flags::mem_threadgroup);\nout[gid] = s[tid];",
                      dispatch)) == "uninitialised-read s 4");
  }
  // Each group has memory of its own.
  CHECK(found(check("threadgroup float s[64];\nif (group == 0) s[tid] = 1;\n"
                    "threadgroup_barrier(mem_flags::mem_threadgroup);\nout[gid] = s[tid];")) ==
        "uninitialised-read s 4");
  CHECK(found(check("out[gid] += 1;", two_groups, false)) == "uninitialised-read out 1");
  CHECK(found(check("out[gid] = 2;\nout[gid] += 1;", two_groups, false)) == "");
  // By an atomic operation.
  const std::string counter =
      "threadgroup atomic_uint n;\nif (@) atomic_store_explicit(&n, 0u, "
      "memory_order_relaxed);\n"
      "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
      "out[gid] = atomic_load_explicit(&n, memory_order_relaxed);";
  auto with = [&](const char* condition) {
    return std::string(counter).replace(counter.find('@'), 1, condition);
  };
  CHECK(found(check(with("tid == 3"))) == "");
  CHECK(found(check(with("tid == 300"))) == "uninitialised-read n 4");
  // Nothing is read on a path that is not taken.
  CHECK(found(check("threadgroup float s[64];\nif (in[gid] > 2) s[3] = 1;\nfloat x = 1;\n"
                    "if (in[gid] > 1) x = s[3];\nout[gid] = x;")) == "");
}

// Copies of a struct read the gaps between its members, which nobody writes.
TEST_CASE("checker: gaps of structs") {
  const std::string barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);\n";
  const std::string gap_at_end =
      "struct S { float a; char b; };\nthreadgroup S s[64], q[64];\ns[tid].a = 1;\n";
  const std::string gaps =
      "struct S { char a; float4 b; short c; };\nthreadgroup S s[64], q[64];\ns[tid].a = 1;\n"
      "s[tid].b = 2;\n";
  const std::string copy = barrier + "S v = s[63 - tid];\n";
  const std::string through_memory = barrier + "q[tid] = s[63 - tid];\n" + barrier;
  CHECK(found(check(gap_at_end + "s[tid].b = 2;\n" + copy + "out[gid] = v.a + v.b;")) == "");
  CHECK(found(check(gap_at_end + copy + "out[gid] = v.a + v.b;")) == "uninitialised-read s 5");
  CHECK(found(check(gap_at_end + "s[tid].b = 2;\n" + through_memory + "out[gid] = q[tid].b;")) ==
        "");
  CHECK(found(check(gap_at_end + "s[tid].b = 2;\n" + copy + "q[tid] = v;\n" + barrier +
                    "out[gid] = q[63 - tid].b;")) == "");
  CHECK(found(check(gaps + "s[tid].c = 3;\n" + copy + "out[gid] = v.a + v.b.x + v.c;")) == "");
  CHECK(found(check(gaps + copy + "out[gid] = v.a + v.b.x + v.c;")) == "uninitialised-read s 6");
  // Nothing of it was written.
  CHECK(found(check("struct S { float a[8]; };\nthreadgroup S s[64], q[64];\nq[tid] = s[tid];\n"
                    "out[gid] = q[tid].a[gid & 7];")) == "uninitialised-read s 3");
}

TEST_CASE("checker: barriers that not all lanes come to") {
  const std::string barrier = "simdgroup_barrier(mem_flags::mem_threadgroup);\n";
  CHECK(found(check("if (tid < 32) {\n" + barrier + "}\nout[gid] = 1;")) == "");
  CHECK(found(check("for (uint i = 0; i < tid / 32; ++i) {\n" + barrier + "}\nout[gid] = 1;")) ==
        "");
  CHECK(found(check("float x = 0;\nfor (uint i = 0; i < 3; ++i) {\n"
                    "for (uint k = 0; k < tid % 5; ++k) x += in[k];\n" +
                    barrier + "}\nout[gid] = x;")) == "");
  CHECK(found(check("if (tid % 32 < 16) {\n" + barrier + "} else {\n" + barrier + "}")) ==
        "divergent-barrier  2/4");
  CHECK(found(check("if (tid % 32 < 16) {\n" + barrier + "}\n" + barrier)) ==
        "divergent-barrier  2/4");
  CHECK(found(check("if (tid & 1) {\n" + barrier + "}\nout[gid] = simd_sum(in[gid]);"))
            .starts_with("divergent-barrier  2/"));
  CHECK(found(check("if (tid % 32 > 20) return;\n" + barrier + "out[gid] = 1;"))
            .starts_with("barrier-after-return  2/"));
  // The last simdgroup has eight lanes.
  CHECK(found(check(barrier + "out[gid] = 1;", {{40, 1, 1}, {40, 1, 1}})) == "");
}

TEST_CASE("checker: what a thread has heard is nothing to that of the next group") {
  const std::string fence = "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst);\n";
  const std::string tell = "if (gid == 0) { out[0] = 1; " + fence +
                           "atomic_store_explicit(counts, 1u, memory_order_relaxed); }\n";
  const std::string hear = "atomic_load_explicit(counts, memory_order_relaxed)";
  const Dispatch three_groups{{192, 1, 1}, {64, 1, 1}};
  CHECK(found(check(tell + "uint v = group > 0 && tid == 5 ? " + hear + " : 0;\nif (gid == 133) {" +
                        fence + "out[1] = out[0] + v; }",
                    three_groups)) == "");
  CHECK(found(check(tell + "uint v = group == 1 && tid == 5 ? " + hear +
                        " : 0;\nif (gid == 133) {" + fence + "out[1] = out[0] + v; }",
                    three_groups))
            .starts_with("race out "));
}

// What they tell each other must not be copied for each of them.
TEST_CASE("checker: a counter that thousands of threads pass with fences") {
  const std::string fence = "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst);\n";
  CHECK(
      found(check("if (gid < 64) out[gid] = 1;\n" + fence +
                      "uint n = atomic_fetch_add_explicit(counts, 1u, memory_order_relaxed);\n" +
                      fence + "if (n == 32767) for (uint i = 0; i < 64; ++i) out[64 + i] = out[i];",
                  {{32768, 1, 1}, {64, 1, 1}})) == "");
}

TEST_CASE("checker: barriers that not all threads come to") {
  const std::string barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);\n";
  CHECK(found(check("if (group == 0) {\n" + barrier + "}\nout[gid] = 1;")) == "");
  CHECK(found(check("if (tid < 32) {\n" + barrier + "} else {\n" + barrier + "}")) ==
        "divergent-barrier  2/4");
  CHECK(found(check("for (uint i = 0; i < 3; ++i) {\nif (tid == i + 7) continue;\n" + barrier +
                    "}")) != "");
  CHECK(found(check("if (tid > 40) return;\n" + barrier + "out[gid] = 1;"))
            .starts_with("barrier-after-return  2/"));
}

TEST_CASE("checker: misaligned") {
  CHECK(found(check(
            "out[gid] = *(const device float*)((const device char*)in + 2 * (gid & 2));")) == "");
  CHECK(found(check("out[gid] = *(const device float*)((const device char*)in + (gid & 2));")) ==
        "misaligned in 1");
}

TEST_CASE("checker: places are those of the user's parts") {
  msl::KernelSource source;
  source.kernel = source.entry = "k";
  const std::string head = "#include <metal_stdlib>\nusing namespace metal;\n";
  const std::string header = "\nvoid put(device float* p, uint i) {\n  p[i] = 1;\n}\n";
  const std::string signature =
      "kernel void k(device float* out [[buffer(0)]], uint gid [[thread_position_in_grid]]) {";
  const std::string body = "\n  put(out, gid);\n  out[gid + 200] = 2;\n";
  source.text = head + header + signature + body + "}\n";
  source.parts = {{"header", head.size() + 1, head.size() + header.size()},
                  {"body", source.text.find(body) + 1, source.text.find(body) + body.size()}};
  CompileOptions options;
  options.lowering = Lowering::checked;
  options.instruction_set = host_instruction_set();
  Ref<CpuPipeline> pipeline = CpuPipeline::load("k", service().compile(source, options));
  std::vector<Memory> memory = {{std::vector<uint32_t>(2), true}};
  std::vector<KernelFinding> findings = run_checked(*pipeline, memory, {{3, 1, 1}, {3, 1, 1}});
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].part == "body");
  CHECK(findings[0].line == 2);
  CHECK(findings[0].thread[0] == 0);
  CHECK(findings[1].part == "header");
  CHECK(findings[1].line == 2);
  CHECK(findings[1].thread[0] == 2);
}

// Programs whose results are compared must be defined.
TEST_CASE("checker: random kernels do nothing wrong") {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    RandomKernel kernel = random_kernel(seed);
    msl::KernelSource source;
    source.kernel = "random_kernel";
    source.text = kernel.source;
    CompileOptions options;
    options.lowering = Lowering::checked;
    options.instruction_set = host_instruction_set();
    Ref<CpuPipeline> pipeline = CpuPipeline::load("k", service().compile(source, options));
    size_t threads = size_t{kernel.grid[0]} * kernel.grid[1] * kernel.grid[2];
    std::vector<Memory> memory = {{std::vector<uint32_t>(random_kernel_inputs)},
                                  {std::vector<uint32_t>(threads * random_kernel_results)},
                                  {std::vector<uint32_t>(threads * random_kernel_floats)},
                                  {std::vector<uint32_t>(random_kernel_counters)},
                                  {std::vector<uint32_t>(random_kernel_parameters)},
                                  {std::vector<uint32_t>(random_kernel_table)},
                                  {std::vector<uint32_t>(threads * random_kernel_placed)},
                                  {{kernel.sizes.begin(), kernel.sizes.end()}}};
    for (const KernelFinding& one :
         run_checked(*pipeline, memory, {kernel.grid, kernel.threadgroup})) {
      // Ours are defined: those that are left go on. Barriers of simdgroups stand in branches, too.
      const std::string kind = one.kind;
      CHECK_MESSAGE((kind == "barrier-after-return" || kind == "divergent-barrier"), kind, " ",
                    one.object);
    }
  }
}
