// Scalars and other small inputs of the host's go to kernels by value.
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>

#include "exec/layers/layer.h"
#include "metal/comparison.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// Counts copies to the device while it lives.
class CopiesToDevice {
 public:
  CopiesToDevice() { exec::layers::add(layer_); }
  ~CopiesToDevice() { exec::layers::remove(layer_.get()); }
  CopiesToDevice(const CopiesToDevice&) = delete;
  CopiesToDevice& operator=(const CopiesToDevice&) = delete;
  int count() const { return layer_->count; }

 private:
  struct Counter : exec::Layer {
    uint32_t interests() const override { return lists; }
    void on_commit(exec::CommandList& list) override {
      for (const exec::Command& command : list.commands)
        count += command.detail == std::string("copy to the device");
    }
    std::atomic<int> count = 0;
  };
  std::shared_ptr<Counter> layer_ = std::make_shared<Counter>();
};

array numbers(int count) {
  array a = arange(count, int32, Device::cpu);
  a.eval();
  return a;
}

// As columns of two, by a kernel that reads `in`.
array turned(const array& in, StreamOrDevice device = Device::gpu) {
  return contiguous(transpose(reshape(in, {2, -1}, device), device), false, device);
}

}  // namespace

TEST_CASE("a scalar of the program is no copy to the device") {
  array two(2.0f);
  CopiesToDevice copies;
  array filled = full({1000}, two, Device::gpu);
  filled.eval();
  CHECK(copies.count() == 0);
  CHECK(array_equal(filled, full({1000}, 2.0f, Device::cpu), false, Device::cpu).item<bool>());
}

TEST_CASE("inputs of up to 64 bytes go by value, larger ones do not") {
  for (int count : {4, 6, 16, 18}) {
    CAPTURE(count);
    array in = numbers(count);
    CopiesToDevice copies;
    array got = turned(in);
    got.eval();
    CHECK(copies.count() == (count == 18 ? 1 : 0));
    CHECK(array_equal(got, turned(in, Device::cpu), false, Device::cpu).item<bool>());
  }
}

TEST_CASE("a part of a large array goes by value where it is small") {
  array in = slice(numbers(1000), {500}, {504});
  in.eval();
  CopiesToDevice copies;
  array got = turned(in);
  got.eval();
  CHECK(copies.count() == 0);
  CHECK(got.data<int>()[1] == 502);
}

TEST_CASE("what the device has already, and what is not computed yet, is bound") {
  array in = numbers(4);
  array there = turned(turned(in));
  there.eval();
  CopiesToDevice copies;
  turned(there).eval();
  CHECK(copies.count() == 0);
  // Of a CPU stream's work in the same evaluation.
  array later = turned(add(in, in, Device::cpu));
  later.eval();
  CHECK(copies.count() == 1);
  CHECK(later.data<int>()[1] == 4);
}

TEST_CASE("the host's writes are seen by the next op") {
  array in = numbers(4);
  turned(in).eval();
  in.data<int>()[1] = 77;
  array again = turned(in);
  again.eval();
  CHECK(again.data<int>()[2] == 77);
}
