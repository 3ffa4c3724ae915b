// Which copies of an array's bytes are valid after each event: a device that can only copy and fill
// reads and writes them, so that nothing is computed elsewhere.
#include <doctest/doctest.h>

#include <stdexcept>
#include <utility>

#include <holdfast/holdfast.h>

#include "base/fault.h"
#include "devices/gpu.h"
#include "support/gate.h"
#include "support/inspection.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using Ints = std::vector<int32_t>;
constexpr int count = 8;

Stream gpu_stream() {
  install_gpu();
  return default_stream(holdfast::Device::gpu);
}

// A copy that the GPU makes of what it finds.
array copied(const array& x) {
  return make_op("Copied", gpu_stream(), {x}, x.shape(),
                 [](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                   encoder.allocate(out[0]);
                   encoder.copy(in[0], out[0]);
                 });
}

// The GPU sets the first half of x to `value`, in x's memory; then `after` is called.
array first_half_set(const array& x, int32_t value, std::function<void()> after = [] {}) {
  return make_op("FirstHalfSet", gpu_stream(), {x}, x.shape(),
                 [=](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                   out[0].copy_shared_buffer(in[0]);
                   array half(Shape{count / 2}, int32, nullptr, {});
                   half.copy_shared_buffer(in[0], {1}, in[0].flags(), count / 2);
                   encoder.fill(half, &value);
                   after();
                 });
}

Ints on_host(const array& x) {
  const int32_t* data = x.data<int32_t>();
  return {data, data + x.size()};
}

}  // namespace

TEST_CASE("what the host writes is what the gpu reads next") {
  array x = counting(count);
  CHECK(values(copied(x))[1] == 1);
  x.data<int32_t>()[1] = 50;
  CHECK(values(copied(x)) == Ints{0, 50, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("what the gpu writes is what the host reads next, whichever has the array's own memory") {
  const Ints expected{9, 9, 9, 9, 4, 5, 6, 7};
  for (bool is_of_gpu : {false, true}) {
    CAPTURE(is_of_gpu);
    array x = is_of_gpu ? copied(counting(count)) : counting(count);
    x.eval();
    CHECK(on_host(std::as_const(x))[0] == 0);
    CHECK(values(copied(x))[0] == 0);  // both have it now
    array y = first_half_set(x, 9);
    y.eval();
    y.wait();
    CHECK(on_host(std::as_const(y)) == expected);
    CHECK(on_host(std::as_const(x)) == expected);
  }
}

TEST_CASE("memory of the gpu that is written in part has what the host wrote in the rest") {
  array x = copied(counting(count));
  x.eval();
  x.data<int32_t>()[5] = 50;
  array y = first_half_set(x, 9);
  CHECK(values(y) == Ints{9, 9, 9, 9, 4, 50, 6, 7});
}

TEST_CASE("an op that is rolled back has written nothing") {
  for (bool is_of_gpu : {false, true}) {
    CAPTURE(is_of_gpu);
    array x = is_of_gpu ? copied(counting(count)) : counting(count);
    x.eval();
    x.data<int32_t>()[5] = 50;
    array y = first_half_set(x, 9, [] { throw std::runtime_error("rolled back"); });
    CHECK_THROWS_WITH(y.eval(), doctest::Contains("rolled back"));
    CHECK(on_host(std::as_const(x)) == Ints{0, 1, 2, 3, 4, 50, 6, 7});
  }
}

TEST_CASE("a copy that failed is made again") {
  array x = counting(count);
  fault::arm(fault::Point::dispatch, 1);
  array failed = copied(x);
  async_eval(failed);
  exec::Runtime::get().drain();
  fault::disarm();
  CHECK_THROWS(failed.wait());
  CHECK(values(copied(x)) == Ints{0, 1, 2, 3, 4, 5, 6, 7});
  queue_of(gpu_stream()).forget_failures();
}

TEST_CASE("the host waits for a copy that a command makes for it") {
  array x = copied(counting(count, 1));
  x.eval();
  x.wait();
  const Stream s = default_stream(holdfast::Device::cpu);
  Gate gate(s);
  array y = affine(x, 1, 0, s);
  async_eval(y);
  sync::Thread opener("opener", [&] {
    sync::sleep_for(std::chrono::milliseconds(5));
    gate.open();
  });
  CHECK(on_host(std::as_const(x)) == Ints{1, 2, 3, 4, 5, 6, 7, 8});
  opener.join();
  CHECK(values(y)[7] == 8);
}
