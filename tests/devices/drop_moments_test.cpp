// The owners of arrays release them at any moment while another thread evaluates them on two
// devices: the schedules of the controlled preset try the moments one by one.
#include <doctest/doctest.h>

#include <numeric>
#include <optional>
#include <vector>

#include <holdfast/holdfast.h>

#include "devices/gpu.h"
#include "support/inspection.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using Ints = std::vector<int32_t>;
constexpr int length = 20;

// 0, factor, 2 factor, …, each plus `summand`.
Ints line(int32_t factor, int32_t summand) {
  Ints result;
  for (int32_t i = 0; i < length; ++i) result.push_back(i * factor + summand);
  return result;
}

array leaf() { return array(line(1, 0).begin(), {length}, int32); }

Ints read(array a) {
  a.eval();
  const array& evaluated = a;
  const auto* data = evaluated.data<int32_t>();
  return {data, data + evaluated.size()};
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

TEST_CASE("arrays of two devices dropped while they are evaluated") {
  install_gpu();
  const Stream host = default_stream(Device::cpu), gpu = default_stream(Device::gpu);
  controlled::for_each_schedule(100, [&](const controlled::Schedule&) {
    INFO(controlled::describe());
    LeakCheck leaks;
    {
      std::optional<array> x = leaf();
      std::optional<array> y = add(multiply(*x, array(2), gpu), array(1), gpu);
      std::optional<array> z = multiply(*y, array(2), host);
      array out = add(*z, array(1), gpu);
      array view = slice(*y, {length - 1}, {-length - 1}, {-1}, gpu);
      array both = add(view, *z, host);
      std::vector<array> handles{*x, *y, *z};
      x.reset();
      y.reset();
      z.reset();
      while_dropping(std::move(handles), [&] {
        CHECK(read(out) == line(4, 3));
        CHECK(read(both) == line(2, 2 * length + 1));
      });
    }
    leaks.check();
  });
}

TEST_CASE("replicas dropped while both devices read them, and written by the host") {
  install_gpu();
  const Stream host = default_stream(Device::cpu), gpu = default_stream(Device::gpu);
  controlled::for_each_schedule(100, [&](const controlled::Schedule&) {
    INFO(controlled::describe());
    LeakCheck leaks;
    {
      array x = add(leaf(), array(0), gpu);
      eval(x);
      std::optional<array> on_host = multiply(x, array(3), host);
      std::optional<array> on_gpu = multiply(x, array(5), gpu);
      async_eval(*on_host, *on_gpu);
      array sum = add(*on_host, *on_gpu, host);
      while_dropping({*on_host, *on_gpu, x}, [&] {
        on_host.reset();
        on_gpu.reset();
        CHECK(read(sum) == line(8, 0));
        x.data<int32_t>()[0] = 7;
        array next = add(x, array(1), gpu);
        Ints expected = line(1, 1);
        expected[0] = 8;
        CHECK(read(next) == expected);
      });
    }
    leaks.check();
  });
}

TEST_CASE("memory of the program is returned once both devices have read it") {
  install_gpu();
  const Stream host = default_stream(Device::cpu), gpu = default_stream(Device::gpu);
  controlled::for_each_schedule(60, [&](const controlled::Schedule&) {
    INFO(controlled::describe());
    static sync::Atomic<int> living{0};
    LeakCheck leaks;
    {
      auto* memory = new Ints(line(1, 0));
      living.fetch_add(1);
      std::optional<array> x(std::in_place, memory->data(), Shape{length}, int32, [memory](void*) {
        // Overwritten: whoever reads it later reads this.
        memory->assign(length, -1);
        delete memory;
        living.fetch_sub(1);
      });
      array a = add(*x, array(1), gpu), b = add(*x, array(2), host);
      std::vector<array> handles{*x};
      x.reset();
      while_dropping(std::move(handles), [&] {
        async_eval(a, b);
        CHECK(read(a) == line(1, 1));
        CHECK(read(b) == line(1, 2));
      });
    }
    leaks.check();
    CHECK(eventually([&] { return living.load() == 0; }));
  });
}
