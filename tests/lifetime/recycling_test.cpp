// Storage that only a queue's own work still uses is recycled inside that queue before the work has
// completed; nobody else gets it before.

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <set>

#include <holdfast/holdfast.h>

#include "base/environment.h"
#include "support/gate.h"
#include "support/inspection.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// An odd size: nothing that other tests left in the cache is in its class.
constexpr int count = 48 * 1024 + 512;

// The address of an array that was dropped while a command that writes it is in flight.
const void* dropped_in_flight(Stream s) {
  array x = affine(counting(count), 1, 1, s);
  async_eval(x);
  return x.buffer().raw_ptr();
}

}  // namespace

TEST_CASE("a queue reuses what only its own work still uses, at once") {
  Stream s = new_stream(Device::cpu);
  clear_cache();
  {
    Gate gate(s);
    const void* address = dropped_in_flight(s);
    array y = affine(counting(count), 2, 0, s);
    async_eval(y);
    CHECK(y.buffer().raw_ptr() == address);
    gate.open();
    CHECK(values(y)[100] == 200);
  }
  exec::Runtime::get().give_back(queue_of(s));
}

TEST_CASE("the host does not get storage that a command in flight still writes") {
  Stream s = new_stream(Device::cpu);
  clear_cache();
  {
    Gate gate(s);
    const void* address = dropped_in_flight(s);
    allocator::Buffer buffer = allocator::malloc(count * sizeof(int32_t));
    CHECK(buffer.raw_ptr() != address);
    array x = counting(count);
    CHECK(x.buffer().raw_ptr() != address);
    gate.open();
    synchronize(s);
    allocator::free(buffer);
    CHECK(values(x)[100] == 100);
  }
  exec::Runtime::get().give_back(queue_of(s));
}

TEST_CASE("another queue does not get it either, until the work has run") {
  Stream s = new_stream(Device::cpu);
  Stream other = new_stream(Device::cpu);
  clear_cache();
  {
    Gate gate(s);
    array x = counting(count);
    const void* address = dropped_in_flight(s);
    {
      array y = affine(x, 2, 0, other);
      y.eval();
      CHECK(y.buffer().raw_ptr() != address);
      CHECK(values(y)[100] == 200);
    }
    clear_cache();
    gate.open();
    synchronize(s);
    get_active_memory();  // harvests
    array z = affine(x, 2, 0, other);
    z.eval();
    CHECK(z.buffer().raw_ptr() == address);
  }
  exec::Runtime::get().give_back(queue_of(s));
  exec::Runtime::get().give_back(queue_of(other));
}

TEST_CASE("storage that two queues use is given to neither") {
  Stream s = new_stream(Device::cpu);
  Stream other = new_stream(Device::cpu);
  clear_cache();
  {
    Gate gate(s);
    Gate other_gate(other);
    std::optional<array> x = counting(count);
    const void* address = x->buffer().raw_ptr();
    array a = affine(*x, 1, 1, s);
    array b = affine(*x, 1, 2, other);
    async_eval(a, b);
    x.reset();
    array c = affine(a, 1, 0, s);
    array d = affine(b, 1, 0, other);
    async_eval(c, d);
    array input = counting(1);
    CHECK(c.buffer().raw_ptr() != address);
    CHECK(d.buffer().raw_ptr() != address);
    gate.open();
    other_gate.open();
    CHECK(values(c)[100] == 101);
    CHECK(values(d)[100] == 102);
    // When both are done it is anybody's, and nobody has to look for it.
    Stream third = new_stream(Device::cpu);
    array e = make_op("Fills", third, {input}, {count},
                      [](Encoder& encoder, const auto&, std::vector<array>& out) {
                        encoder.allocate(out[0]);
                        int32_t seven = 7;
                        encoder.fill(out[0], &seven);
                      });
    e.eval();
    CHECK(e.buffer().raw_ptr() == address);
    exec::Runtime::get().give_back(queue_of(third));
  }
  exec::Runtime::get().give_back(queue_of(s));
  exec::Runtime::get().give_back(queue_of(other));
}

TEST_CASE("a chain lives in two storages, with reuse edges between its commands" *
          doctest::test_suite("no other layers")) {
  Stream s = new_stream(Device::cpu);
  {
    CommitRecorder recorder;
    array x = counting(count);
    for (int i = 0; i < 8; ++i) x = affine(x, 1, 1, s);
    x.eval();
    CHECK(values(x)[100] == 108);
    auto lists = recorder.lists(s);
    REQUIRE(lists.size() == 1);
    auto& commands = lists[0].commands;
    REQUIRE(commands.size() == 8);
    std::set<const exec::Storage*> written;
    bool has_reuse = false;
    for (size_t i = 0; i < commands.size(); ++i) {
      for (auto& binding : commands[i].bindings) {
        if (binding.writes) written.insert(binding.storage);
      }
      auto edge_to = [&](size_t predecessor, exec::Edge::Kind kind) {
        return std::any_of(commands[i].edges.begin(), commands[i].edges.end(),
                           [&](const exec::Edge& edge) {
                             return edge.predecessor == predecessor && edge.kind == kind;
                           });
      };
      // Each reads what the previous one wrote.
      if (i > 0) CHECK(edge_to(i - 1, exec::Edge::Kind::data));
      for (size_t j = 0; j < i; ++j) has_reuse |= edge_to(j, exec::Edge::Kind::reuse);
    }
    CHECK(written.size() <= 3);
    CHECK(has_reuse);
  }
  exec::Runtime::get().give_back(queue_of(s));
}

TEST_CASE("without recycling every result of a chain has storage of its own" *
          doctest::test_suite("no other layers")) {
  Stream s = new_stream(Device::cpu);
  environment::settings_for_tests().recycle = false;
  {
    LeakCheck leaks;
    {
      CommitRecorder recorder;
      Gate gate(s);
      array x = counting(count);
      for (int i = 0; i < 8; ++i) x = affine(x, 1, 1, s);
      async_eval(x);
      gate.open();
      CHECK(values(x)[100] == 108);
      std::set<const exec::Storage*> written;
      auto lists = recorder.lists(s);
      for (auto& command : lists.back().commands) {
        for (auto& binding : command.bindings) {
          if (binding.writes) written.insert(binding.storage);
        }
      }
      CHECK(written.size() == 8);
    }
    leaks.check();
  }
  environment::settings_for_tests().recycle = true;
  exec::Runtime::get().give_back(queue_of(s));
}

TEST_CASE("an array that another queue reads is not donated before that has run") {
  Stream s = new_stream(Device::cpu);
  Stream other = new_stream(Device::cpu);
  {
    Gate other_gate(other);
    std::optional<array> x = affine(counting(count), 1, 0, s);
    x->eval();
    const void* address = x->buffer().raw_ptr();
    array reader = affine(*x, 1, 5, other);
    async_eval(reader);
    array writer = affine_in_place(*x, 0, -1, s);
    x.reset();
    writer.eval();
    CHECK(writer.buffer().raw_ptr() != address);
    other_gate.open();
    CHECK(values(reader)[100] == 105);
  }
  exec::Runtime::get().give_back(queue_of(s));
  exec::Runtime::get().give_back(queue_of(other));
}

TEST_CASE("peak memory of a long chain in one list is that of three arrays") {
  Stream s = new_stream(Device::cpu);
  {
    array x = counting(count);
    synchronize(s);
    clear_cache();
    size_t before = get_active_memory();
    reset_peak_memory();
    for (int i = 0; i < 100; ++i) x = affine(x, 1, 1, s);
    x.eval();
    CHECK(get_peak_memory() - before <= 3 * (count * sizeof(int32_t)) * 17 / 16 + 4096);
  }
  exec::Runtime::get().give_back(queue_of(s));
}
