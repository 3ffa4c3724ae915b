#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include <holdfast/holdfast.h>

#include "exec/layers/layer.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// Which commands ran, and which of them count as waiting.
struct WaitingCommands : exec::Layer {
  void on_commit(exec::CommandList& list) override {
    for (const exec::Command& command : list.commands) {
      seen.emplace_back(command.detail, command.may_wait);
    }
  }
  std::vector<std::pair<std::string, bool>> seen;
};

std::vector<std::pair<std::string, bool>> commands_of(std::vector<array> outputs) {
  auto layer = std::make_shared<WaitingCommands>();
  exec::layers::add(layer);
  eval(std::move(outputs));
  exec::layers::remove(layer.get());
  return layer->seen;
}

}  // namespace

TEST_CASE("encoder: host callbacks may wait, commands that state no work do not") {
  Stream s = new_stream(Device::cpu);
  array none = make_op(
      "test", s, {}, {1}, [](Encoder& encoder, const std::vector<array>&, std::vector<array>& out) {
        encoder.allocate(out[0]);
        const Bound to = encoder.output(out[0]);
        encoder.native("native", 1, 0, [to](const NativeContext& context, int64_t, int64_t) {
          *context.data<int32_t>(to) = 0;
        });
        encoder.host_callback("callback", [] {});
        const Bound again = encoder.output(out[0]);
        encoder.host_callback("with context", [again](const NativeContext& context) {
          *context.data<int32_t>(again) += 7;
        });
      });
  CHECK(commands_of({none}) == std::vector<std::pair<std::string, bool>>{
                                   {"native", false}, {"callback", true}, {"with context", true}});
  CHECK(none.item<int32_t>() == 7);
}

TEST_CASE("encoder: a sum of nothing is no host callback") {
  Stream s = new_stream(Device::cpu);
  array total = sum(array({}, float32), s);
  auto commands = commands_of({total});
  REQUIRE(!commands.empty());
  for (const auto& [name, waits] : commands) CHECK_MESSAGE(!waits, name);
  CHECK(total.item<float>() == 0.0f);
}
