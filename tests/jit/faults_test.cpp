// What a kernel may do wrong: run for ever, touch what is not its own. The process goes on.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "base/environment.h"
#include "devices/cpu/jit/fault_guard.h"
#include "jit/widen_testing.h"
#include "support/child.h"

using namespace holdfast;
using namespace holdfast::jit;
using namespace holdfast::jit::testing;

namespace {

// Runs for ever where in[thread] is not 0; out[thread] = 1 at the end.
const char* const endless = R"(
define void @kernel(ptr addrspace(1) %in, ptr addrspace(1) %out) {
entry:
  %i = call i32 @__hf_thread_position_in_threadgroup(i32 0)
  %p = getelementptr i32, ptr addrspace(1) %in, i32 %i
  %v = load i32, ptr addrspace(1) %p
  %stays = icmp ne i32 %v, 0
  br i1 %stays, label %loop, label %done
loop:
  %x = phi i32 [ %v, %entry ], [ %y, %loop ]
  %y = add i32 %x, 2
  %m = or i32 %y, 1
  %go = icmp ne i32 %m, 0
  br i1 %go, label %loop, label %done
done:
  %q = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 1, ptr addrspace(1) %q
  ret void
})";

// A barrier, then out[thread] = *in[thread].
const char* const follows_pointers = R"(
define void @kernel(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %i = call i32 @__hf_thread_position_in_threadgroup(i32 0)
  call void @__hf_threadgroup_barrier(i32 0)
  %p = getelementptr i64, ptr addrspace(1) %in, i32 %i
  %a = load i64, ptr addrspace(1) %p
  %w = inttoptr i64 %a to ptr addrspace(1)
  %v = load i32, ptr addrspace(1) %w
  call void @__hf_threadgroup_barrier(i32 0)
  %q = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %v, ptr addrspace(1) %q
  ret void
})";

std::string message_of(const CpuPipeline& pipeline, std::vector<void*> buffers, Size grid,
                       Size group) {
  try {
    run(pipeline, std::move(buffers), grid, group);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

struct Timeout {
  explicit Timeout(double seconds) { environment::settings_for_tests().kernel_timeout = seconds; }
  ~Timeout() { environment::settings_for_tests().kernel_timeout = 300; }
};

std::vector<Ref<CpuPipeline>> both(const char* text) {
  std::vector<Ref<CpuPipeline>> result{load_ir(text, Lowering::reference, host_instruction_set())};
  CompiledKernel automatic = compile_ir(text, Lowering::automatic, host_instruction_set());
  if (automatic.lowering == Lowering::widened)
    result.push_back(CpuPipeline::load("kernel", std::move(automatic)));
  return result;
}

}  // namespace

TEST_CASE("watchdog: stops a kernel that runs for ever, and the next one runs") {
  Timeout timeout(0.05);
  for (const Ref<CpuPipeline>& pipeline : both(endless)) {
    std::vector<uint32_t> in(40), out(40);
    in[37] = 1;
    CHECK(message_of(*pipeline, {in.data(), out.data()}, {40, 1, 1}, {40, 1, 1}) ==
          "[kernel] the kernel ran longer than 0.05 s and was stopped (HOLDFAST_KERNEL_TIMEOUT)");
    in[37] = 0;
    CHECK(message_of(*pipeline, {in.data(), out.data()}, {40, 1, 1}, {40, 1, 1}) == "");
    CHECK(out == std::vector<uint32_t>(40, 1));
  }
}

TEST_CASE("watchdog: counts the time of a dispatch over all of its threads, not that of others") {
  // Many short dispatches one after the other take longer than the limit, and none is stopped.
  Timeout timeout(0.05);
  Ref<CpuPipeline> pipeline = both(endless).back();
  std::vector<uint32_t> in(40), out(40);
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (std::chrono::steady_clock::now() < end)
    REQUIRE(message_of(*pipeline, {in.data(), out.data()}, {40, 1, 1}, {40, 1, 1}) == "");
  // A part of a dispatch that has lasted long enough is.
  DispatchArguments arguments;
  void* buffers[] = {in.data(), out.data()};
  arguments.buffers = buffers;
  arguments.grid[0] = arguments.threadgroup[0] = 40;
  begin_dispatch(arguments);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  in[37] = 1;
  bool stopped = false;
  try {
    run_groups(*pipeline, arguments, 0, 1);
  } catch (const std::runtime_error&) {
    stopped = true;
  }
  CHECK(stopped);
}

TEST_CASE("watchdog: the parts of one dispatch add up, however short each is") {
  Ref<CpuPipeline> pipeline = both(endless).back();
  std::vector<uint32_t> in(1), out(1);  // every part ends at once
  void* buffers[] = {in.data(), out.data()};
  DispatchArguments arguments;
  arguments.buffers = buffers;
  arguments.grid[0] = max_grid;
  begin_dispatch(arguments);
  run_groups(*pipeline, arguments, 0, 1);
  run_groups(*pipeline, arguments, 1, 2);
  // The limit lies behind: the next part does not run, though no look of the watchdog meets it.
  arguments.started -= std::chrono::hours(1);
  out[0] = 0;
  CHECK_THROWS_WITH(
      run_groups(*pipeline, arguments, 2, 3),
      "[kernel] the kernel ran longer than 300 s and was stopped (HOLDFAST_KERNEL_TIMEOUT)");
  CHECK(out[0] == 0);
  // Parts that take the time together are stopped sooner or later, without anything else.
  Timeout timeout(0.02);
  begin_dispatch(arguments);
  int64_t part = 0;
  auto run_all = [&] {
    for (; part < threadgroups(arguments); ++part) run_groups(*pipeline, arguments, part, part + 1);
  };
  CHECK_THROWS_WITH(
      run_all(),
      "[kernel] the kernel ran longer than 0.02 s and was stopped (HOLDFAST_KERNEL_TIMEOUT)");
  // Another dispatch has a time of its own.
  begin_dispatch(arguments);
  run_groups(*pipeline, arguments, 5, 6);
}

TEST_CASE("watchdog: stops endless kernels of every form, on both lowerings") {
  Timeout timeout(0.05);
  const char* const bodies[] = {
      "while (true) {}",
      "for (;;) y[i] += 1;",
      "uint k = 1; while (k != 0) { k = k * 3 | 1; } y[i] = k;",
      "while (simd_any(x[i] >= 0)) y[i] += simd_sum(x[i]);",
      "while (x[0] >= 0) { threadgroup_barrier(mem_flags::mem_threadgroup); y[i] += 1; }",
      "if (i == 77) { again: y[i] += 1; goto again; }",
      "float v = x[i]; do { v = v * 0.5 + 1; } while (v > -1); y[i] = v;",
      "for (uint a = 0; a != 1; a = 2) for (uint b = 0; b < 5; b = b) y[i] = b;",
      "while (atomic_load_explicit((device atomic_uint*)y, memory_order_relaxed) != 12345) {}",
  };
  for (const char* body : bodies) {
    CAPTURE(std::string(body));
    const std::string text =
        "kernel void k(const device float* x [[buffer(0)]], device float* y [[buffer(1)]],\n"
        "              uint i [[thread_position_in_grid]]) {\n" +
        std::string(body) + "\n}\n";
    for (Lowering lowering : {Lowering::reference, Lowering::automatic}) {
      Ref<CpuPipeline> pipeline =
          CpuPipeline::load("k", compile_msl(text, lowering, host_instruction_set()));
      std::vector<float> x(100, 1), y(100);
      CHECK(message_of(*pipeline, {x.data(), y.data()}, {100, 1, 1}, {64, 1, 1}) ==
            "[k] the kernel ran longer than 0.05 s and was stopped (HOLDFAST_KERNEL_TIMEOUT)");
    }
  }
}

TEST_CASE("watchdog: a cancelled queue stops its kernels") {
  Ref<CpuPipeline> pipeline = both(endless).back();
  std::vector<uint32_t> in(40, 1), out(40);
  void* buffers[] = {in.data(), out.data()};
  sync::Atomic<uint64_t> cancelled{6};
  DispatchArguments arguments;
  arguments.buffers = buffers;
  arguments.grid[0] = arguments.threadgroup[0] = 40;
  arguments.queue_cancelled = &cancelled;
  arguments.list = 7;
  begin_dispatch(arguments);
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancelled.store(7);
  });
  CHECK_THROWS_WITH(run_groups(*pipeline, arguments, 0, 1),
                    "[kernel] the kernel was cancelled while it ran");
  canceller.join();
}

TEST_CASE("faults: a wild pointer in a kernel is an exception, again and again, on any thread") {
  install_fault_handlers();  // doctest puts its own in front for each test case
  for (const Ref<CpuPipeline>& pipeline : both(follows_pointers)) {
    int value = 42;
    std::vector<int*> in(70, &value);
    std::vector<int> out(70);
    for (int round = 0; round < 3; ++round) {
      CAPTURE(round);
      in[50] = reinterpret_cast<int*>(16);
      auto faults = [&] {
        CHECK(message_of(*pipeline, {in.data(), out.data()}, {70, 1, 1}, {70, 1, 1}) ==
              "[kernel] the kernel did what the processor refuses: SIGSEGV at address 0x10");
      };
      faults();
      std::thread(faults).join();
      in[50] = &value;
      CHECK(message_of(*pipeline, {in.data(), out.data()}, {70, 1, 1}, {70, 1, 1}) == "");
      CHECK(out == std::vector<int>(70, 42));
    }
  }
}

// In a process of its own, because handlers are put in place once.
TEST_CASE("child: fault outside kernels") {
  if (!holdfast::testing::is_child("child: fault outside kernels")) return;
  signal(SIGSEGV, [](int) { _exit(3); });
  Ref<CpuPipeline> pipeline = both(follows_pointers).back();
  int value = 42, out = 0;
  int* in[] = {&value};
  run(*pipeline, {in, &out}, {1, 1, 1}, {1, 1, 1});
  in[0] = reinterpret_cast<int*>(16);
  CHECK(message_of(*pipeline, {in, &out}, {1, 1, 1}, {1, 1, 1}) != "");
  raise(SIGSEGV);
  _exit(5);
}

TEST_CASE("faults: a fault outside kernels goes to the handler that was there before") {
  CHECK(holdfast::testing::run_child("child: fault outside kernels").exit_code == 3);
}

TEST_CASE("faults: with HOLDFAST_CATCH_FAULTS=0 the program's own handler sees a kernel's fault") {
  CHECK(holdfast::testing::run_child("child: fault in a kernel", {"HOLDFAST_CATCH_FAULTS=0"})
            .exit_code == 4);
  CHECK(holdfast::testing::run_child("child: fault in a kernel").exit_code == 0);
}

TEST_CASE("child: fault in a kernel") {
  if (!holdfast::testing::is_child("child: fault in a kernel")) return;
  signal(SIGSEGV, [](int) { _exit(4); });
  Ref<CpuPipeline> pipeline = both(follows_pointers).back();
  int out = 0;
  int* in[] = {reinterpret_cast<int*>(16)};
  CHECK(message_of(*pipeline, {in, &out}, {1, 1, 1}, {1, 1, 1}) != "");
}

TEST_CASE("dispatch: grids and threadgroups beyond the limits are refused by name") {
  std::string text =
      "@big = internal addrspace(3) global [4096 x i32] undef\n"
      "define void @kernel(ptr addrspace(1) %out, ptr addrspace(3) %more) {\n"
      "  store i32 1, ptr addrspace(3) @big\n  %v = load i32, ptr addrspace(3) @big\n"
      "  store i32 %v, ptr addrspace(1) %out\n  ret void }";
  Ref<CpuPipeline> pipeline = load_ir(text, Lowering::reference, host_instruction_set());
  int out = 0;
  auto message = [&](Size grid, Size group, uint32_t bytes) -> std::string {
    try {
      run(*pipeline, {&out, nullptr}, grid, group, {0, bytes});
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message({1, 1, 1}, {1024, 1024, 64}, 0) == "");  // clamped to the grid
  CHECK(out == 1);
  CHECK(message({1024, 1, 1}, {1024, 1, 1}, 16384) == "");
  CHECK(message({0, 1, 1}, {1, 1, 1}, 0) ==
        "[kernel] the grid must have from 1 to 2147483648 threads along each axis, got (0, 1, 1)");
  CHECK(message({1, 3000000000u, 1}, {1, 1, 1}, 0) ==
        "[kernel] the grid must have from 1 to 2147483648 threads along each axis, got (1, "
        "3000000000, 1)");
  CHECK(message({1, 1, 1}, {1, 0, 1}, 0) ==
        "[kernel] the threadgroup must have at least one thread along each axis, got (1, 0, 1)");
  CHECK(message({2048, 2, 2}, {512, 2, 2}, 0) ==
        "[kernel] a threadgroup may have at most 1024 threads, got (512, 2, 2) on a grid of (2048, "
        "2, 2)");
  CHECK(
      message({1, 1, 1}, {1, 1, 1}, 16385) ==
      "[kernel] a threadgroup may use at most 32768 bytes of threadgroup memory, the kernel needs "
      "32769");
  CHECK(message({2147483648u, 2147483648u, 2147483648u}, {1, 1, 1}, 0).find("more threadgroups") !=
        std::string::npos);
}

TEST_CASE("loader: the compiler is found beside the program, and is of this build") {
  Compiler& compiler = default_compiler();
  CHECK(&compiler == &default_compiler());
  CHECK(compiler.version() == default_compiler_version());
}
