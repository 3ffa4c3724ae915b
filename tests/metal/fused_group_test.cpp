// Groups of element-wise ops: how they are cut, and the kernels that are written for them.
#include <doctest/doctest.h>

#include <cstring>

#include "base/environment.h"
#include "exec/background.h"
#include "exec/layers/layer.h"
#include "metal/comparison.h"
#include "transforms/compile_kernels_setting.h"

#include <holdfast/transforms.h>

using namespace holdfast;
using namespace holdfast::testing;

namespace {

Row group_row(const char* name, std::vector<std::string> entries,
              std::function<std::vector<array>(Case&)> build) {
  return {.name = name,
          .entries = std::move(entries),
          .dtypes = {float32},
          .shapes = {{7}, {33, 70}, {4096}},
          .layouts = {Layout::dense, Layout::padded, Layout::transposed},
          .build = std::move(build)};
}

// Counts dispatches of generated kernels.
struct GeneratedDispatches : exec::Layer {
  uint32_t interests() const override { return encoding; }
  Ref<const exec::Pipeline> on_dispatch(const exec::Pipeline& pipeline,
                                        std::span<exec::BoundSlot>) override {
    count += pipeline.name() == "compiled";
    return nullptr;
  }
  int count = 0;
};

using Function = std::function<std::vector<array>()>;

std::vector<array> evaluated_on_gpu(const Function& f, int& generated) {
  auto layer = std::make_shared<GeneratedDispatches>();
  set_default_device(Device::gpu);
  exec::layers::add(layer);
  std::vector<array> results = f();
  eval(results);
  generated = layer->count;
  for (array& result : results) {
    // Which of two NaNs an operation forwards, and its sign, is undefined.
    if (issubdtype(result.dtype(), floating))
      result = where(isnan(result), array(NAN, result.dtype()), result);
    result = contiguous(result);
    result.eval();
  }
  exec::layers::remove(layer.get());
  set_default_device(Device::cpu);
  return results;
}

// What the interpreter gives, and then a kernel.
void compare_generated(const Function& f) {
  int generated = 0;
  std::vector<array> expected, got;
  {
    CompileKernelsSetting setting(CompileKernels::never);
    expected = evaluated_on_gpu(f, generated);
    CHECK(generated == 0);
  }
  CompileKernelsSetting setting(CompileKernels::at_once);
  evaluated_on_gpu(f, generated);
  exec::wait_for_background();
  got = evaluated_on_gpu(f, generated);
  CHECK(generated > 0);
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    REQUIRE(got[i].nbytes() == expected[i].nbytes());
    const auto *a = got[i].data<char>(), *b = expected[i].data<char>();
    size_t wrong = 0;
    const size_t item = got[i].itemsize();
    for (size_t at = 0; at < got[i].nbytes(); at += item) {
      if (std::memcmp(a + at, b + at, item) == 0) continue;
      if (got[i].dtype() == complex64) {
        const auto &x = *reinterpret_cast<const complex64_t*>(a + at),
                   &y = *reinterpret_cast<const complex64_t*>(b + at);
        if ((std::isnan(x.real()) && std::isnan(y.real())) ||
            (std::isnan(x.imag()) && std::isnan(y.imag())))
          continue;
      }
      ++wrong;
    }
    CHECK(wrong == 0);
  }
}

using Op = array (*)(const std::vector<array>&);
struct TableOp {
  const char* name;
  Op call;
  int arity;
};
const TableOp ops[] = {
#define UNARY(function, ...) \
  {#function, [](const std::vector<array>& x) { return function(x[0]); }, 1},
#define BINARY(function, ...) \
  {#function, [](const std::vector<array>& x) { return function(x[0], x[1]); }, 2},
#define TERNARY(function, ...) \
  {#function, [](const std::vector<array>& x) { return function(x[0], x[1], x[0]); }, 3},
#include <holdfast/elementwise.def>
};

}  // namespace

TEST_CASE("metal groups: chains, and values that are read later") {
  compare(group_row("a chain", {"fused_small_narrow"}, [](Case& c) {
    array a = c.input(c.shape), b = c.input(c.shape);
    return std::vector<array>{floor(a * b + a) - b};
  }));
  compare(group_row("a tree", {"fused_narrow"}, [](Case& c) {
    array a = c.input(c.shape), b = c.input(c.shape), d = c.input(c.shape), e = c.input(c.shape);
    array f = c.input({1});
    return std::vector<array>{(a + b) * (d - e) + (a - b) * (d + e) + f * (a * b - d * e)};
  }));
  // Sixteen sums, each of which is read again at the end: more than there are slots.
  compare(group_row("more values than slots", {"fused_narrow"}, [](Case& c) {
    array a = c.input(c.shape), b = c.input(c.shape);
    std::vector<array> sums;
    for (int i = 0; i < 14; ++i) sums.push_back(a + b * array(static_cast<float>(i)));
    array total = sums[0];
    for (const array& sum : sums) total = maximum(total - b, sum);
    return std::vector<array>{total};
  }));
}

TEST_CASE("metal groups: results are made fit their dtype after each op") {
  Row row = group_row("narrow dtypes", {"fused_small_narrow"}, [](Case& c) {
    array a = c.input(c.shape), b = c.input(c.shape), sum = a * b + a;
    return std::vector<array>{issubdtype(c.dtype, floating) ? sum - b : floor_divide(sum, b)};
  });
  row.dtypes = {float16, bfloat16, int8, int16, uint8, uint16};
  compare(row);
}

TEST_CASE("metal groups: several outputs, more than a kernel has") {
  compare(group_row("outputs", {"fused_narrow"}, [](Case& c) {
    array a = c.input(c.shape), b = c.input(c.shape);
    std::vector<array> results = {a + b};
    for (int i = 0; i < 20; ++i) results.push_back(results.back() * b - a);
    return results;
  }));
}

TEST_CASE("metal groups of several families of lanes") {
  compare(group_row("integers of 64 bits, floats, complex numbers",
                    {"fused_long", "fused_complex", "fused_small_narrow"}, [](Case& c) {
                      array a = c.input(c.shape, int64), b = c.input(c.shape, int16);
                      array sum = right_shift(a, array(40, int64)) + b;
                      array x = astype(sum, float32) * array(0.5f);
                      array z = astype(x, complex64) * array(complex64_t{0, 1});
                      return std::vector<array>{sum, z, real(z) + x, astype(imag(z), uint64)};
                    }));
}

TEST_CASE("metal groups that may take over the memory of their inputs") {
  compare(group_row("in place", {"fused_small_narrow"}, [](Case& c) {
    array a = contiguous(c.input(c.shape) + array(1.0f));
    a.eval();
    array b = maximum(a, array(0.5f));
    array d = b * b - a;  // reads `a` again
    a = array(0.0f);
    return std::vector<array>{d, b};
  }));
}

TEST_CASE("metal fp8") {
  compare({.name = "fp8",
           .entries = {"to_fp8", "from_fp8"},
           .dtypes = {float32},
           .shapes = {{0}, {5}, {256}, {70, 33}},
           .layouts = all_layouts,
           .build = [](Case& c) {
             array scale = left_shift(array(1, int32), c.integers(c.shape, int32, 0, 20));
             array x = to_fp8(c.input(c.shape) * (astype(scale, float32) * array(0x1p-10f)));
             return std::vector<array>{x, from_fp8(c.input(c.shape, uint8), float32)};
           }});
}

TEST_CASE("metal generated kernels give the interpreter's bits: every row") {
  for (Dtype dtype :
       {bool_, uint8, int8, uint16, int32, uint64, int64, float16, bfloat16, float32, complex64}) {
    Case c(dtype, {33, 70}, Layout::dense);
    array x = c.input({33, 70}), y = c.input({33, 70});
    eval(x, y);
    for (size_t first = 0; first < std::size(ops); first += 12) {
      CAPTURE(dtype);
      CAPTURE(ops[first].name);
      compare_generated([&] {
        std::vector<array> results;
        for (size_t i = first; i < std::min(first + 12, std::size(ops)); ++i) {
          try {
            results.push_back(ops[i].call({x, y}));
          } catch (const std::invalid_argument&) {  // not of this dtype
          }
        }
        if (results.empty()) results.push_back(equal(x, y));
        return results;
      });
    }
  }
}

TEST_CASE("metal generated kernels: layouts, and conversions") {
  for (Dtype dtype : {uint8, bfloat16, float32, complex64}) {
    for (Layout layout : all_layouts) {
      for (const Shape& shape : {Shape{33, 70}, Shape{12, 3, 64}}) {
        // A kernel takes its time to compile.
        if (shape.size() == 2 ? dtype == uint8 || dtype == complex64 : dtype != bfloat16) continue;
        Case c(dtype, shape, layout);
        array a = c.input(shape), b = c.input(shape), scalar = c.input({1});
        Shape row(shape.size(), 1), column = shape;
        row.back() = shape.back();
        column.back() = 1;
        array r = c.input(row), l = c.input(column);
        eval(a, b, r, l, scalar);
        INFO(c.description());
        compare_generated([&] {
          return std::vector<array>{(a + b * r) * l + scalar,
                                    astype(astype(a, float32) * array(2.0f), int16)};
        });
      }
    }
  }
}

TEST_CASE("metal generated kernels: a compiled function has one at once") {
  CompileKernelsSetting setting(CompileKernels::at_once);
  array x = ones({1000}) * array(3.0f);
  x.eval();
  auto f = compile([](const std::vector<array>& in) {
    return std::vector<array>{exp(in[0]) * in[0] + array(1.0f)};
  });
  int generated = 0;
  evaluated_on_gpu([&] { return f({x}); }, generated);
  CHECK(generated == 1);
}
