// Destructors of a thread's own objects evaluate, when what the library keeps for each thread has
// been destroyed already.
#include <doctest/doctest.h>

#include <functional>

#include <holdfast/holdfast.h>
#include <holdfast/label.h>

#include "support/inspection.h"
#include "support/test_ops.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

struct AtEnd {
  std::function<void()> run;
  ~AtEnd() {
    if (run) run();
  }
};

// `run` is called when the calling thread ends: after all that the thread has used since. Called
// before anything of the library.
void at_end_of_thread(std::function<void()> run) {
  static thread_local AtEnd at_end;
  at_end.run = std::move(run);
}

// Steps of two dtypes, so that the engine of the host needs memory for the values in between.
int32_t fused(int count, int32_t first) {
  const Stream s = default_stream(Device::cpu);
  array x = astype(counting(count, first), float32, s);
  array y = astype(floor(add(sqrt(multiply(x, x, s), s), array(0.5f), s), s), int32, s);
  return values(remainder(multiply(y, array(3), s), array(1000), s)).back();
}

}  // namespace

TEST_CASE("a thread that ends evaluates with memory of its own") {
  LeakCheck leaks;
  for (int round = 0; round < scaled(20, 10, 5); ++round) {
    int32_t before = 0, small = 0, large = 0;
    std::vector<int32_t> drawn;
    on_threads(1, [&](int) {
      at_end_of_thread([&] {
        label::Scope label("at the end");
        small = fused(60, 0);
        large = fused(5000, 0);
        drawn = values(random::randint(0, 10, {4}, int32));
      });
      label::Scope label("before");
      before = fused(100, 0);
      random::randint(0, 10, {4}, int32).eval();
    });
    CHECK(before == 99 * 3);
    CHECK(small == 59 * 3);
    CHECK(large == 4999 * 3 % 1000);
    CHECK(drawn.size() == 4);
  }
  leaks.check();
}
