// Kernels are made ready before their stream is locked: encoding an op of the library neither
// compiles nor waits.
#include <doctest/doctest.h>

#include <memory>

#include "graph/encoder_scope.h"
#include "graph/op.h"
#include "kernel_library/fake_metal.h"
#include "support/device.h"
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
      locked += EncoderScope::current() != nullptr;
    };
  }
  int all = 0, locked = 0;
};

Ref<const exec::KernelRequest> nothing_request(const std::string& name = "nothing") {
  exec::Target& target = exec::target_of(default_stream(default_device()));
  return make_ref<exec::KernelRequest>(named_source(name, "NATIVE nothing ;"),
                                       exec::KernelOptions{}, target);
}

// An op of the library that asks for its kernels too late.
class LateOp final : public Op {
 public:
  explicit LateOp(Stream stream) : Op(stream) {}
  const char* name() const override { return "LateOp"; }
  void encode(Encoder& encoder, const std::vector<array>&, std::vector<array>& outputs) override {
    ++encodings;
    CHECK(!outputs[0].data_shared_ptr());
    encoder.allocate(outputs[0]);
    const int32_t seven = 7;
    encoder.fill(outputs[0], &seven);
    for (const char* name : {"first", "second", "third"})
      KernelLibrary::get().get(nothing_request(name));
  }
  int encodings = 0;
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

TEST_CASE_FIXTURE(OnCpu,
                  "prepare: the kernel of a compiled function is compiled with no stream locked") {
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

TEST_CASE("prepare: an op that asks for kernels while it is encoded is encoded again") {
  FakeMetal metal(1);  // each kernel drops the one before
  CompilesSeen seen(metal);
  metal.define("nothing", [](std::span<void* const>, int64_t) {});
  auto late = std::make_shared<LateOp>(default_stream(default_device()));
  array x = detail::make_checked({1}, int32, late, {});
  CHECK(x.item<int32_t>() == 7);
  CHECK(seen.all == 3);
  CHECK(seen.locked == 0);
  CHECK(late->encodings == 4);
}

TEST_CASE("prepare: a late kernel that does not compile leaves the node as it was") {
  FakeMetal metal;
  metal.hook = [](const msl::KernelSource&) { throw std::runtime_error("no luck"); };
  array x = detail::make_checked({1}, int32,
                                 std::make_shared<LateOp>(default_stream(default_device())), {});
  CHECK_THROWS_WITH_AS(eval(x), doctest::Contains("no luck"), std::runtime_error);
  CHECK(x.status() == array::unscheduled);
  metal.hook = {};
  metal.define("nothing", [](std::span<void* const>, int64_t) {});
  CHECK(x.item<int32_t>() == 7);
}
