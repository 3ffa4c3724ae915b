// Norms and rope on every instruction set: against their definitions in double, and in any order of
// tasks. Half types compute in float32 and round once: half a unit in the last place, and what
// float32 adds to it.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/rope.h"
#include "kernels/strided_test_support.h"

using namespace holdfast;
using namespace holdfast::kernels;
using namespace holdfast::kernels::cpu;
using namespace strided_test;

namespace {

// Of a result that was rounded to T once, relative to the largest number it was made of.
template <typename T>
constexpr double bound = 2e-6;
template <>
constexpr double bound<float16_t> = 0x1p-11 + 2e-6;
template <>
constexpr double bound<bfloat16_t> = 0x1p-8 + 2e-6;

template <typename T>
constexpr Dtype::Val dtype_of = Dtype::Val::float32;
template <>
constexpr Dtype::Val dtype_of<float16_t> = Dtype::Val::float16;
template <>
constexpr Dtype::Val dtype_of<bfloat16_t> = Dtype::Val::bfloat16;

template <typename T>
void fill(Random& random, Aligned<T>& values, int64_t count) {
  std::normal_distribution<float> normal(0.5f, 1);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(normal(random));
}

// Rows are `stride` elements apart.
template <typename T>
void check_norm(Random& random, NormKind kind, int32_t rows, int32_t length, int64_t stride) {
  CAPTURE(rows);
  CAPTURE(length);
  int64_t span = rows * stride;
  Aligned<T> input(span), weight(length), bias(length);
  fill(random, input, span);
  fill(random, weight, length);
  fill(random, bias, length);
  const bool centred = kind == NormKind::layer;
  int32_t shape[] = {rows, length};
  int64_t strides[] = {stride, 1};
  NormPlan plan(kind, dtype_of<T>, shape, strides, 1e-5);
  Aligned<T> output(int64_t{rows} * length), again(int64_t{rows} * length);
  auto run = [&](Order order, Aligned<T>& to) {
    run_tasks(plan.tasks(), order, [&](int64_t task) {
      plan.run(task, input.get(), weight.get(), centred ? bias.get() : nullptr, to.get());
    });
  };
  run(Order::forward, output);
  run(Order::threads, again);
  CHECK(output.same_bits(again));
  double worst = 0;
  for (int64_t r = 0; r < rows; ++r) {
    auto value = [&](int64_t i) { return static_cast<double>(input[r * stride + i]); };
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < length && centred; ++i) mean += value(i) / length;
    for (int64_t i = 0; i < length; ++i) variance += std::pow(value(i) - mean, 2) / length;
    double factor = 1 / std::sqrt(variance + 1e-5);
    for (int64_t i = 0; i < length; ++i) {
      double scaled = (value(i) - mean) * factor * static_cast<double>(weight[i]);
      double plus = centred ? static_cast<double>(bias[i]) : 0.0;
      double largest = std::abs(mean * factor * static_cast<double>(weight[i])) + std::abs(scaled) +
                       std::abs(plus);
      double error = std::abs(static_cast<double>(output[r * length + i]) - (scaled + plus));
      worst = std::max(worst, error / (largest + 1e-3));
    }
  }
  CHECK(worst < bound<T>);
}

template <typename T>
void check_norms(Random& random) {
  for (NormKind kind : {NormKind::rms, NormKind::layer}) {
    for (int32_t length : {1, 7, 16, 31, 33, 64, 100, 128, 257, 1000, 4096}) {
      for (int32_t rows : {1, 2, 5}) check_norm<T>(random, kind, rows, length, length);
      check_norm<T>(random, kind, 3, length, length + 5);
    }
    check_norm<T>(random, kind, 70, 4096, 4096);  // several tasks
  }
}

struct Positions {
  int64_t batch, heads, positions, features, pairs;
};

// The layout is [batch, positions, heads, features] when `heads_inside`.
template <typename T>
void check_rope(Random& random, const Positions& at, bool traditional, bool heads_inside,
                bool own_frequencies) {
  CAPTURE(at.heads);
  CAPTURE(at.positions);
  CAPTURE(at.features);
  CAPTURE(at.pairs);
  int64_t size = at.batch * at.heads * at.positions * at.features;
  int64_t head_stride = heads_inside ? at.features : at.positions * at.features;
  int64_t position_stride = heads_inside ? at.heads * at.features : at.features;
  RopeShape shape{at.batch,        at.heads,    at.positions,   at.features,
                  size / at.batch, head_stride, position_stride};
  Aligned<T> input(size), output(size), again(size);
  fill(random, input, size);
  std::optional<double> base;
  if (!own_frequencies) base = 10000.0;
  RopePlan plan(dtype_of<T>, shape, at.pairs, traditional, base, 0.5);
  std::vector<int64_t> offsets;
  for (int64_t b = 0; b < at.batch; ++b) offsets.push_back(100 + 7 * b);
  std::vector<float> frequencies;
  for (int64_t i = 0; i < at.pairs; ++i) frequencies.push_back(1.0f + 3 * static_cast<float>(i));
  auto run = [&](Order order, Aligned<T>& to) {
    run_tasks(plan.tasks(), order, [&](int64_t task) {
      Aligned<char> scratch(static_cast<int64_t>(plan.task_scratch_bytes()));
      plan.run(task, input.get(), offsets.data(), 1, own_frequencies ? frequencies.data() : nullptr,
               to.get(), scratch.get());
    });
  };
  run(Order::forward, output);
  run(Order::threads, again);
  CHECK(output.same_bits(again));
  double worst = 0;
  bool copied = true;
  for (int64_t row = 0; row < at.batch * at.heads * at.positions; ++row) {
    int64_t p = row % at.positions, h = row / at.positions % at.heads;
    int64_t b = row / at.positions / at.heads;
    T* x = input.get() + b * shape.batch_stride + h * head_stride + p * position_stride;
    T* y = output.get() + row * at.features;
    double position = (static_cast<double>(p) + static_cast<double>(offsets[size_t(b)])) * 0.5;
    for (int64_t i = 0; i < at.pairs; ++i) {
      double rate = own_frequencies ? 1 / static_cast<double>(frequencies[size_t(i)])
                                    : std::pow(10000.0, -static_cast<double>(i) / at.pairs);
      double c = std::cos(position * rate), s = std::sin(position * rate);
      int64_t low = traditional ? 2 * i : i, high = traditional ? low + 1 : i + at.pairs;
      double a = static_cast<double>(x[low]), o = static_cast<double>(x[high]);
      double size_of_pair = std::hypot(a, o) + 1e-3;
      worst =
          std::max(worst, std::abs(static_cast<double>(y[low]) - (a * c - o * s)) / size_of_pair);
      worst =
          std::max(worst, std::abs(static_cast<double>(y[high]) - (a * s + o * c)) / size_of_pair);
    }
    for (int64_t i = 2 * at.pairs; i < at.features; ++i) copied &= bool(x[i] == y[i]);
  }
  CHECK(worst < bound<T>);
  CHECK(copied);
}

template <typename T>
void check_ropes(Random& random) {
  for (bool traditional : {false, true}) {
    CAPTURE(traditional);
    for (bool heads_inside : {false, true}) {
      for (int64_t pairs : {1, 5, 16, 31, 32, 40, 64}) {
        check_rope<T>(random, {2, 5, 9, 2 * pairs, pairs}, traditional, heads_inside, false);
      }
      check_rope<T>(random, {1, 9, 3, 100, 33}, traditional, heads_inside, true);
      check_rope<T>(random, {1, 7, 70, 128, 64}, traditional, heads_inside, true);
      check_rope<T>(random, {3, 8, 1, 64, 32}, traditional, heads_inside, false);
    }
  }
}

// Also with all outputs written past the cache.
template <typename F>
void through_and_past_the_cache(const F& check) {
  on_each_instruction_set([&](const char* name) {
    std::string set = name;
    CAPTURE(set);
    check();
    force_stream_threshold(1);
    check();
    unforce_stream_threshold();
  });
}

}  // namespace

TEST_CASE("norms of rows on each instruction set") {
  through_and_past_the_cache([] {
    Random random(31);
    check_norms<float>(random);
    check_norms<float16_t>(random);
    check_norms<bfloat16_t>(random);
  });
}

TEST_CASE("rope on each instruction set") {
  through_and_past_the_cache([] {
    Random random(32);
    check_ropes<float>(random);
    check_ropes<float16_t>(random);
    check_ropes<bfloat16_t>(random);
  });
}
