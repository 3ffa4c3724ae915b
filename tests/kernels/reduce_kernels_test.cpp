// Reductions against plain loops over the view. Values are chosen so that sums and products are
// exact in any order; what rounding does is tested apart.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/cpu/reduce.h"
#include "kernels/strided_test_support.h"

using namespace holdfast;
using namespace holdfast::kernels;
using namespace holdfast::kernels::cpu;
using namespace strided_test;

namespace {

constexpr ReduceOp all_ops[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::min,    ReduceOp::max,
                                ReduceOp::all, ReduceOp::any,  ReduceOp::argmin, ReduceOp::argmax};

template <typename T>
constexpr bool is_half = std::is_same_v<T, float16_t> || std::is_same_v<T, bfloat16_t>;
template <typename T>
constexpr bool is_floating = std::is_floating_point_v<T> || is_half<T>;

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_same_v<T, complex64_t>) {
    return std::isnan(value.real()) || std::isnan(value.imag());
  } else if constexpr (is_floating<T>) {
    return std::isnan(static_cast<double>(value));
  } else {
    return false;
  }
}

template <typename T>
T random_value(Random& random, ReduceOp op) {
  int64_t small = pick(random, -3, 3);
  if (op == ReduceOp::prod) {
    int64_t kind = pick(random, 0, 40);
    small = kind == 0 ? 2 : kind == 1 ? -1 : 1;
  }
  if (op == ReduceOp::all) small = pick(random, 0, 30);
  if (op == ReduceOp::any) small = pick(random, 0, 30) == 0;
  if constexpr (std::is_same_v<T, bool>) {
    return small != 0;
  } else if constexpr (std::is_same_v<T, complex64_t>) {
    return complex64_t(static_cast<float>(small),
                       static_cast<float>(op == ReduceOp::prod ? 0 : pick(random, -2, 2)));
  } else if constexpr (is_floating<T>) {
    bool ordered = op == ReduceOp::min || op == ReduceOp::max || op == ReduceOp::argmin ||
                   op == ReduceOp::argmax;
    if (ordered && pick(random, 0, 60) == 0)
      return static_cast<T>(std::numeric_limits<float>::quiet_NaN());
    return static_cast<T>(static_cast<float>(small));
  } else {
    return static_cast<T>(small);
  }
}

// Bytes of the output, from the definition.
template <typename T>
void reduce_plainly(ReduceOp op, const std::vector<T>& values, void* to) {
  auto put = [&](auto value) { std::memcpy(to, &value, sizeof(value)); };
  auto before = [&](T a, T b) {
    return op == ReduceOp::min || op == ReduceOp::argmin ? a < b : a > b;
  };
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::prod: {
      bool is_sum = op == ReduceOp::sum;
      if constexpr (std::is_same_v<T, complex64_t>) {
        std::complex<double> total = is_sum ? 0 : 1;
        for (T value : values) {
          std::complex<double> wide(value.real(), value.imag());
          total = is_sum ? total + wide : total * wide;
        }
        put(complex64_t(static_cast<float>(total.real()), static_cast<float>(total.imag())));
      } else if constexpr (is_floating<T>) {
        double total = is_sum ? 0 : 1;
        for (T value : values)
          total = is_sum ? total + static_cast<double>(value) : total * static_cast<double>(value);
        put(static_cast<T>(total));
      } else {
        uint64_t total = is_sum ? 0 : 1;
        for (T value : values)
          total =
              is_sum ? total + static_cast<uint64_t>(value) : total * static_cast<uint64_t>(value);
        if (sizeof(T) == 8) {
          put(total);
        } else {
          put(static_cast<uint32_t>(total));
        }
      }
      return;
    }
    case ReduceOp::all:
    case ReduceOp::any: {
      bool result = op == ReduceOp::all;
      for (T value : values) {
        bool truth = !(value == T(0));
        result = op == ReduceOp::all ? result && truth : result || truth;
      }
      put(result);
      return;
    }
    default:
      break;
  }
  size_t best = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    if (is_nan(values[best])) break;
    if (is_nan(values[i]) || before(values[i], values[best])) best = i;
  }
  if (op == ReduceOp::argmin || op == ReduceOp::argmax) {
    put(static_cast<uint32_t>(best));
  } else {
    put(values[best]);
  }
}

template <typename T>
void check(Random& random, ReduceOp op, Dtype::Val dtype, const View& view,
           const std::vector<int>& axes) {
  Aligned<T> input(view.buffer_size);
  for (int64_t i = 0; i < view.buffer_size; ++i) input[i] = random_value<T>(random, op);
  // The plain way: every position goes to the list of its output.
  int64_t outputs = 1, reduced = 1;
  std::vector<bool> is_reduced(view.shape.size());
  for (int axis : axes) is_reduced[static_cast<size_t>(axis)] = true;
  for (size_t d = 0; d < view.shape.size(); ++d)
    (is_reduced[d] ? reduced : outputs) *= view.shape[d];
  if (reduced == 0 && !has_identity(op)) return;
  std::vector<std::vector<T>> lists(static_cast<size_t>(outputs));
  for (int64_t i = 0; i < view.size(); ++i) {
    int64_t rest = i, output = 0, scale = 1;
    for (size_t d = view.shape.size(); d-- > 0;) {
      if (!is_reduced[d]) {
        output += rest % view.shape[d] * scale;
        scale *= view.shape[d];
      }
      rest /= view.shape[d];
    }
    lists[static_cast<size_t>(output)].push_back(input[view.at(i)]);
  }
  size_t item = item_size(reduce_output_type(op, dtype));
  Aligned<char> expected(outputs * static_cast<int64_t>(item));
  for (int64_t o = 0; o < outputs; ++o) {
    reduce_plainly(op, lists[static_cast<size_t>(o)],
                   expected.get() + o * static_cast<int64_t>(item));
  }
  ReducePlan plan(op, dtype, view.shape, view.strides, axes);
  CHECK(plan.output_size() == outputs);
  Order order = static_cast<Order>(pick(random, 0, 2));
  Aligned<char> result(outputs * static_cast<int64_t>(item));
  Aligned<char> scratch(static_cast<int64_t>(plan.scratch_bytes()));
  for (int stage = 0; stage < plan.stages(); ++stage) {
    run_tasks(plan.tasks(stage), order, [&](int64_t task) {
      plan.run(stage, task, input.get() + view.offset, result.get(), scratch.get());
    });
  }
  bool equal = true;
  for (int64_t o = 0; o < outputs; ++o) {
    const char* a = result.get() + o * static_cast<int64_t>(item);
    const char* b = expected.get() + o * static_cast<int64_t>(item);
    bool same = std::memcmp(a, b, item) == 0;
    if (!same && op != ReduceOp::argmin && op != ReduceOp::argmax && op != ReduceOp::all &&
        op != ReduceOp::any) {
      T x, y;  // NaN equals NaN, and 0 equals -0
      if (item == sizeof(T)) {
        std::memcpy(&x, a, sizeof(T));
        std::memcpy(&y, b, sizeof(T));
        same = (is_nan(x) && is_nan(y)) || x == y;
      }
    }
    equal &= same;
  }
  CHECK(equal);
}

void check_dtypes(Random& random, const View& view, const std::vector<int>& axes) {
  for (int value = 0; value < dtype_count; ++value) {
    auto dtype = static_cast<Dtype::Val>(value);
    ReduceOp op = all_ops[static_cast<size_t>(pick(random, 0, 7))];
    CAPTURE(value);
    CAPTURE(static_cast<int>(op));
    dispatch_dtype(
        dtype, [&]<typename T>(std::type_identity<T>) { check<T>(random, op, dtype, view, axes); });
  }
}

std::vector<int> random_axes(Random& random, size_t dimensions) {
  std::vector<int> axes;
  for (size_t d = 0; d < dimensions; ++d) {
    if (pick(random, 0, 1) == 1) axes.push_back(static_cast<int>(d));
  }
  std::shuffle(axes.begin(), axes.end(), random);
  return axes;
}

std::vector<float> reduce_floats(ReduceOp op, const std::vector<float>& input,
                                 std::vector<int32_t> shape, std::vector<int> axes, Order order) {
  ReducePlan plan(op, Dtype::Val::float32, shape, dense_strides(shape), axes);
  std::vector<float> output(static_cast<size_t>(plan.output_size()));
  Aligned<char> scratch(static_cast<int64_t>(plan.scratch_bytes()));
  for (int stage = 0; stage < plan.stages(); ++stage) {
    run_tasks(plan.tasks(stage), order, [&](int64_t task) {
      plan.run(stage, task, input.data(), output.data(), scratch.get());
    });
  }
  return output;
}

}  // namespace

TEST_CASE("all ops and dtypes over random views and axes") {
  on_each_instruction_set([](const char* name) {
    CAPTURE(name);
    Random random(11);
    for (int round = 0; round < 250; ++round) {
      View view = random_view(random, random_shape(random, 4, 9));
      check_dtypes(random, view, random_axes(random, view.shape.size()));
    }
  });
}

TEST_CASE("shapes that take each path: chunks, long rows, wide and narrow columns") {
  on_each_instruction_set([](const char* name) {
    CAPTURE(name);
    Random random(12);
    struct Case {
      std::vector<int32_t> shape;
      std::vector<int64_t> strides;
      std::vector<int> axes;
    };
    std::vector<Case> cases{
        {{300001}, {1}, {0}},                      // one output, chunks
        {{3, 280001}, {280001, 1}, {1}},           // few long rows
        {{70, 5000}, {5000, 1}, {1}},              // rows
        {{3000, 130}, {130, 1}, {0}},              // columns in chunks of rows
        {{100003, 3}, {3, 1}, {0}},                // narrow columns, folded
        {{40, 9000}, {9000, 1}, {0}},              // more columns than a task takes
        {{20, 30, 500}, {15000, 500, 1}, {1}},     // middle axis
        {{20, 30, 500}, {15000, 500, 1}, {0, 2}},  // around the middle
        {{600, 500}, {1000, 2}, {0}},              // strided columns, staged
        {{600, 500}, {1000, 2}, {1}},              // strided rows, staged
        {{500, 600}, {1, 500}, {0}},               // transposed: rows after all
        {{4097, 5}, {0, 1}, {0}},                  // broadcast along the reduced axis
    };
    for (const Case& c : cases) {
      View view{c.shape, c.strides, 0, 1};
      for (size_t d = 0; d < c.shape.size(); ++d)
        view.buffer_size += (c.shape[d] - 1) * c.strides[d];
      check_dtypes(random, view, c.axes);
    }
  });
}

// Rows of a few small values (of both signs and both zeros, or all negative, or all positive), with
// `planted` at two random places.
enum class Signs { both, negative, positive };
template <typename T>
void check_places(Random& random, ReduceOp op, float planted, Signs signs = Signs::both) {
  constexpr int32_t length = 9001;
  std::vector<T> row(length);
  for (T& value : row) {
    int64_t kind = pick(random, 0, 3);
    float small = kind == 0 ? -0.0f : kind == 1 ? 0.0f : kind == 2 ? 1e-3f : -1e-3f;
    float large = 1.0f + static_cast<float>(kind) / 4;
    value = static_cast<T>(signs == Signs::both       ? small
                           : signs == Signs::negative ? -large
                                                      : large);
  }
  for (int i = 0; i < 2; ++i) {
    row[static_cast<size_t>(pick(random, 0, length - 1))] = static_cast<T>(planted);
  }
  size_t expected = 0;
  for (size_t i = 1; i < row.size(); ++i) {
    auto a = static_cast<float>(row[i]), b = static_cast<float>(row[expected]);
    bool before = op == ReduceOp::argmin ? a < b : a > b;
    if (before || (std::isnan(a) && !std::isnan(b))) expected = i;
  }
  int32_t shape[] = {length};
  int64_t strides[] = {1};
  int axes[] = {0};
  ReducePlan plan(op, Dtype(TypeToDtype<T>()).val(), shape, strides, axes);
  uint32_t place = 0;
  for (int64_t task = 0; task < plan.tasks(0); ++task)
    plan.run(0, task, row.data(), &place, nullptr);
  CHECK(place == expected);
}

TEST_CASE("argmin and argmax find the first of equals, wherever it is") {
  on_each_instruction_set([](const char* name) {
    CAPTURE(name);
    Random random(13);
    float infinity = std::numeric_limits<float>::infinity();
    for (float planted :
         {0.0f, 1e-3f, 5.0f, -5.0f, infinity, -infinity, std::nanf(""), -std::nanf("")}) {
      CAPTURE(planted);
      for (ReduceOp op : {ReduceOp::argmin, ReduceOp::argmax}) {
        for (int round = 0; round < 10; ++round) {
          check_places<float>(random, op, planted);
          check_places<float16_t>(random, op, planted);
          check_places<bfloat16_t>(random, op, planted);
          for (Signs signs : {Signs::negative, Signs::positive}) {
            check_places<float16_t>(random, op, planted, signs);
            check_places<bfloat16_t>(random, op, planted, signs);
          }
        }
      }
    }
  });
}

TEST_CASE("reductions of nothing") {
  std::vector<int32_t> shape{3, 0};
  std::vector<int64_t> strides{0, 1};
  int axis[] = {1};
  float output[3];
  ReducePlan sum(ReduceOp::sum, Dtype::Val::float32, shape, strides, axis);
  for (int64_t task = 0; task < sum.tasks(0); ++task) sum.run(0, task, output, output, nullptr);
  CHECK((output[0] == 0 && output[2] == 0));
  ReducePlan prod(ReduceOp::prod, Dtype::Val::float32, shape, strides, axis);
  for (int64_t task = 0; task < prod.tasks(0); ++task) prod.run(0, task, output, output, nullptr);
  CHECK((output[0] == 1 && output[2] == 1));
  uint8_t truth[3];
  ReducePlan all(ReduceOp::all, Dtype::Val::float32, shape, strides, axis);
  for (int64_t task = 0; task < all.tasks(0); ++task) all.run(0, task, output, truth, nullptr);
  CHECK((truth[0] == 1 && truth[2] == 1));
  ReducePlan any(ReduceOp::any, Dtype::Val::float32, shape, strides, axis);
  for (int64_t task = 0; task < any.tasks(0); ++task) any.run(0, task, output, truth, nullptr);
  CHECK((truth[0] == 0 && truth[2] == 0));
  int kept[] = {0};
  CHECK(ReducePlan(ReduceOp::max, Dtype::Val::float32, shape, strides, kept).tasks(0) == 0);
  CHECK_FALSE(has_identity(ReduceOp::max));
  CHECK_FALSE(has_identity(ReduceOp::argmin));
}

TEST_CASE("float sums are bit-equal in any order of tasks, and close to the truth") {
  Random random(13);
  std::vector<float> input(2048 * 1100);
  std::normal_distribution<float> normal(0.1f, 1.0f);
  for (float& value : input) value = normal(random);
  std::vector<std::pair<std::vector<int32_t>, std::vector<int>>> cases{
      {{2048 * 1100}, {0}}, {{2048, 1100}, {0}}, {{2048, 1100}, {1}}, {{4, 512, 1100}, {0, 2}}};
  for (auto& [shape, axes] : cases) {
    std::vector<float> first = reduce_floats(ReduceOp::sum, input, shape, axes, Order::forward);
    for (Order order : {Order::backward, Order::shuffled, Order::threads}) {
      std::vector<float> again = reduce_floats(ReduceOp::sum, input, shape, axes, order);
      CHECK(std::memcmp(first.data(), again.data(), first.size() * sizeof(float)) == 0);
    }
  }
  std::vector<float> tenths(std::size_t{1} << 22, 0.1f);
  float total = reduce_floats(ReduceOp::sum, tenths, {1 << 22}, {0}, Order::forward)[0];
  CHECK(std::abs(total / (0.1f * (1 << 22)) - 1) < 1e-6f);
  // By columns too.
  for (float column : reduce_floats(ReduceOp::sum, tenths, {1 << 16, 64}, {0}, Order::forward)) {
    CHECK(std::abs(column / (0.1f * (1 << 16)) - 1) < 1e-6f);
  }
}

TEST_CASE("half sums round once") {
  // 4096 + 1 is not a float16, and adding ones in float16 would stick at 2048.
  std::vector<float16_t> ones(4096, float16_t(1.0f));
  ones.push_back(float16_t(2.0f));
  int32_t shape[] = {4097};
  int64_t strides[] = {1};
  int axes[] = {0};
  ReducePlan plan(ReduceOp::sum, Dtype::Val::float16, shape, strides, axes);
  float16_t result{};
  plan.run(0, 0, ones.data(), &result, nullptr);
  CHECK(static_cast<float>(result) == static_cast<float>(float16_t(4098.0f)));
}

// Columns of small integers, whose sums a half type holds.
template <typename T>
void check_columns(Random& random, int32_t rows, int32_t columns) {
  CAPTURE(rows);
  CAPTURE(columns);
  std::vector<T> input(static_cast<size_t>(rows * columns));
  std::vector<int> sums(static_cast<size_t>(columns));
  for (size_t i = 0; i < input.size(); ++i) {
    auto value = static_cast<int>(pick(random, -2, 2));
    input[i] = static_cast<T>(static_cast<float>(value));
    sums[i % sums.size()] += value;
  }
  int32_t shape[] = {rows, columns};
  int64_t strides[] = {columns, 1};
  int axes[] = {0};
  ReducePlan plan(ReduceOp::sum, Dtype(TypeToDtype<T>()).val(), shape, strides, axes);
  std::vector<T> output(sums.size());
  Aligned<char> scratch(static_cast<int64_t>(plan.scratch_bytes()));
  for (int stage = 0; stage < plan.stages(); ++stage) {
    for (int64_t task = 0; task < plan.tasks(stage); ++task)
      plan.run(stage, task, input.data(), output.data(), scratch.get());
  }
  bool right = true;
  for (size_t i = 0; i < sums.size(); ++i)
    right = right && static_cast<float>(output[i]) == static_cast<float>(sums[i]);
  CHECK(right);
}

TEST_CASE("sums of columns of half types, with parts of lines and of blocks of rows") {
  on_each_instruction_set([](const char* name) {
    CAPTURE(name);
    Random random(13);
    for (int32_t rows : {1, 3, 4, 9, 63, 70}) {
      for (int32_t columns : {16, 31, 32, 48, 79, 4096 + 48}) {
        check_columns<bfloat16_t>(random, rows, columns);
        check_columns<float16_t>(random, rows, columns);
      }
    }
  });
}
