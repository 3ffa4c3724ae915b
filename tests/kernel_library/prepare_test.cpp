// Kernels are made ready before their stream is locked: encoding an op of the library neither
// compiles nor waits.
#include <doctest/doctest.h>

#include <memory>

#include "graph/op.h"
#include "kernel_library/fake_metal.h"
#include "support/test_ops.h"
#include "transforms/compile_kernels_setting.h"

using namespace holdfast;
using namespace holdfast::testing;
using exec::KernelLibrary;

namespace {

// Notes for each compilation whether the thread held a stream.
struct CompilesSeen {
  explicit CompilesSeen(FakeMetal& metal) {
    metal.hook = [this](const msl::KernelSource&) {
      ++all;
      locked += KernelLibrary::only_finds;
    };
  }
  int all = 0, locked = 0;
};

Ref<const exec::KernelRequest> nothing_request() {
  exec::Target& target = exec::target_of(default_stream(default_device()));
  return make_ref<exec::KernelRequest>(named_source("nothing", "NATIVE nothing ;"),
                                       exec::KernelOptions{}, target);
}

// An op of the library that asks for its kernel too late.
class LateOp final : public Op {
 public:
  explicit LateOp(Stream stream) : Op(stream) {}
  const char* name() const override { return "LateOp"; }
  void encode(Encoder& encoder, const std::vector<array>&, std::vector<array>& outputs) override {
    encoder.allocate(outputs[0]);
    const int32_t zero = 0;
    encoder.fill(outputs[0], &zero);
    KernelLibrary::get().get(nothing_request());
  }
};

}  // namespace

TEST_CASE("prepare: a custom kernel is compiled with no stream locked, again when it was dropped") {
  FakeMetal metal(1);
  CompilesSeen seen(metal);
  metal.define("nothing", [](std::span<void* const>, int64_t) {});
  auto one = fast::metal_kernel("one", {}, {"y"}, "NATIVE nothing ;", "// one");
  auto other = fast::metal_kernel("other", {}, {"y"}, "NATIVE nothing ;", "// other");
  for (const auto& kernel : {one, other, one}) eval(Call{{}, {{1}}, {float32}}(kernel));
  CHECK(seen.all == 3);
  CHECK(seen.locked == 0);
}

TEST_CASE("prepare: the kernel of a compiled function is compiled with no stream locked") {
  FakeMetal metal;
  CompilesSeen seen(metal);
  CompileKernelsSetting setting(CompileKernels::at_once);
  auto f = compile(
      [](const std::vector<array>& in) { return std::vector<array>{in[0] * in[0] + array(1.5f)}; });
  array x({1.0f, 2.0f});
  array y = f({x})[0];
  eval(y);
  CHECK(y.data<float>()[1] == 5.5f);
  CHECK(seen.all == 1);
  CHECK(seen.locked == 0);
}

TEST_CASE("prepare: a program's primitive may compile while it is encoded") {
  FakeMetal metal;
  CompilesSeen seen(metal);
  metal.define("nothing", [](std::span<void* const>, int64_t) {});
  array y = make_op("own", default_stream(default_device()), {}, {1},
                    [](Encoder& encoder, const std::vector<array>&, std::vector<array>& out) {
                      KernelLibrary::get().get(nothing_request());
                      encoder.allocate(out[0]);
                      const int32_t seven = 7;
                      encoder.fill(out[0], &seven);
                    });
  CHECK(y.item<int32_t>() == 7);
  CHECK(seen.all == 1);
}

TEST_CASE(
    "prepare: an op of the library that compiles while it is encoded is found by test builds") {
  FakeMetal metal;
  CompilesSeen seen(metal);
  metal.define("nothing", [](std::span<void* const>, int64_t) {});
  auto run = [] {
    eval(detail::make_checked({1}, int32, std::make_shared<LateOp>(default_stream(Device::cpu)),
                              {}));
  };
#if HOLDFAST_CHECKS
  CHECK_THROWS_WITH_AS(run(), doctest::Contains("while its stream is locked"), std::logic_error);
  CHECK(seen.all == 0);
  KernelLibrary::get().get(nothing_request());
  run();  // one that is there is only found
#else
  run();
  CHECK(seen.locked == 1);
#endif
}
