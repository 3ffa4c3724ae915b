// Many threads build, share, evaluate and drop arrays at the same time.

#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include <holdfast/holdfast.h>

#include "support/inspection.h"
#include "support/test_ops.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr int count = 24;

// An array all of whose elements are to be `expected`.
struct Known {
  array value;
  int32_t expected;
};

Known constant(int32_t value) {
  std::vector<int32_t> elements(count, value);
  return {array(elements.begin(), Shape{count}, int32), value};
}

void verify(Known known) {
  for (int32_t element : values(known.value)) {
    if (element != known.expected) {
      throw std::runtime_error("expected " + std::to_string(known.expected) + ", got " +
                               std::to_string(element));
    }
  }
}

// Arrays that the threads exchange.
class Exchange {
 public:
  explicit Exchange(size_t size) {
    for (size_t i = 0; i < size; ++i) places_.push_back(constant(static_cast<int32_t>(i)));
  }
  Known look(uint32_t place) {
    std::lock_guard guard(mutex_);
    return places_[place];
  }
  void put(uint32_t place, Known known) {
    std::unique_lock lock(mutex_);
    std::swap(places_[place], known);
    lock.unlock();  // the old one ends outside
  }
  uint32_t size() const { return static_cast<uint32_t>(places_.size()); }

 private:
  sync::Mutex mutex_;
  std::vector<Known> places_;
};

// A new array from known ones, by an op of some kind.
Known grow(Random& random, const Known& a, const Known& b, Stream s) {
  // Keep the numbers small: they are made anew now and then.
  if (a.expected > 1000000 || b.expected > 1000000) {
    return constant(static_cast<int32_t>(random.below(10)));
  }
  switch (random.below(9)) {
    case 0:
      return {affine(a.value, 1, 3, s), a.expected + 3};
    case 1:
      return {affine_in_place(affine(a.value, 1, 1, s), 1, 1, s), a.expected + 2};
    case 2:
      return {through_temporary(a.value, s), 2 * a.expected + 1};
    case 3:
      return {three_sums(a.value, s)[1], a.expected + 2};
    case 4:
      return {add_arrays(a.value, b.value, s), a.expected + b.expected};
    case 5:
      return {add(multiply(a.value, array(2), s), b.value, s), 2 * a.expected + b.expected};
    case 6:
      return {maximum(a.value, subtract(b.value, array(1), s), s),
              std::max(a.expected, b.expected - 1)};
    case 7:
      return {reshape(reshape(a.value, {2, count / 2}, s), {count}, s), a.expected};
    default:
      return constant(static_cast<int32_t>(random.below(100)));
  }
}

}  // namespace

TEST_CASE("64 threads build, share, evaluate and drop") {
  int threads = scaled(64, 64, 6);
  int iterations = scaled(256, 256, 12);
  Stream shared = new_stream(Device::cpu);
  controlled::for_each_schedule(
      20,
      [&](const controlled::Schedule& schedule) {
        INFO(controlled::describe());
        LeakCheck leaks;
        {
          Exchange exchange(16);
          on_threads(threads, [&](int index) {
            Random random(schedule.seed * 1000 + static_cast<uint64_t>(index));
            for (int i = 0; i < iterations; ++i) {
              Stream s = random.below(3) == 0 ? shared : default_stream(Device::cpu);
              Known grown = grow(random, exchange.look(random.below(exchange.size())),
                                 exchange.look(random.below(exchange.size())), s);
              switch (random.below(4)) {
                case 0:
                  verify(grown);
                  break;
                case 1:
                  async_eval(grown.value);
                  break;
                case 2:
                  verify(exchange.look(random.below(exchange.size())));
                  break;
                default:
                  break;
              }
              if (random.below(2) == 0) exchange.put(random.below(exchange.size()), grown);
            }
          });
          for (uint32_t place = 0; place < exchange.size(); ++place) verify(exchange.look(place));
        }
        leaks.check();
      },
      1);
  exec::Runtime::get().give_back(queue_of(shared));
}

TEST_CASE("an exception on one thread leaves the others alone") {
  int threads = scaled(16, 16, 4);
  int iterations = scaled(200, 100, 6);
  Stream shared = new_stream(Device::cpu);
  controlled::for_each_schedule(
      20,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        LeakCheck leaks;
        on_threads(threads, [&](int index) {
          for (int i = 0; i < iterations; ++i) {
            Stream s = i % 2 == 0 ? shared : default_stream(Device::cpu);
            array x = affine(counting(count), 2, index, s);
            if (index % 4 == 0) {
              bool threw = false;
              try {
                failing_on_device(x, s, "thread " + std::to_string(index)).eval();
              } catch (const ExecutionError& error) {
                threw = std::string(error.what()) ==
                        "[FailingOnDevice] thread " + std::to_string(index);
              }
              if (!threw) throw std::runtime_error("the error is lost or another thread's");
            } else if (index % 4 == 1) {
              bool threw = false;
              try {
                throwing_half_way(x, std::make_shared<int>(1), s).eval();
              } catch (const std::runtime_error& error) {
                threw = std::string(error.what()) == "[ThrowingHalfWay] half-way";
              }
              if (!threw) throw std::runtime_error("the error is lost or another thread's");
            }
            if (values(x)[3] != 6 + index) throw std::runtime_error("wrong value");
          }
        });
        leaks.check();
      },
      1);
  // Everyone was told of their errors: nothing is left to throw.
  CHECK_NOTHROW(synchronize(shared));
  exec::Runtime::get().give_back(queue_of(shared));
}

TEST_CASE("printing while others evaluate") {
  controlled::for_each_schedule(
      60,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        Stream s = default_stream(Device::cpu);
        array x = add(affine(counting(4), 2, 1, s), array(1), s);
        on_threads(3, [&](int index) {
          array mine = x;
          if (index == 0) {
            if (values(mine)[2] != 6) throw std::runtime_error("wrong value");
          } else {
            std::ostringstream text;
            text << mine;
            if (text.str().find("2, 4, 6, 8") == std::string::npos)
              throw std::runtime_error("printed " + text.str());
          }
        });
      },
      20);
}
