// The system has no thread to give: the work is done by those who wait for it.

#include <doctest/doctest.h>

#include <cstdlib>

#include <holdfast/holdfast.h>

#include "base/fault.h"
#include "faults/workloads.h"
#include "support/child.h"
#include "support/inspection.h"
#include "support/test_ops.h"
#include "support/threads.h"

#if HOLDFAST_CHECKS

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// A chain over many streams, each of which waits for the one before.
array chain_over_streams(int length) {
  array x = counting(8);
  for (int i = 0; i < length; ++i) x = affine(x, 1, 1, new_stream(Device::cpu));
  return x;
}

}  // namespace

// HOLDFAST_TEST_FAULT: the start that fails, and whether those after it do too.
TEST_CASE("child: a worker does not start") {
  if (!is_child("child: a worker does not start")) return;
  const char* text = std::getenv("HOLDFAST_TEST_FAULT");
  REQUIRE(text);
  uint64_t k = std::strtoull(text, nullptr, 10);
  bool persistent = std::string(text).ends_with("+");
  fault::arm(fault::Point::thread_start, k, persistent);
  LeakCheck leaks;
  {
    for (const Workload& workload : workloads()) {
      auto outputs = workload.build();
      for (const auto& output : outputs) async_eval(output.value);
      CHECK(mismatch(outputs) == "");
    }
    CHECK(values(chain_over_streams(12))[0] == 12);
    CHECK(values(chain_over_streams(50))[0] == 50);
    array polled = affine(counting(8), 1, 1, new_stream(Device::cpu));
    async_eval(polled);
    CHECK(polled.wait_for(std::chrono::minutes(1)));
    // Large enough for helpers.
    array large = add(full({1 << 20}, 1), array(1));
    CHECK(sum(large).item<int32_t>() == 2 << 20);
    on_threads(4, [&](int index) {
      array x = affine(affine(counting(8), 1, index, default_stream(Device::cpu)), 1, 1,
                       default_stream(Device::cpu));
      async_eval(x);
      if (values(x)[0] != index + 1) throw std::runtime_error("wrong value");
    });
    // One thread runs a list of a stream and leaves; another one waits, through a second stream,
    // for the list behind it.
    Stream first = new_stream(Device::cpu), second = new_stream(Device::cpu);
    controlled::for_each_schedule(
        200,
        [&](const controlled::Schedule&) {
          array x = affine(counting(8), 1, 1, first);
          async_eval(x);
          on_threads(2, [&](int index) {
            if (index == 0) {
              array mine = x;
              mine.wait();
            } else if (values(affine(affine(counting(8), 1, 1, first), 1, 1, second))[0] != 2) {
              throw std::runtime_error("wrong value");
            }
          });
        },
        100);
  }
  leaks.check();
  report(fault::visits(fault::Point::thread_start) >= k ? "hit" : "not hit");
}

TEST_CASE("without workers everything is computed all the same") {
  for (const char* persistent : {"", "+"}) {
    for (int k = 1;; ++k) {
      REQUIRE(k < 100);
      INFO("k = ", k, persistent);
      ChildResult child = run_child(
          "child: a worker does not start",
          {"HOLDFAST_THREADS=3", "HOLDFAST_TEST_FAULT=" + std::to_string(k) + persistent});
      CHECK_MESSAGE(child.exit_code == 0, child.output);
      if (reported(child) != "hit\n") break;
    }
  }
}

#endif
