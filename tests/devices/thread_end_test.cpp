// A thread that ends waits for its work on a GPU, and runs nothing itself: what it would run finds
// the thread's own objects destroyed.
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include <holdfast/holdfast.h>

#include "base/environment.h"
#include "base/machine.h"
#include "devices/gpu.h"
#include "support/inspection.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// Occupies a worker of the CPU until it is told to end.
struct Busy {
  sync::Atomic<bool> runs{false}, may_end{false};
  array command;

  Busy() : command(make_op("Busy", new_stream(holdfast::Device::cpu), {}, {1}, encode())) {
    async_eval(command);
  }
  ~Busy() { end(); }
  void end() {
    may_end.store(true);
    command.wait();
  }

 private:
  Encode encode() {
    return [this](Encoder& encoder, const auto&, std::vector<array>& out) {
      encoder.allocate(out[0]);
      encoder.output(out[0]);
      encoder.native("wait", 1, 1, [this](int64_t, int64_t) {
        runs.store(true);
        while (!may_end.load()) sync::sleep_for(std::chrono::microseconds(50));
      });
    };
  }
};

}  // namespace

TEST_CASE("a thread that ends with work on a gpu runs none of the cpu's") {
  install_gpu();
  const int set = environment::settings().threads;
  std::vector<std::unique_ptr<Busy>> busy;
  for (int i = 0; i < (set > 0 ? set : machine::threads()); ++i) {
    busy.push_back(std::make_unique<Busy>());
    REQUIRE(eventually([&] { return busy.back()->runs.load(); }));
  }
  // Ready, but no core is free.
  static thread_local bool is_ending_thread = false;
  sync::Atomic<int> ran_on_ending{0}, ran{0};
  array x = make_op("Where", new_stream(holdfast::Device::cpu), {}, {8},
                    [&](Encoder& encoder, const auto&, std::vector<array>& out) {
                      encoder.allocate(out[0]);
                      encoder.output(out[0]);
                      encoder.native("note", 8, 8,
                                     [&, to = out[0].data<int32_t>()](int64_t begin, int64_t end) {
                                       for (int64_t i = begin; i < end; ++i) to[i] = 5;
                                       ran.fetch_add(1);
                                       if (is_ending_thread) ran_on_ending.fetch_add(1);
                                     });
                    });
  async_eval(x);
  array y = x;
  sync::Atomic<bool> is_encoded{false};
  sync::Thread ends("ends", [&] {
    is_ending_thread = true;
    y = add(x, array(2), holdfast::Device::gpu);
    async_eval(y);
    is_encoded.store(true);
  });
  REQUIRE(eventually([&] { return is_encoded.load(); }));
  sync::sleep_for(std::chrono::milliseconds(20));  // it ends, and waits for its stream
  CHECK(ran.load() == 0);
  busy.clear();
  ends.join();
  CHECK(values(y) == std::vector<int32_t>(8, 7));
  CHECK(ran_on_ending.load() == 0);
}
