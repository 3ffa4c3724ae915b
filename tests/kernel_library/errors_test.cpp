// Reports of errors: what a kernel finds wrong with its data fails its command.
#include <doctest/doctest.h>

#include "devices/cpu/cpu_kernel.h"
#include "devices/error_report.h"
#include "kernel_library/dispatching.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr char texts[] = "[probe] first {}\0[probe] {} of {}\0no numbers";

std::string message(uint32_t code, int64_t first = 0, int64_t second = 0) {
  return exec::message_of({1, code, {first, second}}, {texts, sizeof(texts)});
}

}  // namespace

TEST_CASE("errors: a report names its message, with its numbers") {
  CHECK(message(1, INT64_MIN) == "[probe] first -9223372036854775808");
  CHECK(message(2, 7, -8) == "[probe] 7 of -8");
  CHECK(message(3, 7) == "no numbers");
  CHECK(message(4) == "");
  CHECK(message(1000000) == "");
}

TEST_CASE("errors: a kernel's report fails what its command writes, and the queue goes on") {
  Stream stream = new_stream(Device::cpu);
  msl::KernelInterface interface;
  interface.arguments = {{"y", msl::KernelArgument::Kind::device, true, 0, 4},
                         {"x", msl::KernelArgument::Kind::device, false, 1, 4},
                         {"errors", msl::KernelArgument::Kind::device, true, 2, 8}};
  auto kernel = make_ref<exec::NativeKernel>(
      "probe", interface, [](const jit::DispatchArguments& arguments, int64_t) {
        auto* y = static_cast<int32_t*>(arguments.buffers[0]);
        const auto* x = static_cast<const int32_t*>(arguments.buffers[1]);
        auto& report = *static_cast<exec::ErrorReport*>(arguments.buffers[2]);
        CHECK(report.code == 0);
        for (int i = 0; i < 4; ++i) y[i] = x[i];
        if (x[0] < 0) report = {1, 2, {x[0], x[1]}};
      });
  auto probe = [&](const array& x) {
    return make_op("Probe", stream, {x}, {4}, [&](Encoder& encoder, const auto& in, auto& outputs) {
      encoder.allocate(outputs[0]);
      std::string copied(texts, sizeof(texts));
      KernelBinding bindings[] = {KernelBinding::output(outputs[0]), KernelBinding::input(in[0]),
                                  KernelBinding::errors(copied.data(), copied.size())};
      encoder.dispatch(*kernel, bindings, {4}, {4});
    });
  };
  array bad = probe(array({-5, 12, 0, 0})), after = affine(bad, 2, 0, stream);
  array good = probe(array({5, 12, 0, 0}));
  CHECK_THROWS_WITH_AS(eval(after, good), "[probe] -5 of 12", ExecutionError);
  CHECK_THROWS_WITH_AS(bad.eval(), "[probe] -5 of 12", ExecutionError);
  CHECK(values(good) == std::vector<int32_t>{5, 12, 0, 0});
}
