// Several threads evaluate one graph while encoding fails for one of them.

#include <doctest/doctest.h>

#include <holdfast/holdfast.h>

#include "base/fault.h"
#include "support/inspection.h"
#include "support/test_ops.h"
#include "support/threads.h"

#if HOLDFAST_CHECKS

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr int count = 8;

}  // namespace

// The thread that fails gives up a whole group of fused nodes; the other one has not looked at the
// group's inner nodes when it ordered the graph.
TEST_CASE("a fused group that one thread gives up is encoded by the other") {
  Stream s = default_stream(Device::cpu);
  controlled::for_each_schedule(
      1000,
      [&](const controlled::Schedule& schedule) {
        INFO(controlled::describe());
        LeakCheck leaks;
        {
          array x = counting(count);
          array a = add(x, array(1), s);
          array b = multiply(a, array(2), s);
          array c = subtract(b, x, s);
          array d = affine(c, 1, 1, s);
          a = x;
          b = x;
          fault::arm(fault::Point::allocation, 1 + schedule.seed % 4);
          on_threads(2, [&](int index) {
            array mine = index == 0 ? c : d;
            if (values(mine)[3] != 5 + index) throw std::runtime_error("wrong value");
          });
          fault::disarm();
        }
        leaks.check();
      },
      20);
}

// The same with errors that reach the caller: whoever is told tries again.
TEST_CASE("threads that share a graph and run out of memory now and then") {
  Stream s = default_stream(Device::cpu);
  controlled::for_each_schedule(
      300,
      [&](const controlled::Schedule& schedule) {
        INFO(controlled::describe());
        LeakCheck leaks;
        {
          array x = counting(count);
          std::vector<array> sums = three_sums(add(multiply(x, x, s), x, s), s);
          array total = add(add(sums[0], sums[1], s), sums[2], s);
          fault::arm(fault::Point::allocation, 1 + schedule.seed % 6, true);
          on_threads(3, [&](int index) {
            array mine = index == 0 ? total : sums[static_cast<size_t>(index)];
            int32_t expected = index == 0 ? 42 : 13 + index;
            for (int attempt = 0;; ++attempt) {
              try {
                if (values(mine)[3] != expected) throw std::logic_error("wrong value");
                return;
              } catch (const OutOfMemory& error) {
                if (!std::string(error.what()).starts_with("[")) throw;
                if (attempt == 2) fault::disarm();
              }
            }
          });
          fault::disarm();
        }
        leaks.check();
      },
      20);
}

#endif
