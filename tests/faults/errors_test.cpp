// What went wrong is never lost and never becomes a value: it is thrown to whoever waits for what
// depends on it, by name, and to nobody else.

#include <doctest/doctest.h>

#include <holdfast/holdfast.h>

#include "support/gate.h"
#include "support/inspection.h"
#include "support/test_ops.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr int count = 8;

std::string error_of(array x) {
  try {
    x.eval();
    return "";
  } catch (const ExecutionError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a failure in the middle of a list reaches what depends on it, and nothing else") {
  Stream s = default_stream(Device::cpu);
  LeakCheck leaks;
  {
    Gate gate(s);  // all of this is one list
    array before = affine(counting(count), 1, 1, s);
    array failed = failing_on_device(before, s);
    array after = affine(before, 1, 1, s);
    array dependent = add_arrays(failed, after, s);
    array in_place = affine_in_place(affine_in_place(dependent, 1, 1, s), 1, 1, s);
    array view = slice(dependent, {0}, {4}, s);
    array fused = add(multiply(view, view, s), view, s);
    array sibling = three_sums(failed, s)[1];
    async_eval(dependent, in_place, fused, after, sibling);
    gate.open();
    CHECK(values(before)[1] == 2);
    CHECK(values(after)[1] == 3);
    for (const array& x : {failed, dependent, in_place, view, fused, sibling}) {
      CHECK(error_of(x) == "[FailingOnDevice] no luck");
      CHECK(error_of(x) == "[FailingOnDevice] no luck");
    }
    // Built afterwards on a failed array.
    CHECK(error_of(affine(failed, 1, 0, s)) == "[FailingOnDevice] no luck");
    CHECK(error_of(add(view, array(1), s)) == "[FailingOnDevice] no luck");
  }
  leaks.check();
  CHECK_NOTHROW(synchronize(s));
}

TEST_CASE("a failure crosses streams with the data") {
  Stream a = default_stream(Device::cpu), b = new_stream(Device::cpu);
  {
    array failed = failing_on_device(counting(count), a);
    array on_b = affine(failed, 1, 1, b);
    array independent = affine(counting(count), 1, 1, b);
    async_eval(on_b, independent);
    CHECK(error_of(on_b) == "[FailingOnDevice] no luck");
    CHECK(values(independent)[1] == 2);
  }
  exec::Runtime::get().give_back(queue_of(b));
}

TEST_CASE("a temporary that failed fails the op's output") {
  Stream s = default_stream(Device::cpu);
  array x =
      make_op("TwoSteps", s, {counting(count)}, {count},
              [](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                encoder.allocate(out[0]);
                array temporary(Shape{count}, int32, nullptr, {});
                encoder.allocate(temporary);
                encoder.input(in[0]);
                encoder.output(temporary);
                encoder.host_callback("first", [] { throw std::runtime_error("step one"); });
                encoder.input(temporary);
                encoder.output(out[0]);
                add_affine(encoder, temporary.data<int32_t>(), out[0].data<int32_t>(), count, 1, 0);
              });
  CHECK(error_of(x) == "[TwoSteps] step one");
}

TEST_CASE("bindings without a command do not fail the next op") {
  Stream s = default_stream(Device::cpu);
  array failed = failing_on_device(counting(count), s);
  async_eval(failed);
  array binds =
      make_op("BindsOnly", s, {failed, counting(count)}, {count},
              [](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                out[0].copy_shared_buffer(in[1]);
                encoder.input(in[0]);
              });
  array fine = affine(binds, 1, 1, s);
  CHECK(values(fine)[1] == 2);
  CHECK(error_of(failed) == "[FailingOnDevice] no luck");
}

TEST_CASE("memory that held a failed result is clean when it is used again") {
  Stream s = default_stream(Device::cpu);
  for (int i = 0; i < 20; ++i) {
    async_eval(failing_on_device(counting(count), s));
    array x = affine(counting(count), 1, i, s);
    CHECK(values(x)[0] == i);
  }
  CHECK_THROWS_AS(synchronize(s), ExecutionError);
  queue_of(s).forget_failures();
}

TEST_CASE("synchronize throws the first error nobody has seen, once") {
  Stream s = new_stream(Device::cpu);
  async_eval(failing_on_device(counting(count), s, "first"));
  async_eval(failing_on_device(counting(count), s, "second"));
  array third = failing_on_device(counting(count), s, "third");
  CHECK(error_of(third) == "[FailingOnDevice] third");
  CHECK_THROWS_WITH_AS(synchronize(s), "[FailingOnDevice] first", ExecutionError);
  CHECK_THROWS_WITH_AS(synchronize(s), "[FailingOnDevice] second", ExecutionError);
  CHECK_NOTHROW(synchronize(s));
  exec::Runtime::get().give_back(queue_of(s));
}

TEST_CASE("of several threads that synchronize one is told") {
  Stream s = new_stream(Device::cpu);
  controlled::for_each_schedule(
      100,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        async_eval(failing_on_device(counting(count), s));
        std::atomic<int> told = 0;
        on_threads(3, [&](int) {
          try {
            synchronize(s);
          } catch (const ExecutionError&) {
            ++told;
          }
        });
        CHECK(told == 1);
      },
      20);
  exec::Runtime::get().give_back(queue_of(s));
}

TEST_CASE("errors say where the op was built") {
  Stream s = default_stream(Device::cpu);
  auto build = [&] {
    label::Scope outer("model");
    label::Scope inner("layer 3");
    return failing_on_device(counting(count), s);
  };
  CHECK(error_of(build()) == "[FailingOnDevice] no luck (label model/layer 3)");
}

TEST_CASE("an exception that is not a std::exception is an error too") {
  Stream s = default_stream(Device::cpu);
  array on_device = make_op("ThrowsInt", s, {counting(1)}, {1},
                            [](Encoder& encoder, const auto&, std::vector<array>& out) {
                              encoder.allocate(out[0]);
                              encoder.output(out[0]);
                              encoder.host_callback("throw", [] { throw 7; });
                            });
  CHECK(error_of(on_device).starts_with("[ThrowsInt] "));
  array while_encoding = make_op("ThrowsInt", s, {counting(1)}, {1},
                                 [](Encoder&, const auto&, std::vector<array>&) { throw 7; });
  CHECK_THROWS_WITH_AS(while_encoding.eval(),
                       "[ThrowsInt] threw something that is not a std::exception",
                       std::runtime_error);
}

TEST_CASE("an op that gives its output no data is an error") {
  Stream s = default_stream(Device::cpu);
  array x =
      make_op("Forgets", s, {counting(1)}, {1}, [](Encoder&, const auto&, std::vector<array>&) {});
  CHECK_THROWS_AS(x.eval(), std::logic_error);
  CHECK_THROWS_AS(x.eval(), std::logic_error);
}

TEST_CASE("one failing task of a command that several threads run fails the command") {
  Stream s = default_stream(Device::cpu);
  array x =
      make_op("Parallel", s, {counting(64)}, {64},
              [](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                encoder.allocate(out[0]);
                encoder.input(in[0]);
                encoder.output(out[0]);
                encoder.native("parallel", 64, int64_t{1} << 30, [](int64_t begin, int64_t end) {
                  if (begin <= 40 && 40 < end) throw std::runtime_error("task 40");
                });
              });
  CHECK(error_of(x) == "[Parallel] task 40");
}

TEST_CASE("a failing task fails the command, whichever thread runs it") {
  Stream s = default_stream(Device::cpu);
  controlled::for_each_schedule(40, [&](const controlled::Schedule&) {
    array x = make_op("Parallel", s, {}, {1}, [](Encoder& encoder, const auto&, auto& out) {
      encoder.allocate(out[0]);
      encoder.output(out[0]);
      encoder.native("parallel", 64, int64_t{1} << 30, [](int64_t begin, int64_t end) {
        sync::yield_point();
        if (begin <= 40 && 40 < end) throw std::runtime_error("task 40");
      });
    });
    CHECK(error_of(x) == "[Parallel] task 40");
  });
}

TEST_CASE("an op that throws leaves its output without data, and can be tried again") {
  Stream s = default_stream(Device::cpu);
  array x = counting(count);
  eval(x);
  int failures = 2;
  array y = make_op("Late", s, {x}, {count}, [&](Encoder& encoder, const auto& in, auto& out) {
    encoder.allocate(out[0]);
    if (failures-- > 0) throw std::runtime_error("too late");
    encoder.input(in[0]);
    encoder.output(out[0]);
    add_affine(encoder, in[0].template data<int32_t>(), out[0].template data<int32_t>(), count, 2,
               1);
  });
  LeakCheck leaks;
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_WITH_AS(y.eval(), "[Late] too late", std::runtime_error);
    leaks.check();
  }
  CHECK(values(y)[3] == 7);
}

TEST_CASE("an error of one array does not keep the others of the same eval from being computed") {
  Stream a = default_stream(Device::cpu), b = new_stream(Device::cpu);
  {
    array failed = failing_on_device(counting(count), a);
    array other = affine(counting(count), 1, 1, b);
    CHECK_THROWS_AS(eval(failed, other), ExecutionError);
    // Nobody waits for it.
    CHECK(eventually([&] { return other.is_available(); }));
    CHECK(values(other)[1] == 2);
  }
  exec::Runtime::get().give_back(queue_of(b));
}
