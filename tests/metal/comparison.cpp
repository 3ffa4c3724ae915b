#include "metal/comparison.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <sstream>

#include <holdfast/validation.h>

#include "base/environment.h"
#include "exec/layers/layer.h"

namespace holdfast::testing {

const std::vector<Shape> common_shapes = {
    {},     {0},      {3, 0, 2},  {1},       {7},          {64},    {1000},
    {3, 5}, {33, 70}, {128, 130}, {5, 1, 9}, {2, 3, 4, 5}, {70001}, {3, 40, 64}};
const std::vector<Dtype> metal_dtypes = {bool_, uint8, uint16,  uint32,  uint64,   int8,     int16,
                                         int32, int64, float16, float32, bfloat16, complex64};
const std::vector<Dtype> integer_dtypes = {uint8, uint16, uint32, uint64,
                                           int8,  int16,  int32,  int64};
const std::vector<Dtype> float_dtypes = {float16, bfloat16, float32};

namespace {

// Collects the names of the kernels that are dispatched.
struct NamesOfDispatched : exec::Layer {
  uint32_t interests() const override { return encoding; }
  Ref<const exec::Pipeline> on_dispatch(const exec::Pipeline& pipeline,
                                        std::span<exec::BoundSlot>) override {
    names.insert(pipeline.name());
    return nullptr;
  }
  std::set<std::string> names;
};

// Before the settings are read: a GPU with memory of its own, the simulated one unless a real one
// is asked for.
const bool is_simulated = [] {
  const char* wanted = std::getenv("HOLDFAST_GPU");
  return !(wanted && std::strcmp(wanted, "cuda") == 0) &&
         setenv("HOLDFAST_GPU", "simulated", 1) == 0;
}();

// While it lives, ops run on the GPU.
class OnGpu {
 public:
  explicit OnGpu(std::set<std::string>& dispatched) : dispatched_(dispatched) {
    REQUIRE(is_simulated == (environment::settings().gpu == environment::Gpu::simulated));
    set_default_device(Device::gpu);
    exec::layers::add(layer_);
  }
  ~OnGpu() {
    exec::layers::remove(layer_.get());
    set_default_device(Device::cpu);
    dispatched_.merge(layer_->names);
  }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  std::set<std::string>& dispatched_;
  std::shared_ptr<NamesOfDispatched> layer_ = std::make_shared<NamesOfDispatched>();
};

size_t count_of(const Shape& shape) {
  size_t count = 1;
  for (ShapeElem size : shape) count *= static_cast<size_t>(size);
  return count;
}

array random_array(const Shape& shape, Dtype dtype, uint32_t seed) {
  std::mt19937_64 random(seed);
  const size_t count = count_of(shape);
  if (dtype == complex64) {
    std::vector<complex64_t> values(count);
    std::uniform_real_distribution<float> part(-4, 4);
    for (complex64_t& value : values) value = {part(random), part(random)};
    return array(values.begin(), shape, dtype);
  }
  if (issubdtype(dtype, inexact)) {
    std::vector<float> values(count);
    std::uniform_real_distribution<float> number(-4, 4);
    for (float& value : values) value = number(random);
    return array(values.begin(), shape, dtype);
  }
  std::vector<int64_t> values(count);
  // Of all sizes that the dtype has; of bool, both values.
  const int shift = static_cast<int>(64 - 8 * dtype.size());
  for (int64_t& value : values) {
    value = dtype == bool_ ? static_cast<int64_t>(random() & 1)
                           : static_cast<int64_t>(random()) >> shift;
  }
  if (dtype == uint64) {
    std::vector<uint64_t> bits(values.begin(), values.end());
    return array(bits.begin(), shape, dtype);
  }
  if (issubdtype(dtype, unsignedinteger)) {
    for (int64_t& value : values)
      value = static_cast<int64_t>(static_cast<uint64_t>(value) & (~uint64_t{0} >> shift));
  }
  return array(values.begin(), shape, dtype);
}

template <typename T>
double distance(T got, T expected) {
  if constexpr (std::is_same_v<T, complex64_t>) {
    return std::max(distance(got.real(), expected.real()), distance(got.imag(), expected.imag()));
  } else {
    const double a = static_cast<double>(got), b = static_cast<double>(expected);
    if (std::isnan(a) && std::isnan(b)) return 0;
    if (a == b) return 0;
    const double difference = std::abs(a - b) / std::max(1.0, std::abs(b));
    return std::isnan(difference) ? HUGE_VAL : difference;
  }
}

double unit_of_last_place(Dtype dtype) {
  return dtype == float16 ? 0x1p-10 : dtype == bfloat16 ? 0x1p-7 : 0x1p-23;
}

template <typename T>
bool is_nan(const T& value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else if constexpr (std::is_same_v<T, complex64_t>) {
    return std::isnan(value.real()) || std::isnan(value.imag());
  } else {
    return std::isnan(static_cast<float>(value));
  }
}

// Are they within `bound` of each other, and so many units of the last place of the result?
template <typename T>
bool is_within(T got, T expected, double bound, double units) {
  if constexpr (std::is_same_v<T, complex64_t>) {
    return is_within(got.real(), expected.real(), bound, units) &&
           is_within(got.imag(), expected.imag(), bound, units);
  } else {
    const double a = static_cast<double>(got), b = static_cast<double>(expected);
    return a == b || std::abs(a - b) <= bound + units * std::max(std::abs(b), 0x1p-14);
  }
}

// All are dense. `magnitudes` (float32): of what results are sums of, `products` of them.
void check_sums(const array& got, const array& expected, const array& magnitudes, double products,
                double tolerance) {
  REQUIRE(got.shape() == expected.shape());
  REQUIRE(got.dtype() == expected.dtype());
  REQUIRE(magnitudes.size() == got.size());
  const double each = 2 * 8 * std::sqrt(products) * 0x1p-24;
  const double units = tolerance * unit_of_last_place(got.dtype());
  const float* size = magnitudes.data<float>();
  dispatch_dtype(got.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *a = got.data<T>(), *b = expected.data<T>();
    for (size_t i = 0; i < got.size(); ++i) {
      if (is_within(a[i], b[i], each * static_cast<double>(size[i]), units)) continue;
      CAPTURE(i);
      CAPTURE(array(a[i]));
      CAPTURE(array(b[i]));
      CAPTURE(each * static_cast<double>(size[i]));
      FAIL_CHECK("further apart than rounding explains");
      break;
    }
  });
}

// Both are dense.
void check_equal(const array& got, const array& expected, double tolerance) {
  REQUIRE(got.shape() == expected.shape());
  REQUIRE(got.dtype() == expected.dtype());
  dispatch_dtype(got.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *a = got.data<T>(), *b = expected.data<T>();
    size_t wrong = 0, first = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const bool is_equal =
          tolerance == 0
              ? std::memcmp(a + i, b + i, sizeof(T)) == 0 || (is_nan(a[i]) && is_nan(b[i]))
              : distance(a[i], b[i]) <= tolerance * unit_of_last_place(got.dtype());
      if (!is_equal && wrong++ == 0) first = i;
    }
    CAPTURE(first);
    if (wrong > 0) {
      CAPTURE(array(a[first]));
      CAPTURE(array(b[first]));
      CHECK(wrong == 0);
    } else {
      CHECK(wrong == 0);
    }
  });
}

std::vector<array> evaluated(const Row& row, Case& one, bool magnitudes = false) {
  one.restart(magnitudes);
  std::vector<array> results = row.build(one);
  eval(results);
  return results;
}

// The elements in row-major order, on the host.
array dense(const array& a) {
  array result = contiguous(a);
  result.eval();
  return result;
}

void compare_case(const Row& row, Case& one, std::set<std::string>& dispatched) {
  CAPTURE(one.description());
  std::vector<array> expected = evaluated(row, one);
  std::vector<array> got;
  {
    OnGpu scope(dispatched);
    got = evaluated(row, one);
  }
  REQUIRE(got.size() == expected.size());
  std::vector<array> magnitudes;
  if (row.products) magnitudes = evaluated(row, one, true);
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    if (row.products) {
      check_sums(dense(got[i]), dense(expected[i]), dense(magnitudes[i]), row.products(one),
                 row.tolerance);
      continue;
    }
    check_equal(dense(got[i]), dense(expected[i]), row.tolerance);
  }
}

// A shape with some hundreds of elements, if there is one: checked kernels are slow.
const Shape& shape_to_check(const Row& row) {
  auto distance = [](const Shape& shape) {
    const double size = static_cast<double>(count_of(shape));
    return size == 0 ? HUGE_VAL : std::abs(std::log(size / 700));
  };
  return *std::min_element(
      row.shapes.begin(), row.shapes.end(),
      [&](const Shape& a, const Shape& b) { return distance(a) < distance(b); });
}

// A case of each dtype once more, with every access of its kernels looked at.
void check_accesses(const Row& row) {
  if (row.dtypes.empty()) return;
  std::set<std::string> dispatched;
  // Instrumented kernels take long to compile: one dtype per row but in the long suite.
  const bool is_long = std::getenv("HOLDFAST_TEST_LONG") != nullptr;
  const size_t count = row.dtypes.size(), first = is_long ? 0 : row.name.size() % count;
  for (size_t i = first; i < (is_long ? count : first + 1); ++i) {
    Case one(row.dtypes[i], shape_to_check(row), row.layouts[i % row.layouts.size()]);
    CAPTURE(one.description());
    validation::Scope scope({.checks = "kernels"});
    {
      OnGpu gpu(dispatched);
      evaluated(row, one);
    }
    for (const validation::Report& report : scope.reports()) FAIL_CHECK(report.text());
  }
}

}  // namespace

array Case::input(Shape of, Dtype type) {
  const uint32_t seed = ++inputs_;
  return laid_out(
      [&](const Shape& all) {
        const array x = random_array(all, type, seed);
        if (!magnitudes_) return x;
        return type == complex64 ? abs(real(x)) + abs(imag(x)) : abs(astype(x, float32));
      },
      std::move(of));
}

array Case::integers(Shape of, Dtype type, int64_t low, int64_t high) {
  std::mt19937_64 random(++inputs_);
  std::uniform_int_distribution<int64_t> number(low, high - 1);
  return laid_out(
      [&](const Shape& all) {
        std::vector<int64_t> values(count_of(all));
        for (int64_t& value : values) value = number(random);
        return array(values.begin(), all, type);
      },
      std::move(of));
}

array Case::laid_out(const std::function<array(const Shape&)>& make, Shape of) const {
  if (of.empty()) return make(of);
  const size_t last = of.size() - 1;
  Shape all = of, start(of.size(), 0), stop = of, step(of.size(), 1);
  switch (layout) {
    case Layout::dense:
      break;
    case Layout::shifted: {
      const auto count = static_cast<ShapeElem>(count_of(of));
      return reshape(slice(make({count + 1}), {1}, {count + 1}), of);
    }
    case Layout::transposed: {
      std::vector<int> axes;
      Shape turned = {of[last]};
      for (size_t i = 0; i < last; ++i) {
        turned.push_back(of[i]);
        axes.push_back(static_cast<int>(i) + 1);
      }
      axes.push_back(0);
      return transpose(make(turned), axes);
    }
    case Layout::padded:
      all[last] += 3;
      start[last] = 2;
      stop[last] += 2;
      break;
    case Layout::every_other:
      for (ShapeElem& size : all) size *= 2;
      for (size_t i = 0; i < of.size(); ++i) {
        stop[i] *= 2;
        step[i] = 2;
      }
      break;
    case Layout::reversed:
      for (size_t i = 0; i < of.size(); ++i) {
        start[i] = of[i] - 1;
        stop[i] = -of[i] - 1;
        step[i] = -1;
      }
      break;
    case Layout::broadcast:
      all[0] = of[0] == 0 ? 0 : 1;
      return broadcast_to(make(all), of);
  }
  return slice(make(all), start, stop, step);
}

std::string Case::description() const {
  static const char* const names[] = {"dense",       "shifted",  "transposed", "padded",
                                      "every other", "reversed", "broadcast"};
  std::ostringstream text;
  text << dtype << " " << shape << " " << names[static_cast<size_t>(layout)];
  return text.str();
}

void compare(const Row& row) {
  CAPTURE(row.name);
  std::set<std::string> dispatched;
  for (Dtype dtype : row.dtypes) {
    for (const Shape& shape : row.shapes) {
      for (Layout layout : row.layouts) {
        Case one(dtype, shape, layout);
        compare_case(row, one, dispatched);
      }
    }
  }
  for (const std::string& entry : row.entries) {
    auto found = dispatched.lower_bound(entry);
    const bool is_dispatched = found != dispatched.end() && found->starts_with(entry);
    CHECK_MESSAGE(is_dispatched, entry << " was not dispatched");
  }
  check_accesses(row);
}

}  // namespace holdfast::testing
