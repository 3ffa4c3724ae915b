// compile: kernels that are generated for element-wise groups give the bits of the block engine.
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>

#include <holdfast/kernel_cache.h>
#include <holdfast/metal.h>

#include "base/fault.h"
#include "exec/background.h"
#include "exec/kernel_library.h"
#include "kernels/cpu/generated_source.h"
#include "kernels/cpu/instruction_set.h"
#include "ops/array_testing.h"
#include "support/child.h"
#include "transforms/compile_kernels_setting.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using Arrays = std::vector<array>;
using Function = std::function<Arrays(const Arrays&)>;

// NaNs are equal, whatever their sign and payload.
bool same_values(array a, array b) {
  a = contiguous(a);
  b = contiguous(b);
  eval(a, b);
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  if (std::memcmp(a.data<char>(), b.data<char>(), a.nbytes()) == 0) return true;
  if (!issubdtype(a.dtype(), floating)) return false;
  array is_nan = logical_and(isnan(a), isnan(b));
  array zero = zeros({}, a.dtype());
  a = contiguous(where(is_nan, zero, a));
  b = contiguous(where(is_nan, zero, b));
  eval(a, b);
  return std::memcmp(a.data<char>(), b.data<char>(), a.nbytes()) == 0;
}

// Runs `f` by the block engine and as a kernel. Gives the number of kernels that were asked for.
uint64_t check_both_ways(const Function& f, const Arrays& inputs) {
  Function compiled = compile(f);
  Arrays expected, got;
  {
    CompileKernelsSetting setting(CompileKernels::never);
    expected = compiled(inputs);
    eval(expected);
  }
  KernelCacheStats before = kernel_cache_stats();
  {
    CompileKernelsSetting setting(CompileKernels::at_once);
    got = compiled(inputs);
    eval(got);
  }
  KernelCacheStats after = kernel_cache_stats();
  CHECK(after.failures == before.failures);
  for (size_t k = 0; k < expected.size(); ++k) {
    CHECK_MESSAGE(same_values(got[k], expected[k]), "output " << k);
  }
  return after.hits - before.hits;
}

// Every op of the table, over two or three operands of one dtype.
struct TableOp {
  const char* name;
  int arity;
  std::function<array(const Arrays&)> call;
};
std::vector<TableOp> table_ops() {
  std::vector<TableOp> ops;
#define UNARY(function, Primitive, ...) \
  ops.push_back({#Primitive, 1, [](const Arrays& in) { return function(in[0]); }});
#define BINARY(function, Primitive, ...) \
  ops.push_back({#Primitive, 2, [](const Arrays& in) { return function(in[0], in[1]); }});
#define TERNARY(function, Primitive, ...) \
  ops.push_back({#Primitive, 3, [](const Arrays& in) { return function(in[2], in[0], in[1]); }});
#include <holdfast/elementwise.def>
  return ops;
}

// All pairs of numbers at which ops have something to get wrong.
Arrays operands_of(Dtype dtype) {
  std::vector<double> values = {0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 100, 127, 255};
  if (!issubdtype(dtype, unsignedinteger) && dtype != bool_) {
    for (double value : {-1.0, -2.0, -5.0, -64.0, -128.0}) values.push_back(value);
  }
  if (issubdtype(dtype, floating)) {
    double infinity = std::numeric_limits<double>::infinity();
    for (double value : {-0.0, 0.5, 1.5, -2.5, 1e-3, 88.9, -103.5, -104.5, 3e38, 1e-40, infinity,
                         -infinity, std::nan("")}) {
      values.push_back(value);
    }
  }
  std::vector<double> left, right;
  for (double a : values) {
    for (double b : values) {
      left.push_back(a);
      right.push_back(b);
    }
  }
  Shape shape = {static_cast<int>(left.size())};
  array x = astype(array(left.begin(), shape, float64), dtype);
  array y = astype(array(right.begin(), shape, float64), dtype);
  array condition = array(left.begin(), shape, float64) > array(right.begin(), shape, float64);
  eval(x, y, condition);
  return {x, y, condition};
}

bool is_generated(int16_t op, int arity, Dtype operand, Dtype result) {
  FusedStep step{op, static_cast<uint8_t>(arity), {0, 1, 2}, result, operand, nullptr};
  std::vector<kernels::cpu::GeneratedInput> inputs(2,
                                                   {operand, kernels::cpu::InputAccess::element});
  if (arity == 3) {
    step.values[0] = 2;
    step.values[1] = 0;
    step.values[2] = 1;
    inputs.push_back({bool_, kernels::cpu::InputAccess::element});
  }
  const char is_output[] = {1};
  bool fuses = kernels::cpu::instruction_set() != kernels::cpu::InstructionSet::baseline;
  return kernels::cpu::generated_source({&step, 1}, is_output, inputs, 1, fuses).has_value();
}

}  // namespace

TEST_CASE_FIXTURE(OnCpu, "generated kernels: every op and dtype that has one, bit for bit") {
  if (!metal::is_available()) return;
  int checked = 0;
  for (Dtype dtype : {bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float32,
                      float64, float16, complex64}) {
    INFO(std::string(dtype_name(dtype)));
    Arrays operands = operands_of(dtype);
    std::vector<TableOp> ops = table_ops(), known;
    for (size_t i = 0; i < ops.size(); ++i) {
      try {
        if (ops[i].call(operands).dtype() == dtype || ops[i].call(operands).dtype() == bool_) {
          Dtype result = ops[i].call(operands).dtype();
          if (is_generated(static_cast<int16_t>(i), ops[i].arity, dtype, result))
            known.push_back(ops[i]);
        }
      } catch (const std::invalid_argument&) {
      }
    }
    CHECK(known.empty() == (dtype == float16 || dtype == complex64));
    // A group has room for so many outputs.
    constexpr size_t outputs = 20;
    for (size_t first = 0; first < known.size(); first += outputs) {
      size_t last = std::min(known.size(), first + outputs);
      uint64_t kernels = check_both_ways(
          [&](const Arrays& in) {
            Arrays results;
            // What they have in common makes them a group.
            Arrays same = {where(in[2], in[0], in[0]), in[1], in[2]};
            for (size_t i = first; i < last; ++i) results.push_back(known[i].call(same));
            return results;
          },
          operands);
      CHECK(kernels == 1);
      checked += static_cast<int>(last - first);
    }
  }
  CHECK(checked > 200);
}

TEST_CASE_FIXTURE(OnCpu, "generated kernels: conversions") {
  if (!metal::is_available()) return;
  for (Dtype from : {bool_, uint8, int16, uint32, int64, float32, float64}) {
    INFO(std::string(dtype_name(from)));
    uint64_t kernels = check_both_ways(
        [](const Arrays& in) {
          Arrays results;
          bool is_float = issubdtype(in[0].dtype(), floating);
          array same = where(in[2], in[0], in[0]);
          for (Dtype to : {bool_, uint8, int16, uint32, int64, float32, float64}) {
            if (to == in[0].dtype() || (is_float && to != bool_ && !issubdtype(to, floating))) {
              continue;
            }
            results.push_back(astype(same, to));
          }
          return results;
        },
        operands_of(from));
    CHECK(kernels >= 1);
  }
}

TEST_CASE_FIXTURE(OnCpu,
                  "generated kernels: operands that broadcast, and those that no kernel takes") {
  if (!metal::is_available()) return;
  Function f = [](const Arrays& in) {
    array x = in[0] * in[1] + in[2];
    return Arrays{maximum(x, in[1]), x - in[0]};
  };
  array full = reshape(arange(0.0, 6 * 40.0, float32), {6, 40});
  array row = arange(0.0, 40.0, float32), column = reshape(arange(0.0, 6.0, float32), {6, 1});
  array one(2.5f), wide = broadcast_to(row, {6, 40});
  eval(full, row, column, one, wide);
  CHECK(check_both_ways(f, {full, full, one}) >= 1);
  CHECK(check_both_ways(f, {full, row, column}) >= 1);
  CHECK(check_both_ways(f, {full, wide, one}) >= 1);
  CHECK(check_both_ways(f, {column, row, one}) >= 1);
  // Three axes, of which the middle one is repeated; another split; a transpose.
  array cube = reshape(arange(0.0, 240.0, float32), {2, 3, 40});
  CHECK(check_both_ways(f, {cube, reshape(slice(cube, {0, 0, 0}, {2, 1, 40}), {2, 1, 40}), one}) ==
        0);
  CHECK(check_both_ways(f, {cube, row, reshape(arange(0.0, 2.0, float32), {2, 1, 1})}) == 0);
  CHECK(check_both_ways(f, {transpose(reshape(full, {40, 6})), full, one}) == 0);
  CHECK(check_both_ways(f, {slice(full, {0, 0}, {6, 0}), slice(full, {0, 0}, {6, 0}), one}) == 0);
}

TEST_CASE_FIXTURE(OnCpu, "generated kernels: long chains work on several elements in turn") {
  if (!metal::is_available()) return;
  Function f = [](const Arrays& in) {
    array x = in[0];
    for (int i = 0; i < 6; ++i) x = x * in[1] + in[0];
    return Arrays{x};
  };
  for (int size : {1, 4, 63, 64, 1000, 1001}) {
    array x = arange(0.0, size, float32) / array(100.0f), y = cos(x);
    eval(x, y);
    CHECK(check_both_ways(f, {x, y}) >= 1);
    // In rows of eight, by their columns.
    array rows = reshape(arange(0.0, 8.0 * size, float32), {size, 8}) / array(100.0f);
    array column = reshape(y, {size, 1});
    eval(rows);
    CHECK(check_both_ways(f, {rows, column}) >= 1);
  }
}

TEST_CASE_FIXTURE(OnCpu,
                  "generated kernels: an output takes over an input that nobody else needs") {
  if (!metal::is_available()) return;
  CompileKernelsSetting setting(CompileKernels::at_once);
  Function f = compile(
      [](const Arrays& in) { return Arrays{(in[0] * array(2.0f) + in[1]) - in[0] * in[1]}; });
  array x = arange(0.0, 1000.0, float32), y = full({1000}, 3.0f);
  eval(x, y);
  const void* memory = x.data<char>();
  array got = f({x, y})[0];
  x = array(0.0f);
  eval(got);
  CHECK(got.data<char>() == memory);
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(got.data<float>()[i] == 3 - static_cast<float>(i));
    REQUIRE(y.data<float>()[i] == 3);
  }
  array next = f({got, y})[0];
  eval(next);
  CHECK(next.data<char>() != got.data<char>());
}

TEST_CASE_FIXTURE(OnCpu, "generated kernels: made in the background once they would have paid") {
  if (!metal::is_available()) return;
  CompileKernelsSetting setting(CompileKernels::when_it_pays);
  Function f = compile([](const Arrays& in) {
    array x = in[0];
    for (int i = 0; i < 7; ++i) x = where(x > in[1], x * in[1], x + array(0.37f));
    return Arrays{x};
  });
  array x = arange(0.0, 1 << 20, float32) / array(1e6f), y = array(0.5f);
  eval(x, y);
  exec::wait_for_background();  // for what earlier test cases have begun
  KernelCacheStats before = kernel_cache_stats();
  array first = f({x, y})[0];
  eval(first);
  exec::wait_for_background();
  KernelCacheStats after = kernel_cache_stats();
  CHECK(after.misses == before.misses);
  for (int call = 0; call < 100; ++call) eval(f({x, y}));
  exec::wait_for_background();
  after = kernel_cache_stats();
  CHECK(after.misses > before.misses);
  array last = f({x, y})[0];
  eval(last);
  CHECK(kernel_cache_stats().hits > after.hits);
  CHECK(same_values(first, last));
}

TEST_CASE_FIXTURE(OnCpu, "generated kernels: one that cannot be compiled is not missed") {
  if (!metal::is_available()) return;
  exec::KernelLibrary::Parts parts = exec::KernelLibrary::process_parts();
  parts.disk.reset();
  exec::KernelLibrary library(std::move(parts));
  exec::KernelLibrary::replace(&library);
  CompileKernelsSetting setting(CompileKernels::at_once);
  Function f = compile([](const Arrays& in) { return Arrays{in[0] * in[0] + array(17.25f)}; });
  array x({1.0f, 2.0f});
  fault::arm(fault::Point::compile, 1, true);
  check_values<float>(f({x})[0], {2}, {18.25f, 21.25f});
  CHECK(fault::visits(fault::Point::compile) == 1);
  fault::disarm();
  check_values<float>(f({x})[0], {2}, {18.25f, 21.25f});
  exec::KernelLibrary::replace(nullptr);
}

TEST_CASE_FIXTURE(OnCpu, "generated kernels: many threads ask for one at once") {
  if (!metal::is_available()) return;
  CompileKernelsSetting setting(CompileKernels::at_once);
  Function f =
      compile([](const Arrays& in) { return Arrays{(in[0] + in[1]) * in[0] - array(0.125f)}; });
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        auto value = static_cast<float>(t * 20 + i);
        array got = f({full({50}, value), array(value)})[0];
        eval(got);
        if (got.data<float>()[49] != (value + value) * value - 0.125f) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE_FIXTURE(OnCpu, "generated kernels: a process may end while one is made [child]") {
  if (!is_child("generated kernels: a process may end while one is made [child]")) return;
  // Never destroyed: nor are those of a program that calls exit.
  static Function f = compile([](const Arrays& in) {
    array x = in[0];
    for (int i = 0; i < 7; ++i) x = where(x > in[1], x * in[1], x + array(0.77f));
    return Arrays{x};
  });
  array x = arange(0.0, 1 << 20, float32) / array(1e6f), y = array(0.5f);
  for (int call = 0; call < 100; ++call) eval(f({x, y}));
  report("done");
}

TEST_CASE_FIXTURE(OnCpu, "generated kernels: a process may end while one is made") {
  if (!metal::is_available()) return;
  const char* child = "generated kernels: a process may end while one is made [child]";
  for (int run = 0; run < 3; ++run) {
    CHECK(reported(run_child(child, {"HOLDFAST_DISK_CACHE=0"})) == "done\n");
  }
}
