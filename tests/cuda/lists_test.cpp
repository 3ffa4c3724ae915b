// Command lists on the fake GPU: their values, their graphs, what they wait for, what they hold.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "base/fault.h"
#include "cuda/fake_ops.h"
#include "kernel_library/temporary_folder.h"
#include "support/gate.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;

TEST_CASE_FIXTURE(OnFakeGpu, "what a GPU computes comes back to the host") {
  for (bool is_of_library : {true, false}) {
    Ref<exec::Pipeline> kernel = affine_kernel(is_of_library);
    Stream stream = new_stream(Device::gpu);
    // Sizes that are launched as they are, and that need positions to be computed.
    for (int count : {1, 31, 32, 4096, 100'000}) {
      const Values values = iota(count);
      CHECK(values_of(affine(kernel, leaf_of(values), 3, 7, stream)) == affine_of(values, 3, 7));
    }
  }
}

TEST_CASE_FIXTURE(OnFakeGpu, "a list of one topology has one graph") {
  Ref<exec::Pipeline> kernel = affine_kernel();
  Stream stream = new_stream(Device::gpu);
  array x = leaf_of(iota(64));
  eval(affine(kernel, x, 1, 0, stream));  // x is there from now on
  auto run = [&](int length, int32_t factor) {
    array y = x;
    Values expected = iota(64);
    for (int i = 0; i < length; ++i) {
      y = affine(kernel, y, factor, i, stream);
      expected = affine_of(expected, factor, i);
    }
    CHECK(values_of(y) == expected);
  };
  run(6, 3);
  const uint64_t built = fake.calls("cuGraphInstantiateWithFlags");
  const uint64_t launched = fake.calls("cuGraphLaunch");
  for (int32_t factor : {3, 3, 5, 3}) run(6, factor);
  CHECK(fake.calls("cuGraphInstantiateWithFlags") == built);
  CHECK(fake.calls("cuGraphLaunch") == launched + 4);
  run(7, 3);
  CHECK(fake.calls("cuGraphInstantiateWithFlags") == built + 1);
  // Short ones have none.
  run(3, 3);
  CHECK(fake.calls("cuGraphInstantiateWithFlags") == built + 1);
  CHECK(fake.calls("cuGraphLaunch") == launched + 5);
}

TEST_CASE_FIXTURE(OnFakeGpu, "the image fits the dispatch") {
  std::string image;
  Ref<exec::Pipeline> kernel =
      make_fake_kernel("which", true, [&](const FakeLaunch& launch) { image = launch.symbol; });
  Stream stream = new_stream(Device::gpu);
  auto run = [&](const array& x, int threads, int group, bool in_place = false) {
    eval(make_op(
        "which", stream, {x}, x.shape(),
        [&](Encoder& encoder, const std::vector<array>& inputs, std::vector<array>& outputs) {
          encoder.allocate(outputs[0]);
          const int64_t parameters = 0;
          const array& in = in_place ? outputs[0] : inputs[0];
          KernelBinding bindings[] = {KernelBinding::input(in), KernelBinding::output(outputs[0]),
                                      KernelBinding::bytes(&parameters, 8)};
          encoder.dispatch(*kernel, bindings, {static_cast<uint32_t>(threads)},
                           {static_cast<uint32_t>(group)});
        }));
    return image;
  };
  array x = leaf_of(iota(64));
  array y = affine(affine_kernel(), x, 1, 0, stream);  // the GPU's
  eval(y);
  CHECK(run(y, 64, 32) == "rows");
  CHECK(run(y, 40, 32) == "general");
  CHECK(run(y, 48, 16) == "general");
  CHECK(run(y, 64, 32, true) == "general");
  CHECK(run(slice(y, {4}, {36}), 32, 32) == "rows");
  CHECK(run(slice(y, {1}, {33}), 32, 32) == "general");
}

TEST_CASE_FIXTURE(OnFakeGpu, "a capture sees what a GPU computes, one command at a time") {
  TemporaryFolder folder;
  Ref<exec::Pipeline> kernel = affine_kernel();
  Stream stream = new_stream(Device::gpu);
  metal::start_capture(folder.path() + "/capture.hfcap");
  array y = leaf_of(iota(100));
  for (int i = 0; i < 6; ++i) y = affine(kernel, y, 2, i, stream);
  Values expected = iota(100);
  for (int i = 0; i < 6; ++i) expected = affine_of(expected, 2, i);
  CHECK(values_of(y) == expected);
  metal::stop_capture();
}

TEST_CASE_FIXTURE(OnFakeGpu, "what was cancelled before it started fails") {
  Ref<exec::Pipeline> kernel = affine_kernel();
  Stream stream = new_stream(Device::gpu), host = new_stream(Device::cpu);
  Gate gate(host);
  array blocked = add(leaf_of(iota(10)), array(1), host);
  array y = affine(kernel, blocked, 1, 1, stream);
  async_eval({y});
  cancel(stream);
  gate.open();
  CHECK_THROWS_AS(values_of(y), Cancelled);
  CHECK(values_of(affine(kernel, leaf_of(iota(10)), 1, 1, stream)) == iota(10, 1));
}

TEST_CASE_FIXTURE(OnFakeGpu, "copies to the GPU wait for what used their memory before") {
  Ref<exec::Pipeline> kernel = affine_kernel();
  Stream stream = new_stream(Device::gpu);
  for (int round = 0; round < 3; ++round) {
    std::vector<array> results;
    for (int i = 0; i < 8; ++i) {
      // The memory between the two goes to the next array that is copied.
      array between = affine(kernel, leaf_of(iota(500, i)), 2, 0, stream);
      results.push_back(affine(kernel, between, 1, i, stream));
    }
    eval(results);
    for (int i = 0; i < 8; ++i)
      CHECK(values_of(results[static_cast<size_t>(i)]) == affine_of(iota(500, i), 2, i));
  }
}

TEST_CASE_FIXTURE(OnFakeGpu, "copies that are larger than the pinned ring") {
  Ref<exec::Pipeline> kernel = affine_kernel();
  Stream stream = new_stream(Device::gpu);
  const int count = scaled(6'000'000, 3'000'000, 600'000);
  const Values values = iota(count, 7);
  fake.set_seed(3, 100);
  CHECK(values_of(affine(kernel, leaf_of(values), 1, 1, stream)) == iota(count, 8));
  fake.set_seed(3);
}

TEST_CASE_FIXTURE(OnFakeGpu, "what has read an array before it failed is good") {
  Ref<exec::Pipeline> kernel = affine_kernel();
  Stream stream = new_stream(Device::gpu);
  array x = affine(kernel, leaf_of(iota(20)), 1, 0, stream);
  eval(x);
  array before = affine(kernel, x, 1, 1, stream);
  array overwritten =
      make_op("overwrite", stream, {x, before}, {20},
              [](Encoder& encoder, const std::vector<array>& inputs, std::vector<array>& outputs) {
                const int32_t zero = 0;
                encoder.allocate(outputs[0]);
                encoder.output(outputs[0]);
                array target = inputs[0];
                encoder.fill(target, &zero);
              });
  fault::arm(fault::Point::dispatch, 2);
  CHECK_THROWS_AS(eval(overwritten), ExecutionError);
  fault::disarm();
  CHECK(values_of(before) == iota(20, 1));
}

TEST_CASE_FIXTURE(OnFakeGpu, "modules end with their kernels") {
  const size_t before = fake.counts().modules;
  Ref<exec::Pipeline> kernel = affine_kernel();
  CHECK(fake.counts().modules == before + 2);
  kernel = nullptr;
  CHECK(fake.counts().modules == before);
}

TEST_CASE_FIXTURE(OnFakeGpu, "the number of graphs is bounded") {
  Ref<exec::Pipeline> kernel = affine_kernel();
  Stream stream = new_stream(Device::gpu);
  array x = leaf_of(iota(8));
  const size_t before = fake.counts().graphs;
  for (int length = 4; length < 4 + 80; ++length) {
    array y = x;
    for (int i = 0; i < length; ++i) y = affine(kernel, y, 1, 1, stream);
    CHECK(values_of(y)[0] == length);
  }
  CHECK(fake.counts().graphs <= before + 64);
}

TEST_CASE_FIXTURE(OnFakeGpu, "fills take patterns of every size") {
  Stream stream = new_stream(Device::gpu);
  auto check = [&](auto value, Dtype dtype, int count) {
    using T = decltype(value);
    auto fill = [value](Encoder& encoder, const std::vector<array>&, std::vector<array>& outputs) {
      encoder.allocate(outputs[0]);
      encoder.fill(outputs[0], &value);
    };
    array a({count}, dtype, std::make_shared<FunctionOp>(stream, "fill", fill), {});
    eval(a);
    const array& read = a;
    for (int i = 0; i < count; ++i) CHECK(read.data<T>()[i] == value);
  };
  for (int count : {1, 77}) {
    check(uint8_t{0xa7}, uint8, count);
    check(uint16_t{0xa7c1}, uint16, count);
    check(uint32_t{0xa7c1d2e3}, uint32, count);
    check(uint64_t{0xa7c1d2e3f4051627}, uint64, count);
    check(complex64_t{1.5F, -2.25F}, complex64, count);
  }
}

TEST_CASE_FIXTURE(OnFakeGpu, "a list holds what it refers to until the GPU has run it") {
  Stream stream = new_stream(Device::gpu);
  const Values values = iota(1000);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    fake.set_seed(seed);
    fake.hold();
    array result = [&] {
      Ref<exec::Pipeline> kernel = affine_kernel();  // goes with the scope
      array x = leaf_of(values);
      array y = affine(kernel, affine(kernel, x, 2, 0, stream), 1, 5, stream);
      array z = affine(kernel, affine(kernel, y, 1, 1, stream), 3, 0, stream);
      async_eval({z});
      return z;
    }();
    // Memory that is taken meanwhile is not theirs.
    Ref<exec::Pipeline> kernel = affine_kernel();
    Stream other = new_stream(Device::gpu);
    std::vector<array> more;
    for (int i = 0; i < 4; ++i) more.push_back(affine(kernel, leaf_of(iota(1000, i)), 1, 0, other));
    async_eval(more);
    fake.release();
    CHECK(values_of(result) == affine_of(affine_of(values, 2, 6), 3, 0));
    for (int i = 0; i < 4; ++i) CHECK(values_of(more[static_cast<size_t>(i)]) == iota(1000, i));
  }
}

TEST_CASE_FIXTURE(OnFakeGpu, "queues wait for each other and for the host, in both directions") {
  Ref<exec::Pipeline> kernel = affine_kernel();
  const int steps = scaled(40, 20, 6), seeds = scaled(20, 5, 2);
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(seeds); ++seed) {
    CAPTURE(seed);
    fake.set_seed(seed, 30);
    std::mt19937_64 random(seed);
    std::vector<Stream> streams = {new_stream(Device::gpu), new_stream(Device::gpu),
                                   new_stream(Device::cpu), new_stream(Device::cpu)};
    std::vector<array> arrays = {leaf_of(iota(50))};
    std::vector<Values> expected = {iota(50)};
    for (int i = 0; i < steps; ++i) {
      const size_t from = random() % arrays.size();
      Stream stream = streams[random() % streams.size()];
      const auto factor = static_cast<int32_t>(random() % 7);
      if (stream.device == Device::gpu) {
        arrays.push_back(affine(kernel, arrays[from], factor, i, stream));
      } else {
        arrays.push_back(add(multiply(arrays[from], array(factor), stream), array(i), stream));
      }
      expected.push_back(affine_of(expected[from], factor, i));
      if (random() % 4 == 0) async_eval({arrays.back()});
      if (random() % 9 == 0) {
        const size_t read = random() % arrays.size();
        CHECK(values_of(arrays[read]) == expected[read]);
      }
      if (arrays.size() > 12) {
        const size_t gone = random() % arrays.size();
        arrays.erase(arrays.begin() + static_cast<std::ptrdiff_t>(gone));
        expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(gone));
      }
    }
    for (size_t i = 0; i < arrays.size(); ++i) CHECK(values_of(arrays[i]) == expected[i]);
  }
}

TEST_CASE_FIXTURE(OnFakeGpu, "many threads compute, share and drop") {
  Ref<exec::Pipeline> kernel = affine_kernel();
  fake.set_seed(7, 1);
  const array shared = leaf_of(iota(200));
  on_threads(scaled(16, 8, 3), [&](int thread) {
    Stream stream = new_stream(Device::gpu);
    for (int round = 0; round < scaled(20, 6, 2); ++round) {
      array y = shared;
      for (int i = 0; i < 5; ++i) y = affine(kernel, y, 1, thread + i, stream);
      async_eval({y});
      if (round % 3 == 0) continue;  // dropped in flight
      CHECK(values_of(y) == affine_of(iota(200), 1, 5 * thread + 10));
    }
  });
}
