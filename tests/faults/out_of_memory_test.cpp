// The memory limit: OutOfMemory names the op and says where the memory is; nothing is lost, and
// freeing something helps.

#include <doctest/doctest.h>

#include <optional>

#include <holdfast/holdfast.h>

#include "support/device.h"
#include "support/gate.h"
#include "support/inspection.h"
#include "support/test_ops.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr int count = 64 * 1024;  // 256 KiB an array
constexpr size_t bytes = count * sizeof(int32_t);

// A limit of `arrays` arrays above what is active now.
class Limit {
 public:
  explicit Limit(size_t arrays) {
    exec::Runtime::get().drain();
    clear_cache();
    base_ = get_active_memory();
    previous_ = set_memory_limit(base_ + arrays * bytes + bytes / 2);
  }
  ~Limit() { set_memory_limit(previous_); }
  size_t base() const { return base_; }

 private:
  size_t base_, previous_;
};

}  // namespace

TEST_CASE_FIXTURE(OnCpu, "beyond the limit: an error with the op's name and a breakdown") {
  LeakCheck leaks;
  {
    Stream s = default_stream(Device::cpu);
    Limit limit(3);
    std::optional<array> x = counting(count);
    std::optional<array> y = affine(*x, 1, 1, s);
    y->eval();
    array z = affine(*y, 1, 1, s);
    array out = affine(z, 1, 1, s);
    std::string message;
    try {
      out.eval();
    } catch (const OutOfMemory& error) {
      message = error.what();
    }
    CHECK(message.starts_with("[Affine] cannot allocate " + std::to_string(bytes) + " bytes"));
    for (const char* part : {"active memory", "cache", "limit"}) {
      CHECK_MESSAGE(message.find(part) != std::string::npos, message);
    }
    // Twice the same, and the graph stays usable.
    CHECK_THROWS_AS(out.eval(), OutOfMemory);
    CHECK(values(z)[1] == 3);
    x.reset();
    CHECK(values(out)[1] == 4);
  }
  leaks.check();
}

TEST_CASE("memory that work in flight holds is waited for") {
  LeakCheck leaks;
  {
    Stream s = default_stream(Device::cpu), other = new_stream(Device::cpu);
    Limit limit(3);
    auto large = [](Stream stream) {
      return make_op("Large", stream, {}, {2 * count},
                     [](Encoder& encoder, const auto&, std::vector<array>& out) {
                       encoder.allocate(out[0]);
                       int32_t three = 3;
                       encoder.fill(out[0], &three);
                     });
    };
    {
      Gate gate(s);
      async_eval(large(s));  // dropped; its memory is the queue's until it has run
      sync::Thread opener("opener", [&] {
        sync::sleep_for(std::chrono::milliseconds(5));
        gate.open();
      });
      CHECK(values(large(other))[5] == 3);
      opener.join();
    }
    exec::Runtime::get().give_back(queue_of(other));
  }
  leaks.check();
}

TEST_CASE_FIXTURE(OnCpu, "array constructors and malloc keep the limit") {
  Limit limit(1);
  array x = counting(count);
  CHECK_THROWS_AS(counting(count), OutOfMemory);
  CHECK_THROWS_AS(allocator::malloc(bytes), OutOfMemory);
  CHECK_THROWS_AS(allocator::malloc(size_t{1} << 62), OutOfMemory);
  x = counting(1);
  CHECK_NOTHROW(allocator::free(allocator::malloc(bytes)));
}

TEST_CASE_FIXTURE(OnCpu, "a fused group that does not fit") {
  Stream s = default_stream(Device::cpu);
  LeakCheck leaks;
  {
    Limit limit(2);
    std::optional<array> x = counting(count);
    std::optional<array> y = counting(count);
    array z = add(multiply(*x, array(2), s), *y, s);
    CHECK_THROWS_AS(z.eval(), OutOfMemory);
    y.reset();
    CHECK(values(z)[3] == 9);  // into the memory of y
  }
  leaks.check();
}

TEST_CASE_FIXTURE(
    OnCpu, "threads under a limit: each gets its values or OutOfMemory, and the limit holds") {
  controlled::for_each_schedule(
      200,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        LeakCheck leaks;
        {
          Limit limit(6);
          reset_peak_memory();
          std::atomic<int> done = 0;
          on_threads(4, [&](int index) {
            for (int i = 0; i < scaled(30, 10, 2); ++i) {
              try {
                array x = affine(affine(counting(count), 1, index, default_stream(Device::cpu)), 1,
                                 1, default_stream(Device::cpu));
                if (values(x)[1] != 2 + index) throw std::logic_error("wrong value");
                ++done;
              } catch (const OutOfMemory&) {
              }
            }
          });
          CHECK(done > 0);
          CHECK(get_peak_memory() <= limit.base() + 6 * bytes + bytes / 2);
        }
        leaks.check();
      },
      2);
}
