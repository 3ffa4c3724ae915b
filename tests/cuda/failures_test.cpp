// What goes wrong on the fake GPU: kernels that report, calls that fail, memory that ends, kernels
// that do not end.
#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>

#include "base/environment.h"
#include "base/fault.h"
#include "cuda/fake_ops.h"
#include "devices/error_report.h"
#include "support/child.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr int invalid_value = 1, illegal_address = 700;

// A program of copies, kernels in a graph and others, on two streams and on the host.
Values run_program(const Ref<exec::Pipeline>& kernel) {
  Stream stream = new_stream(Device::gpu), other = new_stream(Device::gpu);
  array y = leaf_of(iota(300));
  for (int i = 0; i < 5; ++i) y = affine(kernel, y, 1, 1, stream);
  array z = affine(kernel, y, 2, 0, other);
  return values_of(add(z, y, Device::cpu));
}
Values result_of_program() { return affine_of(iota(300), 3, 15); }

Ref<exec::Pipeline> reporting_kernel() {
  return make_fake_kernel("reporting", true, [](const FakeLaunch& launch) {
    auto* in = static_cast<const int32_t*>(launch.arguments.buffers[0]);
    auto* report = static_cast<exec::ErrorReport*>(launch.arguments.buffers[1]);
    if (in[0] >= 0) return;
    report->is_claimed = 1;
    report->code = 2;
    report->numbers[0] = in[0];
  });
}

// Gives its input, or an error.
array checked(const Ref<exec::Pipeline>& reporting, const Ref<exec::Pipeline>& kernel,
              const array& x, Stream stream) {
  return make_op(
      "checked", stream, {x}, x.shape(),
      [=](Encoder& encoder, const std::vector<array>& inputs, std::vector<array>& outputs) {
        static constexpr char texts[] = "one\0expected no {}";
        encoder.allocate(outputs[0]);
        dispatch_affine(encoder, *kernel, inputs[0], outputs[0], 1, 0);
        const int32_t nothing = 0;
        KernelBinding bindings[] = {KernelBinding::input(inputs[0]),
                                    KernelBinding::errors(texts, sizeof(texts)),
                                    KernelBinding::bytes(&nothing, 4)};
        encoder.output(outputs[0]);
        encoder.dispatch(*reporting, bindings, {1}, {1});
      });
}

}  // namespace

TEST_CASE_FIXTURE(OnFakeGpu, "what a kernel reports fails its op and what depends on it") {
  Ref<exec::Pipeline> kernel = affine_kernel(), reporting = reporting_kernel();
  Stream stream = new_stream(Device::gpu);
  array good = leaf_of({5, 6}), bad = leaf_of({-3, 6});
  for (int i = 0; i < 3; ++i) {
    array fails = checked(reporting, kernel, bad, stream);
    array after = affine(kernel, fails, 1, 1, stream);
    array other = affine(kernel, good, 1, 1, stream);
    CHECK_THROWS_WITH_AS(eval(after), "[checked] expected no -3", ExecutionError);
    CHECK(values_of(checked(reporting, kernel, good, stream)) == Values{5, 6});
    CHECK(values_of(other) == Values{6, 7});
  }
}

TEST_CASE_FIXTURE(OnFakeGpu, "a failed command fails what depends on it, and nothing else") {
  Ref<exec::Pipeline> kernel = affine_kernel();
  Stream stream = new_stream(Device::gpu);
  array x = leaf_of(iota(10));
  eval(affine(kernel, x, 1, 0, stream));
  array first = affine(kernel, x, 1, 1, stream);
  array second = affine(kernel, first, 1, 1, stream);
  array third = affine(kernel, x, 2, 0, stream);
  fault::arm(fault::Point::dispatch, 1);
  CHECK_THROWS_AS(eval(second), ExecutionError);
  fault::disarm();
  CHECK(values_of(third) == affine_of(iota(10), 2, 0));
}

TEST_CASE_FIXTURE(OnFakeGpu, "any call of the driver may fail") {
  Ref<exec::Pipeline> kernel = affine_kernel();
  CHECK(run_program(kernel) == result_of_program());
  fake.set_seed(1, 0);
  const int most = scaled(400, 60, 10);
  int failed = 0;
  for (int k = 1; k < most; ++k) {
    CAPTURE(k);
    fake.fail_call(static_cast<uint64_t>(k), invalid_value);
    try {
      CHECK(run_program(kernel) == result_of_program());
    } catch (const std::exception& error) {
      ++failed;
      CHECK(std::string(error.what()).size() > 10);
    }
    fake.fail_call(0, 0);
    CHECK(run_program(kernel) == result_of_program());
  }
  CHECK(failed > 5);
  CHECK_FALSE(gpu.is_lost());
}

TEST_CASE_FIXTURE(OnFakeGpu, "each function of the driver may fail") {
  Ref<exec::Pipeline> kernel = affine_kernel();
  for (const char* symbol : {
#define FUNCTION(member, symbol, ...) symbol,
#include "devices/cuda/driver_functions.def"
#undef FUNCTION
       }) {
    CAPTURE(symbol);
    // Out of memory is an error of the allocator.
    for (int code : {invalid_value, 2}) {
      fake.fail_call(1, code, symbol);
      try {
        CHECK(run_program(kernel) == result_of_program());
      } catch (const std::exception&) {
      }
      fake.fail_call(0, 0);
      CHECK(run_program(kernel) == result_of_program());
    }
  }
  CHECK_FALSE(gpu.is_lost());
}

TEST_CASE_FIXTURE(OnFakeGpu, "memory that ends is found before the op is encoded") {
  Ref<exec::Pipeline> kernel = affine_kernel();
  Stream stream = new_stream(Device::gpu);
  array x = leaf_of(iota(1'000'000));
  eval(affine(kernel, x, 1, 0, stream));
  clear_cache();
  fake.set_memory(fake.counts().bytes + (size_t{1} << 20));
  array y = affine(kernel, x, 1, 1, stream);
  CHECK_THROWS_AS(eval(y), OutOfMemory);
  fake.set_memory(size_t{1} << 30);
  CHECK(values_of(y) == iota(1'000'000, 1));
}

TEST_CASE_FIXTURE(OnFakeGpu, "a kernel that does not end is stopped") {
  if (controlled::enabled()) return;  // it waits for real time
  // Ends when it is cancelled.
  Ref<exec::Pipeline> endless = make_fake_kernel("endless", false, [](const FakeLaunch& launch) {
    while (std::atomic_ref(*launch.cancelled).load() == 0)
      sync::sleep_for(std::chrono::microseconds(50));
  });
  Ref<exec::Pipeline> kernel = affine_kernel();
  Stream stream = new_stream(Device::gpu);
  array x = leaf_of(iota(10));
  environment::Settings& settings = environment::settings_for_tests();
  const double limit = std::exchange(settings.kernel_timeout, 0.05);
  array y = affine(endless, x, 1, 0, stream);
  CHECK_THROWS_WITH_AS(eval(y), doctest::Contains("HOLDFAST_KERNEL_TIMEOUT"), ExecutionError);
  settings.kernel_timeout = limit;
  CHECK(values_of(affine(kernel, x, 1, 1, stream)) == iota(10, 1));
}

namespace {

std::string lose_the_gpu(FakeDriver& fake, const std::string& symbol) {
  Ref<exec::Pipeline> kernel = affine_kernel();
  Stream stream = new_stream(Device::gpu);
  array x = leaf_of(iota(10));
  array both = affine(kernel, x, 2, 0, stream), there = affine(kernel, x, 3, 0, stream);
  eval({both, there});
  if (values_of(both) != affine_of(iota(10), 2, 0)) return "wrong before";
  array open = x;
  for (int i = 0; i < (symbol == "cuGraphLaunch" ? 5 : 2); ++i)
    open = affine(kernel, open, 1, 1, stream);
  fake.fail_call(1, illegal_address, symbol);
  auto is_lost = [](const std::function<void()>& use) {
    try {
      use();
    } catch (const DeviceLost& error) {
      return std::string(error.what()).find("is lost") != std::string::npos;
    } catch (...) {
    }
    return false;
  };
  // A copy to the host is found when the host asks.
  if (symbol == "cuMemcpyDtoHAsync_v2") {
    if (!is_lost([&] { values_of(there); })) return "the copy did not fail";
  } else if (!is_lost([&] { eval(open); })) {
    return "the op in flight did not fail";
  }
  if (!is_lost([&] { values_of(there); })) return "what only the GPU had lives";
  if (!is_lost([&] { eval(affine(kernel, x, 1, 0, stream)); })) return "a later op did not fail";
  if (!is_lost([&] { affine_kernel(); })) return "a kernel was loaded";
  // What the host has as well lives.
  if (values_of(both) != affine_of(iota(10), 2, 0)) return "what the host had is lost";
  if (values_of(add(x, both, Device::cpu)) != affine_of(iota(10), 3, 0)) return "the host is lost";
  return "good";
}

}  // namespace

TEST_CASE("child: the GPU is lost") {
  if (!is_child("child: the GPU is lost")) return;
  OnFakeGpu on;
  report(lose_the_gpu(on.fake, std::getenv("HOLDFAST_TEST_SYMBOL")));
}

TEST_CASE("after a fault the GPU is lost, and the rest goes on") {
  if (controlled::enabled()) return;  // child processes
  for (std::string symbol :
       {"cuGraphLaunch", "cuStreamWriteValue64_v2", "cuLaunchKernel", "cuMemcpyDtoHAsync_v2"}) {
    CAPTURE(symbol);
    const ChildResult result =
        run_child("child: the GPU is lost", {"HOLDFAST_TEST_SYMBOL=" + symbol});
    CHECK(result.exit_code == 0);
    CHECK(reported(result) == "good\n");
  }
}
