// Streams across threads: used from foreign threads, waiting for each other, with timeouts,
// cancelled, served in turn, and handed on when their threads end.

#include <doctest/doctest.h>

#include <atomic>
#include <optional>

#include <holdfast/holdfast.h>

#include "base/environment.h"
#include "support/child.h"
#include "support/gate.h"
#include "support/inspection.h"
#include "support/test_ops.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;
using namespace std::chrono_literals;

namespace {

constexpr int count = 16;

void give_back(Stream s) { exec::Runtime::get().give_back(queue_of(s)); }

}  // namespace

TEST_CASE("a stream may be used from any thread") {
  Stream s = new_stream(Device::cpu);
  controlled::for_each_schedule(
      100,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        LeakCheck leaks;
        on_threads(4, [&](int index) {
          array x = counting(count);
          for (int i = 0; i < 5; ++i) x = affine(x, 1, index, s);
          if (values(x)[1] != 1 + 5 * index) throw std::runtime_error("wrong value");
        });
        leaks.check();
      },
      10);
  give_back(s);
}

TEST_CASE("work that goes back and forth between two streams") {
  Stream a = new_stream(Device::cpu), b = new_stream(Device::cpu);
  controlled::for_each_schedule(
      100,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        LeakCheck leaks;
        on_threads(2, [&](int index) {
          array x = counting(count);
          for (int i = 0; i < 12; ++i) {
            Stream s = (i + index) % 2 == 0 ? a : b;
            x = i % 3 == 0 ? add(x, array(1), s) : affine_in_place(x, 1, 1, s);
          }
          if (values(x)[1] != 13) throw std::runtime_error("wrong value");
        });
        leaks.check();
      },
      10);
  give_back(a);
  give_back(b);
}

TEST_CASE("a second wait starts a new list, which still waits for what the first waited for") {
  Stream a = new_stream(Device::cpu), b = new_stream(Device::cpu), c = new_stream(Device::cpu);
  {
    Gate gate_a(a), gate_b(b);
    array from_a = affine(counting(count), 1, 1, a);
    array from_b = affine(counting(count), 1, 2, b);
    array first = affine(from_a, 1, 0, c);
    array both = add_arrays(from_a, from_b, c);
    async_eval(first, both);
    gate_b.open();
    CHECK_FALSE(both.wait_for(1ms));
    gate_a.open();
    CHECK(values(both)[1] == 5);
    CHECK(values(first)[1] == 2);
  }
  for (Stream s : {a, b, c}) give_back(s);
}

TEST_CASE("streams that need each other's results, both ways, in flight") {
  Stream a = new_stream(Device::cpu), b = new_stream(Device::cpu);
  controlled::for_each_schedule(
      60,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        Gate gate_a(a), gate_b(b);
        array from_a = affine(counting(count), 1, 1, a);
        array from_b = affine(counting(count), 1, 2, b);
        array on_b = add_arrays(affine(from_a, 1, 0, b), from_b, b);
        array on_a = add_arrays(affine(from_b, 1, 0, a), from_a, a);
        async_eval(on_a, on_b);
        gate_a.open();
        gate_b.open();
        CHECK(values(on_a)[1] == 5);
        CHECK(values(on_b)[1] == 5);
      },
      10);
  give_back(a);
  give_back(b);
}

TEST_CASE("several inputs of another stream need one wait, not one list each" *
          doctest::test_suite("no other layers")) {
  Stream a = new_stream(Device::cpu), b = new_stream(Device::cpu);
  {
    Gate gate(a);
    CommitRecorder recorder;
    array x = affine(counting(count), 1, 1, a);
    async_eval(x);
    array y = affine(x, 1, 0, b);
    for (int i = 0; i < 5; ++i) y = add_arrays(y, x, b);
    async_eval(y);
    CHECK(recorder.lists(b).size() == 1);
    gate.open();
    CHECK(values(y)[0] == 6);
  }
  give_back(a);
  give_back(b);
}

TEST_CASE("an op may bind only its inputs when they come from another stream") {
  Stream a = new_stream(Device::cpu), b = new_stream(Device::cpu);
  {
    Gate gate(a);
    array hidden = affine(counting(count), 1, 1, a);
    async_eval(hidden);
    array y = make_op("BindsHidden", b, {counting(count)}, {count},
                      [&](Encoder& encoder, const auto&, std::vector<array>& out) {
                        encoder.allocate(out[0]);
                        encoder.input(hidden);
                        encoder.output(out[0]);
                      });
    CHECK_THROWS_AS(y.eval(), std::logic_error);
    gate.open();
  }
  give_back(a);
  give_back(b);
}

TEST_CASE("a stream that waits for an event by hand") {
  Stream a = new_stream(Device::cpu), b = new_stream(Device::cpu);
  {
    Gate gate(a);
    array x = affine(counting(count), 1, 1, a);
    async_eval(x);
    std::atomic<bool> ran = false;
    x.event().wait(b);
    array y = with_callback(counting(1), [&] { ran = true; }, b);
    async_eval(y);
    CHECK(!y.wait_for(2ms));
    CHECK(!ran);
    gate.open();
    y.wait();
    CHECK(ran);
    CHECK(x.is_available());
  }
  give_back(a);
  give_back(b);
}

TEST_CASE("waiting with a timeout") {
  Stream s = new_stream(Device::cpu);
  controlled::for_each_schedule(
      40,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        Gate gate(s);
        array x = affine(counting(count), 1, 1, s);
        async_eval(x);
        CHECK(!x.wait_for(1ms));
        CHECK(!synchronize_for(s, 1ms));
        CHECK(!x.event().wait_for(0ms));
        CHECK(!x.is_available());
        gate.open();
        CHECK(x.wait_for(1min));
        CHECK(synchronize_for(s, 1min));
        CHECK(values(x)[1] == 2);
      },
      5);
  // Work that nobody was woken for runs although the one who waits does not help.
  array y = affine(counting(count), 1, 1, s);
  async_eval(y);
  CHECK(y.wait_for(1min));
  give_back(s);
}

namespace {

// A command on the stream that calls `function`; what it throws comes out where it is waited for.
array calling(Stream s, std::function<void()> function, std::vector<array> inputs = {}) {
  return make_op("calling", s, std::move(inputs), {1},
                 [function](Encoder& encoder, const std::vector<array>&, auto& outputs) {
                   encoder.allocate(outputs[0]);
                   encoder.output(outputs[0]);
                   encoder.host_callback("calling", function);
                 });
}

}  // namespace

TEST_CASE("a command that would wait for itself is told") {
  Stream s = new_stream(Device::cpu), other = new_stream(Device::cpu);
  auto wait_for_array = [&] { affine(counting(count), 1, 1, s).eval(); };
  // On this stream, behind a command of another one that waits for this one.
  auto wait_for_other = [&] {
    array later = affine(affine(counting(count), 1, 1, s), 1, 1, other);
    later.eval();
  };
  controlled::for_each_schedule(
      20,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        for (const auto& function : std::vector<std::function<void()>>{
                 [&] { synchronize(s); }, [&] { synchronize_for(s, 1min); }, wait_for_array,
                 wait_for_other}) {
          CHECK_THROWS_WITH(eval(calling(s, function)), doctest::Contains("[wait]"));
          // On a worker.
          array called = calling(s, function);
          async_eval(called);
          CHECK(called.event().wait_for(1min));
          CHECK_THROWS_WITH(called.wait(), doctest::Contains("[wait]"));
        }
        // Other work can be waited for.
        array sum = array(0);
        CHECK_NOTHROW(eval(calling(s, [&] {
          sum = affine(counting(count), 1, 1, other);
          sum.eval();
        })));
        CHECK(values(sum)[1] == 2);
        CHECK(values(affine(counting(count), 1, 1, s))[1] == 2);
      },
      5);
  give_back(s);
  give_back(other);
}

TEST_CASE("commands that wait for each other are told") {
  Stream a = new_stream(Device::cpu), b = new_stream(Device::cpu);
  controlled::for_each_schedule(
      20,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        array first = calling(a, [&] { synchronize(b); });
        array second = calling(b, [&] { synchronize(a); });
        async_eval(first, second);
        int told = 0;
        for (array* called : {&first, &second}) {
          CHECK(called->event().wait_for(1min));
          try {
            called->wait();
          } catch (const std::exception&) {
            ++told;
          }
        }
        CHECK(told >= 1);
      },
      5);
  for (Stream s : {a, b}) {
    try {
      synchronize(s);
    } catch (const std::exception&) {
    }
    give_back(s);
  }
}

TEST_CASE("cancelling fails what has not started, with the op's name, and nothing else") {
  Stream s = new_stream(Device::cpu), other = new_stream(Device::cpu);
  controlled::for_each_schedule(
      60,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        LeakCheck leaks;
        {
          Gate gate(s);
          gate.wait_until_reached();
          array x = affine(counting(count), 1, 1, s);
          array y = affine(x, 1, 1, other);
          async_eval(y);
          cancel(s);
          array z = affine(counting(count), 1, 2, s);
          async_eval(z);
          gate.open();
          CHECK_THROWS_WITH_AS(x.eval(), "[Affine] cancelled before it ran", Cancelled);
          CHECK_THROWS_AS(y.eval(), Cancelled);
          CHECK(values(z)[0] == 2);
          CHECK_NOTHROW(synchronize(s));
        }
        leaks.check();
      },
      5);
  give_back(s);
  give_back(other);
}

TEST_CASE("cancelling while lists run leaves each result right or cancelled") {
  Stream s = new_stream(Device::cpu);
  controlled::for_each_schedule(
      150,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        LeakCheck leaks;
        sync::Thread canceller("canceller", [&] { cancel(s); });
        for (int i = 0; i < 4; ++i) {
          array x = through_temporary(counting(count), s);
          try {
            if (values(x)[3] != 7) throw std::runtime_error("wrong value");
          } catch (const Cancelled&) {
          }
        }
        canceller.join();
        leaks.check();
      },
      20);
  give_back(s);
}

TEST_CASE("an array of a thread that ended can still be evaluated") {
  controlled::for_each_schedule(
      60,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        LeakCheck leaks;
        {
          std::optional<array> lazy, in_flight;
          on_threads(1, [&](int) {
            lazy = affine(counting(count), 1, 1, default_stream(Device::cpu));
            in_flight = affine(counting(count), 1, 2, default_stream(Device::cpu));
            async_eval(*in_flight);
          });
          CHECK(values(*in_flight)[0] == 2);
          CHECK(values(*lazy)[0] == 1);
        }
        leaks.check();
      },
      10);
}

TEST_CASE("the errors of a thread that ended are not thrown to the next owner of its stream") {
  std::optional<Stream> first, second;
  on_threads(1, [&](int) {
    first = default_stream(Device::cpu);
    for (int i = 0; i < 3; ++i) async_eval(failing_on_device(counting(count), *first));
  });
  on_threads(1, [&](int) {
    second = default_stream(Device::cpu);
    synchronize(*second);
  });
  CHECK(*first == *second);
}

TEST_CASE("a thread's streams: default, local, by context") {
  Stream mine = default_stream(Device::cpu);
  CHECK(mine == default_stream(Device::cpu));
  ThreadLocalStream local = new_thread_local_stream(Device::cpu);
  Stream resolved = stream_from_thread_local_stream(local);
  CHECK(resolved == stream_from_thread_local_stream(local));
  CHECK(resolved != mine);
  on_threads(1, [&](int) {
    if (default_stream(Device::cpu) == mine) throw std::runtime_error("shared default stream");
    if (stream_from_thread_local_stream(local) == resolved)
      throw std::runtime_error("shared local stream");
  });
  Stream s = new_stream(Device::cpu);
  {
    StreamContext context(s);
    CHECK(default_stream(Device::cpu) == s);
    CHECK(to_stream({}) == s);
  }
  CHECK(default_stream(Device::cpu) == mine);
  give_back(s);
}

// --- served in turn: with one worker, so that it has to choose ---

namespace {

// A command that is counted as one that computes: unlike a host callback it does not wait, and no
// other thread is called for the queues that it keeps waiting.
array computing(Stream s, std::function<void()> function) {
  return make_op("computing", s, {}, {1},
                 [function](Encoder& encoder, const std::vector<array>&, auto& outputs) {
                   encoder.allocate(outputs[0]);
                   encoder.output(outputs[0]);
                   encoder.native("computing", 1, 1, [function](int64_t, int64_t) { function(); });
                 });
}

}  // namespace

TEST_CASE("child: a queue with many lists and one with few") {
  if (!is_child("child: a queue with many lists and one with few")) return;
  constexpr int many = 1000, few = 50;
  environment::settings_for_tests().max_ops_per_buffer = 1;
  Stream busy = new_stream(Device::cpu), modest = new_stream(Device::cpu);
  Gate gate(busy);
  std::atomic<int> done = 0;
  std::vector<int> done_before(few);
  std::vector<array> kept;
  for (int i = 0; i < many; ++i) {
    kept.push_back(computing(busy, [&] { ++done; }));
    async_eval(kept.back());
  }
  // Behind the gate as well: both become ready at about the same time.
  kept.front().event().wait(modest);
  for (size_t i = 0; i < few; ++i) {
    kept.push_back(computing(modest, [&, i] { done_before[i] = done.load(); }));
    async_eval(kept.back());
  }
  gate.open();
  // Not helping: the one worker decides.
  while (!kept.back().wait_for(10ms)) {
  }
  for (int i = 0; i < few; ++i) {
    CHECK(done_before[static_cast<size_t>(i)] >= i - 2);
    CHECK(done_before[static_cast<size_t>(i)] <= i + 20);
  }
  synchronize(busy);
  CHECK(done == many);
}

TEST_CASE("queues are served in turn") {
  ChildResult child =
      run_child("child: a queue with many lists and one with few", {"HOLDFAST_THREADS=1"});
  CHECK_MESSAGE(child.exit_code == 0, child.output);
}

// One worker is held by a gate, one sleeps, one was never started: two lists that need each other
// to run at the same time need the second and the third.
TEST_CASE("child: two lists at once") {
  if (!is_child("child: two lists at once")) return;
  Stream held = new_stream(Device::cpu), a = new_stream(Device::cpu), b = new_stream(Device::cpu);
  controlled::for_each_schedule(
      1,
      [&](const controlled::Schedule&) {
        Gate gate(held);
        gate.wait_until_reached();
        array warm = affine(counting(1), 1, 1, a);
        async_eval(warm);
        REQUIRE(eventually([&] { return warm.is_available(); }));
        sync::sleep_for(1ms);  // the second worker falls asleep
        Gate inner(a);
        array opener = with_callback(counting(1), [&] { inner.open(); }, b);
        async_eval(opener);
        CHECK(eventually([&] { return opener.is_available(); }));
      },
      1);
}

TEST_CASE("no worker stays asleep or unstarted while there is work for it") {
  for (int seed = 1; seed <= 12; ++seed) {
    ChildResult child =
        run_child("child: two lists at once",
                  {"HOLDFAST_THREADS=3", "HOLDFAST_SCHEDULE_SEED=" + std::to_string(seed)});
    CHECK_MESSAGE(child.exit_code == 0, child.output);
  }
}

// Those who wait for an earlier list leave when it is done; somebody must run what was submitted
// behind it.
TEST_CASE("work submitted behind a list that others wait for") {
  Stream s = new_stream(Device::cpu), other = new_stream(Device::cpu);
  controlled::for_each_schedule(
      400,
      [&](const controlled::Schedule& schedule) {
        INFO(controlled::describe());
        array x = affine(counting(count), 1, 1, s);
        async_eval(x);
        on_threads(3, [&](int index) {
          if (index < 2) {
            array mine = x;
            mine.wait();
            return;
          }
          array y = affine(counting(count), 1, 2, s);
          if (schedule.seed % 3 == 0) {
            async_eval(y);
            if (!eventually([&] { return y.is_available(); }))
              throw std::runtime_error("nobody runs it");
          } else if (values(affine(y, 1, 1, other))[0] != 3) {
            throw std::runtime_error("wrong value");
          }
        });
      },
      100);
  give_back(s);
  give_back(other);
}

TEST_CASE("work submitted behind a list that nobody had to wait for") {
  Stream s = new_stream(Device::cpu);
  controlled::for_each_schedule(
      20,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        // A list that retains something and runs nothing: its array is available at once.
        eval(make_op("BindsOnly", s, {counting(count)}, {count},
                     [](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                       out[0].copy_shared_buffer(in[0]);
                       encoder.input(in[0]);
                     }));
        array x = affine(counting(count), 1, 1, s);
        async_eval(x);
        CHECK(eventually([&] { return x.is_available(); }));
      },
      5);
  give_back(s);
}
