// Captures of programs that run under chaos: commands change places, ops stay whole.
#include <doctest/doctest.h>

#include <holdfast/holdfast.h>

#include "capture/file.h"
#include "exec/layers/chaos/chaos.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// An op of `commands` commands that depend on nothing.
array loose_op(const std::string& name, Stream s, int commands) {
  return make_op(name, s, {}, {16}, [=](Encoder& encoder, const auto&, std::vector<array>& out) {
    encoder.allocate(out[0]);
    int32_t zero = 0;
    for (int i = 0; i < commands; ++i) {
      array temporary(Shape{16}, int32, nullptr, {});
      encoder.allocate(temporary);
      encoder.fill(temporary, &zero);
    }
    encoder.fill(out[0], &zero);
  });
}

}  // namespace

TEST_CASE("chaos keeps the commands of a noted op together") {
  constexpr int ops = 12;
  bool was_shuffled = false;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    File file("together");
    record(file, [&] {
      exec::chaos::Scope chaos({seed, exec::chaos::order});
      Stream s = new_stream(Device::cpu);
      std::vector<array> kept;
      for (int i = 0; i < ops; ++i) kept.push_back(loose_op("Op" + std::to_string(i), s, i % 4));
      eval(kept);
    });
    Capture read(file.path);
    int found = 0;
    std::string last;
    for (const capture::List& list : read.lists) {
      for (const capture::Op& op : list.ops) {
        const std::string& name = list.commands[op.first_command].op;
        if (!name.starts_with("Op")) continue;
        CHECK(op.command_count == static_cast<uint32_t>(std::stoi(name.substr(2)) % 4 + 1));
        for (uint32_t i = 0; i < op.command_count; ++i)
          CHECK(list.commands[op.first_command + i].op == name);
        was_shuffled |= found++ != std::stoi(name.substr(2));
      }
    }
    CHECK(found == ops);
    CHECK(capture::replay(read).differences.empty());
  }
  CHECK(was_shuffled);
}
