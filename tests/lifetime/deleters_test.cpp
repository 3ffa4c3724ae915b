// A user's deleter runs exactly once, after the last command list that uses the memory, and under
// no lock: it may evaluate, wait and drop arrays itself.

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include <holdfast/holdfast.h>

#include "base/fault.h"
#include "support/gate.h"
#include "support/inspection.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr int count = 40;

// A user's memory and how often it was given back.
struct Memory {
  std::vector<int32_t> elements = std::vector<int32_t>(count, 5);
  std::shared_ptr<std::atomic<int>> deletions = std::make_shared<std::atomic<int>>(0);
  std::function<void(void*)> deleter() {
    return [counter = deletions, expected = elements.data()](void* pointer) {
      CHECK(pointer == expected);
      ++*counter;
    };
  }
};

std::vector<int32_t> all(int32_t value) { return std::vector<int32_t>(count, value); }

}  // namespace

TEST_CASE("adopted memory is given back once, when its array and the last list are done") {
  Stream s = default_stream(Device::cpu);
  controlled::for_each_schedule(30, [&](const controlled::Schedule&) {
    INFO(controlled::describe());
    LeakCheck leaks;
    Memory memory;
    {
      Gate gate(s);
      std::optional<array> x(std::in_place, memory.elements.data(), Shape{count}, int32,
                             memory.deleter());
      array y = affine(*x, 2, 1, s);
      async_eval(y);
      x.reset();
      CHECK(*memory.deletions == 0);
      gate.open();
      CHECK(values(y) == all(11));
      CHECK(eventually([&] { return *memory.deletions == 1; }));
    }
    leaks.check();
    CHECK(*memory.deletions == 1);
  });
}

TEST_CASE("adopted memory that no list uses is given back with its last array") {
  Memory memory;
  {
    array x(memory.elements.data(), Shape{count}, int32, memory.deleter());
    array view = slice(x, {1}, {3});
    view.eval();
    x = counting(1);
    CHECK(*memory.deletions == 0);
    CHECK(values(view) == std::vector<int32_t>{5, 5});
  }
  CHECK(*memory.deletions == 1);
}

TEST_CASE("adopted memory is never recycled and never written by donation") {
  Stream s = default_stream(Device::cpu);
  Memory memory;
  {
    std::optional<array> x(std::in_place, memory.elements.data(), Shape{count}, int32,
                           memory.deleter());
    array y = affine_in_place(*x, 2, 1, s);
    x.reset();
    y.eval();
    CHECK(y.data<int32_t>() != memory.elements.data());
    CHECK(values(y) == all(11));
  }
  CHECK(eventually([&] { return *memory.deletions == 1; }));
  CHECK(memory.elements == all(5));
}

TEST_CASE("a null deleter leaves the memory to its owner") {
  LeakCheck leaks;
  Memory memory;
  {
    array x(memory.elements.data(), Shape{count}, int32, nullptr);
    CHECK(values(affine(x, 1, 1, default_stream(Device::cpu))) == all(6));
  }
  leaks.check();
}

TEST_CASE("the deleter of a buffer waits for the lists, and owns the buffer") {
  Stream s = default_stream(Device::cpu);
  controlled::for_each_schedule(30, [&](const controlled::Schedule&) {
    INFO(controlled::describe());
    LeakCheck leaks;
    std::atomic<int> deletions = 0;
    {
      Gate gate(s);
      allocator::Buffer buffer = allocator::malloc(count * sizeof(int32_t));
      std::fill_n(static_cast<int32_t*>(buffer.raw_ptr()), count, 3);
      std::optional<array> x(std::in_place, buffer, Shape{count}, int32,
                             [&](allocator::Buffer given) {
                               CHECK(static_cast<int32_t*>(given.raw_ptr())[7] == 3);
                               ++deletions;
                               allocator::free(given);
                             });
      array y = affine(*x, 1, 1, s);
      async_eval(y);
      x.reset();
      CHECK(deletions == 0);
      gate.open();
      CHECK(values(y) == all(4));
      CHECK(eventually([&] { return deletions == 1; }));
    }
    leaks.check();
  });
}

TEST_CASE("an output with a deleter of its own") {
  Stream s = default_stream(Device::cpu);
  LeakCheck leaks;
  std::atomic<int> deletions = 0;
  {
    Gate gate(s);
    array x = counting(count);
    std::optional<array> y =
        make_op("OwnMemory", s, {x}, {count},
                [&](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                  out[0].set_data(encoder.allocate(out[0].nbytes()), [&](allocator::Buffer given) {
                    ++deletions;
                    allocator::free(given);
                  });
                  encoder.input(in[0]);
                  encoder.output(out[0]);
                  add_affine(encoder, in[0].data<int32_t>(), out[0].data<int32_t>(), count, 1, 0);
                });
    async_eval(*y);
    y.reset();
    CHECK(deletions == 0);
    gate.open();
    synchronize(s);
    CHECK(eventually([&] { return deletions == 1; }));
  }
  leaks.check();
}

TEST_CASE("a deleter may evaluate on the stream whose list it waited for") {
  Stream s = default_stream(Device::cpu);
  controlled::for_each_schedule(40, [&](const controlled::Schedule&) {
    INFO(controlled::describe());
    LeakCheck leaks;
    std::vector<int32_t> seen;
    std::atomic<bool> is_seen = false;
    std::vector<int32_t> elements(count, 5);
    {
      std::optional<array> x(std::in_place, elements.data(), Shape{count}, int32, [&](void*) {
        seen = values(affine(counting(3), 2, 0, s));
        is_seen = true;
      });
      array y = affine(*x, 2, 1, s);
      x.reset();
      CHECK(values(y) == all(11));
    }
    REQUIRE(eventually([&] { return is_seen.load(); }));
    CHECK(seen == std::vector<int32_t>{0, 2, 4});
    leaks.check();
  });
}

TEST_CASE("a deleter may evaluate on another stream and drop arrays") {
  Stream s = default_stream(Device::cpu);
  Stream other = new_stream(Device::cpu);
  controlled::for_each_schedule(20, [&](const controlled::Schedule&) {
    INFO(controlled::describe());
    LeakCheck leaks;
    std::vector<int32_t> seen;
    std::atomic<bool> is_seen = false;
    std::vector<int32_t> elements(count, 5);
    std::optional<array> dropped = counting(count);
    {
      Gate gate(s);
      std::optional<array> x(std::in_place, elements.data(), Shape{count}, int32, [&](void*) {
        seen = values(affine(counting(3), 2, 0, other));
        dropped.reset();
        is_seen = true;
      });
      array y = affine(*x, 2, 1, s);
      array z = affine(*dropped, 2, 1, s);
      async_eval(y, z);
      x.reset();
      gate.open();
      CHECK(values(y) == all(11));
    }
    REQUIRE(eventually([&] { return is_seen.load(); }));
    CHECK(seen == std::vector<int32_t>{0, 2, 4});
    leaks.check();
  });
  exec::Runtime::get().give_back(queue_of(other));
}

TEST_CASE("a deleter that throws harms nobody") {
  Stream s = default_stream(Device::cpu);
  LeakCheck leaks;
  std::vector<int32_t> elements(count, 5);
  {
    std::optional<array> x(std::in_place, elements.data(), Shape{count}, int32,
                           [](void*) { throw std::runtime_error("from a deleter"); });
    array y = affine(*x, 2, 1, s);
    x.reset();
    CHECK(values(y) == all(11));
  }
  leaks.check();
  CHECK_NOTHROW(synchronize(s));
}

// What an op's closures own is given back when its list completes; and when the op throws, under no
// lock either: the deleter here encodes on the very queue.
TEST_CASE("arrays owned by the closures of an op that throws") {
  Stream s = default_stream(Device::cpu);
  LeakCheck leaks;
  std::vector<int32_t> seen;
  std::atomic<bool> is_seen = false;
  std::vector<int32_t> elements(count, 5);
  {
    std::optional<array> owned(std::in_place, elements.data(), Shape{count}, int32, [&](void*) {
      seen = values(affine(counting(3), 2, 0, s));
      is_seen = true;
    });
    array y = make_op("Throws", s, {counting(1)}, {1},
                      [&](Encoder& encoder, const auto&, std::vector<array>& out) {
                        encoder.allocate(out[0]);
                        encoder.output(out[0]);
                        encoder.host_callback("never", [kept = std::move(*owned)] {});
                        owned.reset();
                        throw std::runtime_error("after all");
                      });
    CHECK_THROWS_WITH(y.eval(), "[Throws] after all");
    REQUIRE(eventually([&] { return is_seen.load(); }));
    CHECK(seen == std::vector<int32_t>{0, 2, 4});
  }
  leaks.check();
}

#if HOLDFAST_CHECKS
TEST_CASE("without retaining a deleter runs too early, and the device says so") {
  Stream s = default_stream(Device::cpu);
  for (int repetition = 0; repetition < 3; ++repetition) {
    WithoutRetaining ablation(s);
    Memory memory;
    Gate gate(s);
    std::optional<array> x(std::in_place, memory.elements.data(), Shape{count}, int32,
                           memory.deleter());
    array y = affine(*x, 2, 1, s);
    async_eval(y);
    x.reset();
    CHECK(*memory.deletions == 1);
    gate.open();
    CHECK_THROWS_AS(y.wait(), ExecutionError);
  }
}
#endif
