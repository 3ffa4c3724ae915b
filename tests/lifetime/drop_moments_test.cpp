// The owners of arrays let go of them at any moment while another thread evaluates: the schedules
// of the controlled preset try the moments one by one.

#include <doctest/doctest.h>

#include <optional>

#include <holdfast/holdfast.h>

#include "base/fault.h"
#include "support/inspection.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr int count = 20;

std::vector<int32_t> expected(int32_t factor, int32_t summand) {
  std::vector<int32_t> result;
  for (int32_t i = 0; i < count; ++i) result.push_back(i * factor + summand);
  return result;
}

// Runs `evaluate` while another thread destroys `handles`, one after the other.
template <class Evaluate>
void while_dropping(std::vector<array> handles, Evaluate evaluate) {
  sync::Thread dropper("dropper", [handles = std::move(handles)]() mutable {
    while (!handles.empty()) {
      handles.pop_back();
      sync::yield_point();
    }
  });
  evaluate();
  dropper.join();
}

}  // namespace

TEST_CASE("inputs and intermediate results dropped while they are evaluated") {
  Stream s = default_stream(Device::cpu);
  controlled::for_each_schedule(300, [&](const controlled::Schedule&) {
    INFO(controlled::describe());
    LeakCheck leaks;
    {
      std::optional<array> x = counting(count);
      std::optional<array> y = affine(*x, 2, 1, s);
      std::optional<array> z = through_temporary(*y, s);
      array out = affine_in_place(*z, 1, 1, s);
      std::vector<array> handles{*x, *y, *z};
      x.reset();
      y.reset();
      z.reset();
      while_dropping(std::move(handles), [&] { CHECK(values(out) == expected(4, 4)); });
    }
    leaks.check();
  });
}

TEST_CASE("donation while the other owner lets go") {
  Stream s = default_stream(Device::cpu);
  controlled::for_each_schedule(300, [&](const controlled::Schedule&) {
    INFO(controlled::describe());
    LeakCheck leaks;
    {
      std::optional<array> x = affine(counting(count), 1, 0, s);
      x->eval();
      std::vector<int32_t> seen;
      array out = affine_in_place(affine_in_place(*x, 3, 0, s), 1, 7, s);
      sync::Thread reader("reader", [handle = std::move(*x), &seen]() mutable {
        seen = values(handle);
        handle = counting(1);
      });
      x.reset();
      CHECK(values(out) == expected(3, 7));
      reader.join();
      CHECK(seen == expected(1, 0));
    }
    leaks.check();
  });
}

TEST_CASE("fused chains whose intermediate results are dropped meanwhile") {
  Stream s = default_stream(Device::cpu);
  controlled::for_each_schedule(200, [&](const controlled::Schedule&) {
    INFO(controlled::describe());
    LeakCheck leaks;
    {
      array two(2, int32);
      std::optional<array> x = counting(count);
      std::optional<array> y = multiply(*x, two, s);
      std::optional<array> z = add(*y, *x, s);
      array out = subtract(*z, two, s);
      std::vector<array> handles{*x, *y, *z};
      x.reset();
      y.reset();
      z.reset();
      while_dropping(std::move(handles), [&] { CHECK(values(out) == expected(3, -2)); });
    }
    leaks.check();
  });
}

TEST_CASE("the last handles of evaluated arrays dropped by several threads") {
  Stream s = default_stream(Device::cpu);
  controlled::for_each_schedule(150, [&](const controlled::Schedule&) {
    INFO(controlled::describe());
    LeakCheck leaks;
    {
      array x = counting(count);
      std::vector<array> results;
      for (int i = 0; i < 3; ++i) results.push_back(affine(x, 1, i, s));
      async_eval(results);
      std::vector<sync::Thread> threads;
      for (int i = 0; i < 2; ++i) {
        threads.emplace_back("dropper", [mine = results]() mutable { mine.clear(); });
      }
      results.clear();
      x = affine(x, 1, 1, s);
      CHECK(values(x) == expected(1, 1));
      for (sync::Thread& thread : threads) thread.join();
    }
    leaks.check();
  });
}

TEST_CASE("siblings dropped while they are evaluated") {
  Stream s = default_stream(Device::cpu);
  controlled::for_each_schedule(200, [&](const controlled::Schedule&) {
    INFO(controlled::describe());
    LeakCheck leaks;
    {
      std::vector<array> sums = three_sums(counting(count), s);
      array middle = sums[1];
      while_dropping(std::move(sums), [&] { CHECK(values(middle) == expected(1, 2)); });
    }
    leaks.check();
  });
}

#if HOLDFAST_CHECKS
// Without the retain the same scenario must go wrong under some of the schedules: they do reach the
// dangerous moments.
TEST_CASE("without retaining the schedules find the moment") {
  if (!controlled::enabled()) return;
  Stream s = default_stream(Device::cpu);
  int reported = 0;
  controlled::for_each_schedule(100, [&](const controlled::Schedule&) {
    WithoutRetaining ablation(s);
    std::optional<array> x = counting(count);
    array out = affine(*x, 2, 1, s);
    std::vector<array> handles{*x};
    x.reset();
    while_dropping(std::move(handles), [&] {
      try {
        out.eval();
      } catch (const ExecutionError&) {
        ++reported;
      }
    });
  });
  CHECK(reported > 0);
}
#endif
