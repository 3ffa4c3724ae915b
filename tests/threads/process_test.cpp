// The start and the end of the process, and forks.

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>

#include <holdfast/holdfast.h>

#include "support/child.h"
#include "support/gate.h"
#include "support/test_ops.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

int run_in_fork(const std::function<int()>& body) {
  pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool refuses(const std::function<void()>& entry) {
  try {
    entry();
    return false;
  } catch (const std::runtime_error& error) {
    return std::string(error.what()).find("forked") != std::string::npos;
  }
}

}  // namespace

// The threads of the controlled scheduler do not survive a fork.
TEST_CASE("after a fork every entry throws; arrays can be dropped") {
  if (controlled::enabled()) return;
  array evaluated = affine(counting(8), 1, 1, default_stream(Device::cpu));
  evaluated.eval();
  array lazy = affine(evaluated, 1, 1, default_stream(Device::cpu));
  array in_flight = affine(evaluated, 1, 1, default_stream(Device::cpu));
  async_eval(in_flight);
  int code = run_in_fork([&] {
    if (!refuses([] { array x(1.0f); })) return 1;
    if (!refuses([&] { array(lazy).eval(); })) return 2;
    if (!refuses([&] { add(lazy, lazy).eval(); })) return 3;
    if (!refuses([] { new_stream(Device::cpu); })) return 4;
    if (!refuses([] { synchronize(); })) return 5;
    if (!refuses([] { allocator::malloc(8); })) return 6;
    if (!refuses([&] { async_eval(lazy); })) return 7;
    if (!refuses([] {
          int x = 0;
          array adopted(&x, Shape{1}, int32, nullptr);
        }))
      return 8;
    {
      array copy = evaluated;
    }
    if (evaluated.data<int32_t>()[1] != 2) return 9;
    return 0;
  });
  CHECK(code == 0);
  CHECK(values(lazy)[1] == 3);
  CHECK(values(in_flight)[1] == 3);
}

TEST_CASE("child: fork before the first use") {
  if (!is_child("child: fork before the first use")) return;
  int code = run_in_fork([] {
    return values(affine(counting(8), 1, 1, default_stream(Device::cpu)))[1] == 2 ? 0 : 1;
  });
  CHECK(code == 0);
  CHECK(values(affine(counting(8), 1, 1, default_stream(Device::cpu)))[1] == 2);
}

TEST_CASE("a fork before the first use is fine, for parent and child") {
  if (controlled::enabled()) return;
  ChildResult child = run_child("child: fork before the first use");
  CHECK_MESSAGE(child.exit_code == 0, child.output);
}

TEST_CASE("child: exit with work in flight") {
  if (!is_child("child: exit with work in flight")) return;
  static array made_before_the_runtime = counting(4);  // destroyed after it ended
  static std::atomic<int> executions = 0;
  static array result = made_before_the_runtime;
  Stream s = default_stream(Device::cpu);
  result = made_before_the_runtime;
  for (int i = 0; i < 200; ++i) {
    result = with_callback(result, [] { ++executions; }, s);
  }
  async_eval(result);
  std::atexit([] { report("executed " + std::to_string(executions.load())); });
}

TEST_CASE("a process that exits with work in flight drains it and ends well") {
  for (int i = 0; i < 3; ++i) {
    ChildResult child = run_child("child: exit with work in flight");
    CHECK_MESSAGE(child.exit_code == 0, child.output);
  }
}

TEST_CASE("child: exit while a command does not end") {
  if (!is_child("child: exit while a command does not end")) return;
  static std::atomic<bool> never = false;
  array x = with_callback(
      counting(1),
      [] {
        while (!never) sync::sleep_for(std::chrono::milliseconds(1));
      },
      default_stream(Device::cpu));
  async_eval(x);
}

TEST_CASE("a process whose command does not end exits all the same") {
  // Waits for five seconds; once is enough.
  if (HOLDFAST_TEST_TSAN || controlled::enabled()) return;
  ChildResult child = run_child("child: exit while a command does not end");
  CHECK_MESSAGE(child.exit_code == 0, child.output);
}

TEST_CASE("child: threads that outlive main") {
  if (!is_child("child: threads that outlive main")) return;
  static auto* threads = new std::vector<sync::Thread>;
  for (int i = 0; i < 4; ++i) {
    threads->emplace_back("outlives", [] {
      try {
        while (true) values(affine(counting(8), 1, 1, default_stream(Device::cpu)));
      } catch (const std::runtime_error&) {
        // The process is exiting.
        while (true) sync::sleep_for(std::chrono::seconds(1));
      }
    });
  }
  sync::sleep_for(std::chrono::milliseconds(20));
}

TEST_CASE("a process may exit while its threads still evaluate") {
  if (controlled::enabled()) return;
  for (int i = 0; i < 3; ++i) {
    ChildResult child = run_child("child: threads that outlive main");
    CHECK_MESSAGE(child.exit_code == 0, child.output);
  }
}
