// Softmax against the definition in double.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/softmax.h"
#include "kernels/strided_test_support.h"

using namespace holdfast;
using namespace holdfast::kernels;
using namespace holdfast::kernels::cpu;
using namespace strided_test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

template <typename T>
void check(Random& random, Dtype::Val dtype, double tolerance, const View& view,
           const std::vector<int>& axes, int specials = 0) {
  Aligned<T> input(view.buffer_size);
  std::normal_distribution<float> normal(0, 4);
  for (int64_t i = 0; i < view.buffer_size; ++i) {
    float value = normal(random);
    if (specials > 0 && pick(random, 0, 3) == 0) value = -infinity;
    if (specials > 1 && pick(random, 0, 40) == 0) value = std::numeric_limits<float>::quiet_NaN();
    if (specials > 2 && pick(random, 0, 40) == 0) value = infinity;
    input[i] = static_cast<T>(value);
  }
  int64_t size = view.size();
  std::vector<bool> reduced(view.shape.size());
  for (int axis : axes) reduced[static_cast<size_t>(axis)] = true;
  auto group_of = [&](int64_t position) {
    int64_t group = 0, scale = 1;
    for (size_t d = view.shape.size(); d-- > 0;) {
      if (!reduced[d]) {
        group += position % view.shape[d] * scale;
        scale *= view.shape[d];
      }
      position /= view.shape[d];
    }
    return static_cast<size_t>(group);
  };
  std::vector<double> best(static_cast<size_t>(size) + 1, -INFINITY), total(best.size(), 0.0);
  for (int64_t i = 0; i < size; ++i) {
    double value = static_cast<double>(input[view.at(i)]);
    double& most = best[group_of(i)];
    if (!(value <= most)) most = std::isnan(most) ? most : value;
  }
  for (int64_t i = 0; i < size; ++i) {
    total[group_of(i)] += std::exp(static_cast<double>(input[view.at(i)]) - best[group_of(i)]);
  }
  SoftmaxPlan plan(dtype, view.shape, view.strides, axes);
  Aligned<T> output(size), again(size);
  run_tasks(plan.tasks(), Order::forward,
            [&](int64_t t) { plan.run(t, input.get() + view.offset, output.get()); });
  run_tasks(plan.tasks(), Order::shuffled,
            [&](int64_t t) { plan.run(t, input.get() + view.offset, again.get()); });
  CHECK(output.same_bits(again));
  double worst = 0;
  bool nan_equal = true;
  for (int64_t i = 0; i < size; ++i) {
    double expected =
        std::exp(static_cast<double>(input[view.at(i)]) - best[group_of(i)]) / total[group_of(i)];
    double got = static_cast<double>(output[i]);
    nan_equal &= std::isnan(expected) == std::isnan(got);
    if (std::isnan(expected)) continue;
    worst = std::max(worst, std::abs(got - expected) / (expected + 1e-3));
  }
  CHECK(worst < tolerance);
  CHECK(nan_equal);
}

void check_dtypes(Random& random, const View& view, const std::vector<int>& axes,
                  int specials = 0) {
  check<float>(random, Dtype::Val::float32, 2e-6, view, axes, specials);
  check<double>(random, Dtype::Val::float64, 1e-14, view, axes, specials);
  check<float16_t>(random, Dtype::Val::float16, 1e-3, view, axes, specials);
  check<bfloat16_t>(random, Dtype::Val::bfloat16, 8e-3, view, axes, specials);
}

View dense_view(std::vector<int32_t> shape) {
  Dimensions strides = dense_strides(shape);
  return {shape, {strides.begin(), strides.end()}, 0, element_count(shape)};
}

}  // namespace

TEST_CASE("softmax over random views and axes") {
  on_each_instruction_set([](const char* name) {
    CAPTURE(name);
    Random random(21);
    for (int round = 0; round < 150; ++round) {
      View view = random_view(random, random_shape(random, 4, 12));
      std::vector<int> axes;
      for (size_t d = 0; d < view.shape.size(); ++d) {
        if (pick(random, 0, 1) == 1) axes.push_back(static_cast<int>(d));
      }
      check_dtypes(random, view, axes, round % 5);
    }
  });
}

TEST_CASE("rows of every length, long rows, columns") {
  on_each_instruction_set([](const char* name) {
    CAPTURE(name);
    Random random(22);
    for (int32_t length = 1; length < 140; ++length)
      check_dtypes(random, dense_view({3, length}), {1});
    for (int32_t length : {1000, 8192, 8193, 30001})
      check_dtypes(random, dense_view({3, length}), {1});
    check_dtypes(random, dense_view({70, 200}), {0});
    check_dtypes(random, dense_view({5, 300, 77}), {1});
    check_dtypes(random, dense_view({9, 300, 7}), {0, 2});
    check_dtypes(random, dense_view({300, 3}), {0});
  });
}

TEST_CASE("special rows") {
  on_each_instruction_set([](const char* name) {
    CAPTURE(name);
    int32_t shape[] = {3, 40};
    int64_t strides[] = {40, 1};
    int axes[] = {1};
    std::vector<float> input(120, -infinity), output(120);
    input[45] = 1;                                      // one finite element
    std::fill(input.begin() + 80, input.end(), 3e38f);  // no overflow
    SoftmaxPlan plan(Dtype::Val::float32, shape, strides, axes);
    for (int64_t task = 0; task < plan.tasks(); ++task) plan.run(task, input.data(), output.data());
    CHECK(std::isnan(output[0]));
    CHECK(output[45] == 1);
    CHECK(output[44] == 0);
    CHECK(output[100] == doctest::Approx(1.0 / 40));
    // In place.
    for (int64_t task = 0; task < plan.tasks(); ++task) plan.run(task, input.data(), input.data());
    CHECK(std::memcmp(&input[40], &output[40], 80 * sizeof(float)) == 0);
  });
}

TEST_CASE("an array beyond the last-level cache is streamed, with the same values") {
  std::vector<int32_t> shape{12000, 1000};
  Aligned<float> input(12000000), output(12000000);
  Random random(23);
  for (int64_t i = 0; i < 12000000; ++i)
    input[i] = static_cast<float>(static_cast<int>(random() % 1000)) * 0.01f;
  int axes[] = {1};
  SoftmaxPlan plan(Dtype::Val::float32, shape, dense_strides(shape), axes);
  run_tasks(plan.tasks(), Order::threads,
            [&](int64_t task) { plan.run(task, input.get(), output.get()); });
  int32_t row_shape[] = {1, 1000};
  int64_t row_strides[] = {1000, 1};
  SoftmaxPlan row(Dtype::Val::float32, row_shape, row_strides, axes);
  bool equal = true;
  for (int64_t r = 0; r < 12000; r += 7) {
    float alone[1000];
    row.run(0, input.get() + r * 1000, alone);
    equal &= std::memcmp(alone, output.get() + r * 1000, sizeof(alone)) == 0;
  }
  CHECK(equal);
}
