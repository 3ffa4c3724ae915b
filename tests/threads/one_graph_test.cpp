// Several threads evaluate one graph: each node runs once, nobody waits for ever, everyone gets the
// right value.

#include <doctest/doctest.h>

#include <atomic>

#include <holdfast/holdfast.h>

#include "support/inspection.h"
#include "support/test_ops.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr int count = 8;
constexpr int native_repetitions = 20;

array counted(const array& x, std::atomic<int>& executions, Stream s) {
  return with_callback(x, [&] { ++executions; }, s);
}

}  // namespace

TEST_CASE("two threads that evaluate one array run it once") {
  controlled::for_each_schedule(
      300,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        LeakCheck leaks;
        {
          std::atomic<int> executions = 0;
          Stream s = default_stream(Device::cpu);
          array x = counted(counted(counting(count), executions, s), executions, s);
          on_threads(2, [&](int) {
            array mine = x;
            if (values(mine)[1] != 3) throw std::runtime_error("wrong value");
          });
          CHECK(executions == 2);
        }
        leaks.check();
      },
      native_repetitions);
}

TEST_CASE("two graphs that overlap in any way") {
  controlled::for_each_schedule(
      400,
      [&](const controlled::Schedule& schedule) {
        INFO(controlled::describe());
        LeakCheck leaks;
        {
          // A random graph: each node has one or two earlier ones as inputs; some can be fused,
          // some have siblings, some are counted.
          Random random(schedule.seed);
          Stream streams[2] = {default_stream(Device::cpu), new_stream(Device::cpu)};
          std::vector<array> nodes{counting(count), counting(count, 1)};
          std::vector<int32_t> expected{2, 3};  // element 2
          std::vector<std::unique_ptr<std::atomic<int>>> executions;
          for (int i = 0; i < 10; ++i) {
            size_t a = random.below(static_cast<uint32_t>(nodes.size()));
            size_t b = random.below(static_cast<uint32_t>(nodes.size()));
            Stream s = streams[random.below(4) == 0];
            switch (random.below(4)) {
              case 0:
                executions.push_back(std::make_unique<std::atomic<int>>(0));
                nodes.push_back(counted(nodes[a], *executions.back(), s));
                expected.push_back(expected[a] + 1);
                break;
              case 1: {
                std::vector<array> sums = three_sums(nodes[a], s);
                nodes.push_back(sums[0]);
                expected.push_back(expected[a] + 1);
                nodes.push_back(sums[2]);
                expected.push_back(expected[a] + 3);
                break;
              }
              default:
                nodes.push_back(add(nodes[a], nodes[b], s));
                expected.push_back(expected[a] + expected[b]);
            }
          }
          on_threads(2, [&](int index) {
            Random mine(schedule.seed * 2 + static_cast<uint64_t>(index));
            for (int i = 0; i < 5; ++i) {
              size_t node = mine.below(static_cast<uint32_t>(nodes.size()));
              array held = nodes[node];
              if (values(held)[2] != expected[node]) throw std::runtime_error("wrong value");
            }
          });
          for (size_t i = 0; i < nodes.size(); ++i) CHECK(values(nodes[i])[2] == expected[i]);
          for (auto& executed : executions) CHECK(*executed == 1);
          nodes.clear();
          exec::Runtime::get().give_back(queue_of(streams[1]));
        }
        leaks.check();
      },
      native_repetitions * 5);
}

TEST_CASE("siblings evaluated by several threads run once") {
  controlled::for_each_schedule(
      300,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        LeakCheck leaks;
        {
          std::atomic<int> executions = 0;
          Stream s = default_stream(Device::cpu);
          std::vector<array> sums = three_sums(counted(counting(count), executions, s), s);
          on_threads(3, [&](int index) {
            array mine = sums[static_cast<size_t>(index)];
            if (values(mine)[1] != 3 + index) throw std::runtime_error("wrong value");
          });
          CHECK(executions == 1);
        }
        leaks.check();
      },
      native_repetitions);
}

TEST_CASE("siblings of an op that throws for one thread can be evaluated by the others") {
  controlled::for_each_schedule(
      500,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        LeakCheck leaks;
        {
          Stream s = default_stream(Device::cpu);
          auto failures = std::make_shared<std::atomic<int>>(2);
          std::vector<array> outputs = make_multi_op(
              "SometimesThrows", s, {counting(count)}, {count}, 2,
              [failures](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                for (array& target : out) {
                  encoder.allocate(target);
                  encoder.input(in[0]);
                  encoder.output(target);
                  add_affine(encoder, in[0].data<int32_t>(), target.data<int32_t>(), count, 1, 1);
                }
                if (failures->fetch_sub(1) > 0) throw std::runtime_error("not yet");
              });
          std::atomic<int> thrown = 0;
          on_threads(3, [&](int index) {
            array mine = outputs[static_cast<size_t>(index % 2)];
            while (true) {
              try {
                if (values(mine)[1] != 2) throw std::logic_error("wrong value");
                return;
              } catch (const std::runtime_error& error) {
                if (std::string(error.what()) != "[SometimesThrows] not yet") throw;
                ++thrown;
              }
            }
          });
          CHECK(thrown == 2);
        }
        leaks.check();
      },
      native_repetitions);
}

TEST_CASE("a graph whose op throws can be evaluated by whoever tries again") {
  controlled::for_each_schedule(
      300,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        LeakCheck leaks;
        {
          Stream s = default_stream(Device::cpu);
          auto failures = std::make_shared<int>(2);
          array x = throwing_half_way(add(counting(count), array(1), s), failures, s);
          array y = add(x, array(1), s);
          array z = affine(x, 1, 2, s);
          on_threads(2, [&](int index) {
            array mine = index == 0 ? y : z;
            while (true) {
              try {
                if (values(mine)[1] != 7 + index) throw std::logic_error("wrong value");
                return;
              } catch (const std::runtime_error& error) {
                if (std::string(error.what()) != "[ThrowingHalfWay] half-way") throw;
              }
            }
          });
          CHECK(*failures == 0);
        }
        leaks.check();
      },
      native_repetitions);
}

TEST_CASE("a failure on the device is thrown to everyone who waits") {
  controlled::for_each_schedule(
      200,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        Stream s = default_stream(Device::cpu);
        array x = failing_on_device(counting(count), s);
        array y = add(x, array(1), s);
        std::atomic<int> told = 0;
        on_threads(3, [&](int index) {
          array mine = index == 0 ? x : y;
          for (int i = 0; i < 2; ++i) {
            try {
              mine.eval();
            } catch (const ExecutionError& error) {
              told += std::string(error.what()) == "[FailingOnDevice] no luck";
            }
          }
        });
        CHECK(told == 6);
        CHECK_NOTHROW(synchronize(s));
      },
      native_repetitions);
}

TEST_CASE("an intermediate result that somebody holds is computed with the group") {
  Stream s = default_stream(Device::cpu);
  array x = counting(count);
  array held = add(x, array(1), s);
  array out = multiply(held, array(2), s);
  out.eval();
  CHECK(held.status() != array::unscheduled);
  CHECK(values(held)[1] == 2);
}

// An op that throws takes back its commands, whatever another thread encodes on the stream then:
// every edge of a list points to an earlier command of it.
TEST_CASE("the edges of a list after an op was taken back") {
  Stream s = new_stream(Device::cpu);
  controlled::for_each_schedule(
      300,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        CommitRecorder recorder;
        array shared = affine(counting(count), 1, 0, s);
        shared.eval();
        on_threads(2, [&](int index) {
          if (index == 0) {
            array thrown = throwing_half_way(shared, std::make_shared<int>(1), s);
            try {
              async_eval(thrown);
            } catch (const std::runtime_error&) {
            }
          } else {
            for (int i = 0; i < 3; ++i) {
              array x = affine_in_place(affine(shared, 1, 1, s), 1, 1, s);
              if (values(x)[1] != 3) throw std::runtime_error("wrong value");
            }
          }
        });
        for (auto& list : recorder.lists(s)) {
          for (size_t i = 0; i < list.commands.size(); ++i) {
            for (const exec::Edge& edge : list.commands[i].edges) CHECK(edge.predecessor < i);
          }
        }
      },
      20);
  exec::Runtime::get().give_back(queue_of(s));
}
