// Guarded kernels: what lies outside of their arguments reads as 0 and is not written, whatever way
// the kernel goes there.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "devices/cpu/jit/fault_guard.h"
#include "jit/widen_testing.h"
#include "support/stderr_text.h"

namespace {

using namespace holdfast;
using namespace holdfast::jit;
using namespace holdfast::jit::testing;
using holdfast::testing::StderrText;

// Room around what a kernel is told of. Without guards accesses land there.
constexpr size_t around = 64 * 1024;

struct Outcome {
  std::vector<std::vector<char>> memory;  // with the room around
  std::string error, said;
};

Outcome run_with_room(const CpuPipeline& pipeline, const std::vector<Buffer>& buffers, char room,
                      const Dispatch& dispatch, const std::vector<uint32_t>& threadgroup_bytes,
                      bool told) {
  Outcome outcome;
  std::vector<void*> pointers;
  for (const Buffer& buffer : buffers) {
    std::vector<char>& memory = outcome.memory.emplace_back(buffer.bytes.size() + 2 * around, room);
    std::copy(buffer.bytes.begin(), buffer.bytes.end(), memory.begin() + around);
    pointers.push_back(memory.data() + around);
  }
  StderrText said;
  try {
    run(pipeline, pointers, dispatch.grid, dispatch.threadgroup, threadgroup_bytes,
        told ? ranges_of(buffers) : std::vector<ArgumentRange>{});
  } catch (const std::runtime_error& error) {
    outcome.error = error.what();
  }
  outcome.said = said.take();
  return outcome;
}

std::string inside_of(const std::vector<char>& memory) {
  return {memory.begin() + around, memory.end() - around};
}

bool has_room_left(const std::vector<char>& memory, char room) {
  auto is_room = [&](char c) { return c == room; };
  return std::all_of(memory.begin(), memory.begin() + around, is_room) &&
         std::all_of(memory.end() - around, memory.end(), is_room);
}

struct Expected {
  std::string writes = {}, reads = {};  // parts of what is said of each; empty: nothing
  // A kernel that does the same and stays inside. Empty: the kernel itself. Where zeros are around
  // the buffers and nothing that was written there is read, it computes without guards what it has
  // to compute with them.
  std::string right = {};
};

void check_guarded(const std::string& text, const std::vector<Buffer>& buffers,
                   const Dispatch& dispatch, const Expected& expected,
                   const std::vector<uint32_t>& threadgroup_bytes = {}) {
  CAPTURE(text);
  for (InstructionSet set : instruction_sets()) {
    CAPTURE(static_cast<int>(set));
    const std::string& right = expected.right.empty() ? text : expected.right;
    Ref<CpuPipeline> plain = CpuPipeline::load("k", compile_msl(right, Lowering::reference, set));
    const Outcome free = run_with_room(*plain, buffers, 0, dispatch, threadgroup_bytes, false);
    for (Lowering lowering : {Lowering::widened, Lowering::reference}) {
      CAPTURE(lowering == Lowering::widened);
      Ref<CpuPipeline> guarded = CpuPipeline::load("k", compile_msl(text, lowering, set, true));
      for (int time = 0; time < 2; ++time) {
        const char room = 0x5a;
        const Outcome got =
            run_with_room(*guarded, buffers, room, dispatch, threadgroup_bytes, true);
        for (size_t i = 0; i < buffers.size(); ++i) {
          CAPTURE(i);
          CHECK(has_room_left(got.memory[i], room));
          CHECK(inside_of(got.memory[i]) == inside_of(free.memory[i]));
        }
        CHECK(got.error.empty() == expected.writes.empty());
        if (!expected.writes.empty())
          CHECK_MESSAGE(got.error.find(expected.writes) != std::string::npos, got.error);
        // Reads are said once for a pipeline, and not beside a write.
        const bool says = time == 0 && !expected.reads.empty();
        CHECK_MESSAGE(got.said.empty() == !says, got.said);
        if (says) CHECK_MESSAGE(got.said.find(expected.reads) != std::string::npos, got.said);
      }
    }
  }
}

// The numbers below `count`, each once.
std::vector<uint32_t> shuffled(uint32_t count) {
  std::vector<uint32_t> numbers(count);
  for (uint32_t i = 0; i < count; ++i) numbers[i] = i * 77 % count;
  return numbers;
}

const Dispatch rows = {{100, 1, 1}, {64, 1, 1}};  // the second group is not full

// A kernel that copies x to y, 100 threads: `read` of x's place, `write` of y's.
std::string copy(const std::string& type, const std::string& read, const std::string& write) {
  return "kernel void k(device const " + type + "* x [[buffer(0)]], device " + type +
         "* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {\n  " + type + " v = x[" + read +
         "];\n  y[" + write + "] = v;\n}";
}

}  // namespace

TEST_CASE("guards: elements beside a buffer, of every size") {
  for (const auto& [type, bytes] : {std::pair<const char*, size_t>{"char", 1},
                                    {"bool", 1},
                                    {"half", 2},
                                    {"bfloat", 2},
                                    {"float", 4},
                                    {"uint2", 8},
                                    {"long", 8},
                                    {"float4", 16},
                                    {"half3", 8}}) {
    CAPTURE(type);
    const Buffer x = {std::vector<char>(100 * bytes, 1)}, y = Buffer::zeros(100 * bytes);
    const std::string name = type;
    check_guarded(copy(name, "i", "i"), {x, y}, rows, {});
    check_guarded(copy(name, "i + 3", "i"), {x, y}, rows, {"", "reads outside of \"x\" at line "});
    check_guarded(copy(name, "i", "int(i) - 3"), {x, y}, rows,
                  {"writes outside of \"y\" at line ", ""});
    check_guarded(copy(name, "i * 3", "(i * 7) % 128"), {x, y}, rows,
                  {"writes outside of \"y\" at line ", ""});
  }
}

TEST_CASE("guards: the message tells the line, the byte and the size") {
  check_guarded(copy("float", "i", "i + 1"), {Buffer::floats(100, 1), Buffer::zeros(400)}, rows,
                {"[k] the kernel writes outside of \"y\" at line 5:12: byte 400 of 400", ""});
  check_guarded(copy("float", "int(i) - 1", "i"), {Buffer::floats(100, 1), Buffer::zeros(400)},
                rows, {"", "[k] the kernel reads outside of \"x\" at line 4:13: byte -4 of 400"});
}

TEST_CASE("guards: places that differ from lane to lane, and one place for all") {
  const std::vector<Buffer> buffers = {Buffer::integers(100, 3, 160), Buffer::zeros(400)};
  check_guarded(copy("uint", "x[i]", "i"), buffers, rows, {"", "reads outside of \"x\""});
  // Each lane to a place of its own, some of them outside.
  check_guarded(copy("uint", "i", "x[i]"), {Buffer::of(shuffled(150)), Buffer::zeros(400)}, rows,
                {"writes outside of \"y\"", ""});
  // Lanes that are off look like accesses outside, and are none.
  const std::string some = R"(
kernel void k(device const uint* x [[buffer(0)]], device uint* y [[buffer(1)]],
              uint i [[thread_position_in_grid]]) {
  if (x[i] & 1) { if (i < 40) y[i * 2] = x[i + 60]; } else y[99 - i] += 3;
})";
  check_guarded(some, buffers, rows, {});
}

TEST_CASE("guards: far away") {
  for (const auto& [read, write, text] :
       {std::array<const char*, 3>{"1u << 30", "i",
                                   "reads outside of \"x\" at line 4:12: byte 4294967296 of 400"},
        {"i", "(long(1) << 40) + i", "writes outside of \"y\" at line 5:"},
        {"i", "-(long(1) << 61) + i", "writes outside of \"y\" at line 5:"},
        {"(ulong(i) << 40) - 1", "i", "reads outside of \"x\" at line 4:"}}) {
    for (InstructionSet set : instruction_sets()) {
      for (Lowering lowering : {Lowering::widened, Lowering::reference}) {
        Ref<CpuPipeline> guarded =
            CpuPipeline::load("k", compile_msl(copy("uint", read, write), lowering, set, true));
        const Outcome got = run_with_room(*guarded, {Buffer::integers(100, 3), Buffer::zeros(400)},
                                          0x5a, rows, {}, true);
        CHECK_MESSAGE((got.error + got.said).find(text) != std::string::npos, text, " in ",
                      got.error, got.said);
        CHECK(got.error.empty() == (text[0] == 'r'));
        CHECK(has_room_left(got.memory[1], 0x5a));
      }
    }
  }
}

TEST_CASE("guards: a pointer to nothing") {
  for (InstructionSet set : instruction_sets()) {
    for (Lowering lowering : {Lowering::widened, Lowering::reference}) {
      // What C++ says nothing about may be a trap.
      const std::string text = R"(
kernel void k(device uint* y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  threadgroup uint* p = (threadgroup uint*)(ulong(y[i]) << 32);
  if (y[i] > 5) p[i] = 1;
})";
      Ref<CpuPipeline> guarded = CpuPipeline::load("k", compile_msl(text, lowering, set, true));
      const Outcome got =
          run_with_room(*guarded, {Buffer::integers(100, 3, 100)}, 0, rows, {}, true);
      CHECK_MESSAGE(got.error.find("writes outside of \"its arguments\"") != std::string::npos,
                    got.error);
    }
  }
}

TEST_CASE("guards: atomics") {
  const std::vector<Buffer> buffers = {Buffer::integers(100, 3, 90), Buffer::zeros(40)};
  for (const char* access : {"atomic_fetch_add_explicit(&y[x[i]], 1u, memory_order_relaxed)",
                             "atomic_fetch_max_explicit(&y[x[i]], i, memory_order_relaxed)"}) {
    check_guarded(std::string(R"(
kernel void k(device const uint* x [[buffer(0)]], device atomic_uint* y [[buffer(1)]],
              uint i [[thread_position_in_grid]]) { )") +
                      access + "; }",
                  buffers, rows, {"writes outside of \"y\"", ""});
  }
  check_guarded(R"(
kernel void k(device const uint* x [[buffer(0)]], device atomic_uint* y [[buffer(1)]],
              device uint* z [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  z[i] = atomic_load_explicit(&y[x[i]], memory_order_relaxed);
})",
                {Buffer::integers(100, 3, 90), Buffer::integers(10, 4), Buffer::zeros(400)}, rows,
                {"", "reads outside of \"y\""});
  check_guarded(R"(
kernel void k(device const uint* x [[buffer(0)]], device atomic_uint* y [[buffer(1)]],
              uint i [[thread_position_in_grid]]) {
  atomic_store_explicit(&y[x[i]], 7u, memory_order_relaxed);
  uint expected = 7;
  atomic_compare_exchange_weak_explicit(&y[x[i]], &expected, 9u, memory_order_relaxed,
                                        memory_order_relaxed);
})",
                buffers, rows, {"writes outside of \"y\"", ""});
}

TEST_CASE("guards: private and threadgroup arrays") {
  auto own = [](const std::string& condition) {
    return R"(
kernel void k(device const uint* x [[buffer(0)]], device uint* y [[buffer(1)]],
              uint i [[thread_position_in_grid]]) {
  uint own[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  )" + condition +
           R"(own[x[i]] = 9;
  y[i] = own[i % 8] + own[1];
})";
  };
  const std::vector<Buffer> buffers = {Buffer::integers(100, 3, 12), Buffer::zeros(400)};
  check_guarded(own(""), buffers, rows,
                {"writes outside of \"own\" at line 7:13", "", own("if (x[i] < 8) ")});
  auto table = [](const std::string& condition) {
    return R"(
constant uint table[4] = {4, 3, 2, 1};
kernel void k(device const uint* x [[buffer(0)]], device uint* y [[buffer(1)]],
              uint i [[thread_position_in_grid]]) {
  y[i] = )" +
           condition + "table[x[i]] + 1;\n}";
  };
  check_guarded(table(""), buffers, rows,
                {"", "reads outside of \"table\"", table("x[i] >= 4 ? 1 : ")});
  auto shared = [](const std::string& condition) {
    return R"(
kernel void k(device const uint* x [[buffer(0)]], device uint* y [[buffer(1)]],
              uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]) {
  threadgroup uint shared[64];
  shared[l] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = )" +
           condition + "shared[l < 3 ? l + 1000 : l];\n}";
  };
  check_guarded(shared(""), buffers, rows,
                {"", "reads outside of \"shared\"", shared("l < 3 ? 0 : ")});
}

TEST_CASE("guards: memory that the dispatch gives to a threadgroup argument") {
  auto text = [](const std::string& condition) {
    return R"(
kernel void k(device const uint* x [[buffer(0)]], device uint* y [[buffer(1)]],
              threadgroup uint* shared [[threadgroup(0)]], uint i [[thread_position_in_grid]],
              uint l [[thread_index_in_threadgroup]]) {
  )" + condition +
           R"(shared[l] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = shared[0];
})";
  };
  // Arguments by their place in the list: x, y, shared.
  const std::vector<Buffer> buffers = {Buffer::integers(100, 3, 12), Buffer::zeros(400),
                                       Buffer::zeros(0)};
  check_guarded(text(""), buffers, rows, {}, {0, 0, 256});
  check_guarded(text(""), buffers, rows, {"writes outside of \"shared\"", "", text("if (l < 32) ")},
                {0, 0, 128});
}

TEST_CASE("guards: structs, and pointers to one of two arguments") {
  check_guarded(R"(
struct Item { float4 a; int b; };
kernel void k(device const Item* x [[buffer(0)]], device Item* y [[buffer(1)]],
              uint i [[thread_position_in_grid]]) {
  Item item = x[i];
  item.b += 1;
  y[i + 90] = item;
})",
                {Buffer::integers(800, 3), Buffer::zeros(3200)}, rows,
                {"writes outside of \"y\"", ""});
  const std::string two = R"(
kernel void k(device const float* x [[buffer(0)]], device const float* z [[buffer(1)]],
              device float* y [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  device const float* from = i % 3 ? x : z;
  float sum = 0;
  for (uint n = 0; n < 4; ++n) sum += from[n * 40];
  y[i] = sum;
})";
  check_guarded(two, {Buffer::floats(121, 1), Buffer::floats(121, 2), Buffer::zeros(400)}, rows,
                {});
  check_guarded(two, {Buffer::floats(121, 1), Buffer::floats(60, 2), Buffer::zeros(400)}, rows,
                {"", "reads outside of"});
}

TEST_CASE("guards: loops that go too far") {
  check_guarded(R"(
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
              constant int& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  float sum = 0;
  for (int j = -2; j < n; ++j) sum += x[j * 100 + int(i)];
  y[i] = sum;
})",
                {Buffer::floats(400, 1), Buffer::zeros(400), Buffer::of<int>({6})}, rows,
                {"", "reads outside of \"x\""});
}

TEST_CASE("guards: an instruction that the processor refuses is an exception") {
  install_fault_handlers();  // doctest puts its own in front for each test case
  for (Lowering lowering : {Lowering::widened, Lowering::reference}) {
    Ref<CpuPipeline> pipeline = CpuPipeline::load(
        "k", compile_msl("kernel void k(device float* y [[buffer(0)]], uint i "
                         "[[thread_position_in_grid]]) { if (y[i] == 0) __builtin_trap(); }",
                         lowering, host_instruction_set()));
    Buffer y = Buffer::zeros(4 * 32);
    CHECK_THROWS_WITH_AS(run(*pipeline, {y.bytes.data()}, {32, 1, 1}, {32, 1, 1}),
                         doctest::Contains("the kernel did what the processor refuses"),
                         std::runtime_error);
  }
}
