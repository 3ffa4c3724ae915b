// The array class: constructors and their overload traps, members, views, donation, deep graphs.
#include <doctest/doctest.h>
#include <holdfast/holdfast.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "support/device.h"

using namespace holdfast;

namespace {

std::vector<float> floats(array a) {
  a = contiguous(astype(a, float32));
  a.eval();
  return {a.data<float>(), a.data<float>() + a.size()};
}

}  // namespace

TEST_CASE("array: scalars") {
  CHECK(array(1.5f).dtype() == float32);
  CHECK(array(1.5).dtype() == float32);  // literals are double
  CHECK(array(true).dtype() == bool_);
  CHECK(array(3).dtype() == int32);
  CHECK(array(int64_t{3}).dtype() == int64);
  CHECK(array(3, float16).dtype() == float16);
  CHECK(array(std::complex<float>(1, 2)).dtype() == complex64);
  CHECK(array(complex64_t(1, 2)).item<complex64_t>() == complex64_t(1, 2));
  CHECK(array(7).ndim() == 0);
  CHECK(array(7).size() == 1);
  CHECK(array(7).item<int>() == 7);
}

TEST_CASE("array: overload traps") {
  CHECK(array({}).shape() == Shape{0});
  CHECK(array({}).dtype() == float32);
  CHECK(array({}, int32).dtype() == int32);
  CHECK(array({1.0}).dtype() == float32);
  CHECK(array({1, 2, 3}).dtype() == int32);
  CHECK(array({1, 2}, float32).dtype() == float32);
  CHECK(array({1, 2}, {2, 1}).shape() == Shape{2, 1});
  CHECK(array({true, false}).dtype() == bool_);
  array x = arange(20);
  CHECK(slice(x, {-10}, {10}, {10}).size() == 0);
  CHECK(slice(x, array({1}), {0}, {2}).shape() == Shape{2});
  array y = reshape(x, {2, 5, 2});
  CHECK(transpose(y, {0, 2, 1}).shape() == Shape{2, 2, 5});
  CHECK(transpose(y, default_stream(Device::cpu)).shape() == Shape{2, 5, 2});
  CHECK(sum(y, true).shape() == Shape{1, 1, 1});
  CHECK(sum(y, 0).shape() == Shape{5, 2});
  CHECK(sum(y, {0, 1}).shape() == Shape{2});
  CHECK(sum(y, Device::gpu).item<int>() == 190);
  CHECK(zeros({100}, default_stream(Device::cpu)).dtype() == float32);
  CHECK(eye(2, 3).shape() == Shape{2, 3});
  CHECK(eye(3, float16).dtype() == float16);
  CHECK(random::uniform({}, random::key(0)).ndim() == 0);
  CHECK(random::normal({200}, float16, random::key(0)).dtype() == float16);
  Stream stream(0, Device::cpu);
  CHECK(stream.device == Device::cpu);
}

TEST_CASE("array: from iterators, converting each element") {
  std::vector<int> ints = {1, 2, 3, 4};
  CHECK(floats(array(ints.begin(), {2, 2}, float32)) == std::vector<float>{1, 2, 3, 4});
  std::vector<bool> bits = {true, false, true};
  CHECK(array(bits.begin(), {3}).dtype() == bool_);
  CHECK(floats(array(bits.begin(), {3})) == std::vector<float>{1, 0, 1});
  double values[] = {0.5, 1e300, -1e300, std::nan("")};
  array narrow(values, {4}, int8);
  const int8_t* data = narrow.data<int8_t>();
  CHECK(data[0] == 0);
  CHECK(data[1] == 127);  // saturates
  CHECK(data[2] == -128);
  CHECK(data[3] == 0);  // NaN
}

TEST_CASE("array: bad arguments are named") {
  CHECK_THROWS_AS(array({1, 2, 3}, {2, 2}), std::invalid_argument);
  CHECK_THROWS_AS(array({1}, {-1}), std::invalid_argument);
  CHECK_THROWS_AS(zeros({1 << 30, 1 << 30, 1 << 30}), std::overflow_error);
  CHECK_THROWS_AS(array({1, 2}).item<int>(), std::invalid_argument);
  CHECK_THROWS_AS(array({1, 2}).shape(1), std::out_of_range);
  CHECK_THROWS_AS(array({1, 2}).shape(-2), std::out_of_range);
  CHECK_THROWS_AS(array(nullptr, {3}, float32, [](void*) {}), std::invalid_argument);
  allocator::Buffer small = allocator::malloc(4);
  CHECK_THROWS_AS(array(small, {3}, float32), std::invalid_argument);
  allocator::free(small);
  CHECK_THROWS_AS(array(1.0f).begin(), std::invalid_argument);
  CHECK_THROWS_AS(add(array(1.0f), array(2.0, float64), Device::gpu), std::invalid_argument);
  array never({2}, float32, nullptr, {});
  CHECK_THROWS_AS(never.eval(), std::invalid_argument);
  const array unevaluated = array(1) + array(2);
  CHECK_THROWS_AS(unevaluated.item<int>(), std::invalid_argument);
}

TEST_CASE("array: adopted memory") {
  int deleted = 0;
  std::vector<float> memory = {1, 2, 3};
  {
    array adopted(memory.data(), {3}, float32, [&](void* p) { deleted += p == memory.data(); });
    CHECK(adopted.data<float>() == memory.data());
    CHECK(floats(adopted * array(2.0f)) == std::vector<float>{2, 4, 6});
    CHECK(memory[0] == 1);  // never written by us
  }
  CHECK(deleted == 1);
  array without_deleter(memory.data(), {3}, float32, nullptr);  // a null deleter is legal
  CHECK(without_deleter.size() == 3);
  array empty(nullptr, {0}, float32, [&](void*) { ++deleted; });
  empty = array(0);
  CHECK(deleted == 2);
}

TEST_CASE("array: iterates over rows") {
  array a = reshape(arange(6), {3, 2});
  int row = 0;
  for (const array& r : a) CHECK(sum(r).item<int>() == 4 * row++ + 1);
  CHECK(row == 3);
}

TEST_CASE("array: views share memory with exact strides and flags") {
  array a = reshape(arange(12.0), {3, 4});
  a.eval();
  array t = transpose(a);
  t.eval();
  CHECK(t.data<float>() == a.data<float>());
  CHECK(t.strides() == Strides{1, 4});
  CHECK(t.flags().contiguous);
  CHECK(!t.flags().row_contiguous);
  CHECK(t.flags().col_contiguous);
  array s = slice(a, {1, 1}, {3, 3});
  s.eval();
  CHECK(s.data<float>() == a.data<float>() + 5);
  CHECK(s.strides() == Strides{4, 1});
  CHECK(!s.flags().contiguous);
  array b = broadcast_to(array(2.0f), {5, 5});
  b.eval();
  CHECK(b.data_size() == 1);
  CHECK(b.flags().contiguous);
  CHECK(!b.flags().row_contiguous);
  array e = zeros({0, 3});
  e.eval();
  CHECK(e.flags().row_contiguous);
  CHECK(e.flags().col_contiguous);
  CHECK(e.data_size() == 0);
}

TEST_CASE_FIXTURE(testing::OnCpu, "array: a temporary's memory becomes the result's") {
  array a = arange(1000.0);
  a.eval();
  array b = a + array(1.0f);
  b.eval();
  const float* memory = b.data<float>();
  array c = reshape(std::move(b), {1000}) * array(2.0f);
  b = array(0);
  c.eval();
  CHECK(c.data<float>() == memory);
  CHECK(floats(c)[999] == 2000);
  CHECK(floats(a)[999] == 999);  // what somebody holds is never overwritten
}

TEST_CASE_FIXTURE(testing::OnCpu, "array: temporaries of one expression are not written") {
  size_t before = get_active_memory();
  array a = zeros({1 << 16}), b = zeros({1 << 16});
  eval(a, b);
  reset_peak_memory();
  eval(exp(a * b + a));
  size_t one = (size_t{1} << 16) * sizeof(float);
  CHECK(get_peak_memory() - before < 3 * one + one / 2);  // a, b and the result
}

TEST_CASE("array: a million chained nodes") {
#if defined(HOLDFAST_CHECKS) && HOLDFAST_CHECKS
  constexpr int nodes = 100'000;
#else
  constexpr int nodes = 1'000'000;
#endif
  array one(1.0f);
  {
    array x(0.0f);
    for (int i = 0; i < nodes; ++i) x = x + one;
    CHECK(x.item<float>() == nodes);
  }
  array never_evaluated(0.0f);
  for (int i = 0; i < nodes; ++i) never_evaluated = transpose(never_evaluated + one);
}

TEST_CASE("array: an op that evaluates while it is encoded is told") {
  class Nested : public UnaryPrimitive {
   public:
    using UnaryPrimitive::UnaryPrimitive;
    void eval_cpu(const std::vector<array>&, array& out) override {
      out.set_data(allocator::malloc(out.nbytes()));
      array inner = array(1.0f) + array(2.0f);
      inner.eval();
    }
    void eval_gpu(const std::vector<array>& in, array& out) override { eval_cpu(in, out); }
    const char* name() const override { return "Nested"; }
  };
  array x({1}, float32, std::make_shared<Nested>(default_stream(Device::cpu)), {});
  CHECK_THROWS_AS(x.eval(), std::logic_error);
}

TEST_CASE("array: siblings find each other, dropped ones come back") {
  std::vector<array> parts = divmod(array({7, 8, 9}), array(4));
  CHECK(parts[0].siblings().size() == 1);
  CHECK(parts[0].siblings()[0].id() == parts[1].id());
  CHECK(parts[1].sibling_position() == 1);
  array remainder = parts[1];
  parts.clear();  // the quotient is gone
  CHECK(remainder.outputs().size() == 2);
  CHECK(floats(remainder) == std::vector<float>{3, 0, 1});
}
