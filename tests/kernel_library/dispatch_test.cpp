// The dispatch command: bindings, hazards, grids, ownership of pipelines by command lists.
#include <doctest/doctest.h>

#include "kernel_library/dispatching.h"
#include "support/gate.h"
#include "support/inspection.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;
using exec::KernelLibrary;

TEST_CASE("dispatch: a kernel runs over a grid, with a partial group at its edge") {
  FakeCompiler compiler;
  KernelLibrary library(compiler.parts(8));
  Stream stream = new_stream(Device::cpu);
  for (int size : {1, 31, 32, 33, 1000}) {
    CAPTURE(size);
    std::vector<int32_t> got =
        values(dispatch_op(library, request_for("3 1"), counting(size), stream));
    REQUIRE(got.size() == static_cast<size_t>(size));
    for (int i = 0; i < size; ++i) CHECK(got[static_cast<size_t>(i)] == 3 * i + 1);
  }
}

TEST_CASE("dispatch: a large grid is shared between workers, and each group runs once") {
  FakeCompiler compiler;
  KernelLibrary library(compiler.parts(8));
  Stream stream = new_stream(Device::cpu);
  int size = scaled(1 << 20, 1 << 18, 1 << 18);
  for (int round = 0; round < 3; ++round) {
    array x = counting(size);
    std::vector<int32_t> got = values(dispatch_op(library, request_for("2 5"), x, stream, 256));
    int wrong = 0;
    for (int i = 0; i < size; ++i) wrong += got[static_cast<size_t>(i)] != 2 * i + 5;
    CHECK(wrong == 0);
  }
}

TEST_CASE("dispatch: a chain in one command list sees what the one before wrote" *
          doctest::test_suite("no other layers")) {
  FakeCompiler compiler;
  KernelLibrary library(compiler.parts(8));
  Stream stream = new_stream(Device::cpu);
  CommitRecorder recorder;
  array x = counting(100);
  array y = x;
  for (int i = 0; i < 12; ++i) {
    y = dispatch_op(library, request_for(affine_source(i % 3 == 0 ? 2 : 1, i)), y, stream);
  }
  std::vector<int32_t> got = values(y);
  for (int i = 0; i < 100; ++i) {
    int expected = i;
    for (int k = 0; k < 12; ++k) expected = expected * (k % 3 == 0 ? 2 : 1) + k;
    CHECK(got[static_cast<size_t>(i)] == expected);
  }
  auto lists = recorder.lists(stream);
  REQUIRE(lists.size() == 1);
  REQUIRE(lists[0].commands.size() == 12);
  for (size_t i = 1; i < 12; ++i) {
    REQUIRE(lists[0].commands[i].edges.size() >= 1);
    CHECK(lists[0].commands[i].bindings.size() == 2);
    CHECK(lists[0].commands[i].bindings[1].writes);
  }
}

TEST_CASE("dispatch: layers see the pipeline and its grid") {
  struct Seen : exec::Layer {
    void on_commit(exec::CommandList& list) override {
      for (const exec::Command& command : list.commands) {
        if (command.kind != exec::Command::Kind::dispatch) continue;
        name = command.pipeline->name();
        grid = command.dispatch->grid[0];
        group = command.dispatch->threadgroup[0];
        pipelines = list.pipelines.size();
      }
    }
    std::string name;
    uint32_t grid = 0, group = 0;
    size_t pipelines = 0;
  };
  auto seen = std::make_shared<Seen>();
  exec::layers::add(seen);
  FakeCompiler compiler;
  KernelLibrary library(compiler.parts(8));
  values(dispatch_op(library, request_for("1 1", "named"), counting(10), new_stream(Device::cpu)));
  exec::layers::remove(seen.get());
  CHECK(seen->name == "named");
  CHECK(seen->grid == 10);
  CHECK(seen->group == 10);  // clamped
  CHECK(seen->pipelines == 1);
}

TEST_CASE("dispatch: one name with three bodies in one uncommitted command list" *
          doctest::test_suite("no other layers")) {
  FakeCompiler compiler;
  KernelLibrary library(compiler.parts(1));  // each one drops the one before
  Stream stream = new_stream(Device::cpu);
  array x = counting(64);
  eval(x);
  CommitRecorder recorder;
  array a = dispatch_op(library, request_for("2 0", "same"), x, stream);
  array b = dispatch_op(library, request_for("3 0", "same"), x, stream);
  array c = dispatch_op(library, request_for("5 7", "same"), x, stream);
  eval(a, b, c);
  CHECK(recorder.lists(stream).size() == 1);
  CHECK(library.stats().evictions == 2);
  CHECK(values(a)[10] == 20);
  CHECK(values(b)[10] == 30);
  CHECK(values(c)[10] == 57);
}

TEST_CASE("dispatch: a list owns its pipelines until it has completed") {
  size_t before = exec::Pipeline::live_count();
  FakeCompiler compiler;
  KernelLibrary library(compiler.parts(1));
  Stream stream = new_stream(Device::cpu);
  array x = counting(64);
  eval(x);
  std::vector<array> results;
  {
    Gate gate(stream);
    for (int i = 1; i <= 10; ++i) {
      results.push_back(dispatch_op(library, request_for(affine_source(i, 0)), x, stream));
      async_eval(results.back());
    }
    library.clear();
    // Nobody but the lists has them now.
    CHECK(exec::Pipeline::live_count() == before + 10);
  }
  synchronize(stream);
  CHECK(exec::Pipeline::live_count() == before);
  for (size_t i = 0; i < 10; ++i) CHECK(values(results[i])[9] == 9 * static_cast<int>(i + 1));
}

#if HOLDFAST_CHECKS
TEST_CASE("dispatch: without ownership the missing pipeline is reported, every run") {
  FakeCompiler compiler;
  KernelLibrary library(compiler.parts(1));
  Stream stream = new_stream(Device::cpu);
  array x = counting(64);
  eval(x);
  array y = x;
  std::string message;
  {
    // The arrays live: only the pipeline is missing.
    WithoutRetaining ablation(stream);
    Gate gate(stream);
    y = dispatch_op(library, request_for("2 0"), x, stream);
    async_eval(y);
    library.clear();
    gate.open();
    try {
      y.wait();
    } catch (const ExecutionError& error) {
      message = error.what();
    }
  }
  CHECK(message.find("pipeline was released") != std::string::npos);
  // The queue goes on.
  CHECK(values(dispatch_op(library, request_for("2 0"), x, stream))[4] == 8);
}
#endif

TEST_CASE("dispatch: an argument that nobody binds is an error before anything runs") {
  FakeCompiler compiler;
  KernelLibrary library(compiler.parts(1));
  Stream stream = new_stream(Device::cpu);
  array x = counting(8);
  array y =
      make_op("dispatch", stream, {x}, {8},
              [&](Encoder& encoder, const std::vector<array>& inputs, std::vector<array>& outputs) {
                Ref<exec::Pipeline> pipeline = library.get(request_for("1 1", "two"));
                encoder.allocate(outputs[0]);
                KernelBinding bindings[] = {KernelBinding::input(inputs[0])};
                encoder.dispatch(*pipeline, bindings, {8}, {8});
              });
  CHECK_THROWS_WITH_AS(eval(y), "[two] nothing is bound to its argument \"y\" (slot 1)",
                       std::invalid_argument);
  CHECK(y.status() == array::unscheduled);
}

TEST_CASE("dispatch: bytes are copied when the dispatch is encoded") {
  FakeCompiler compiler;
  KernelLibrary library(compiler.parts(1));
  Stream stream = new_stream(Device::cpu);
  array trigger = counting(1);
  array y = make_op("dispatch", stream, {trigger}, {4},
                    [&](Encoder& encoder, const std::vector<array>&, std::vector<array>& outputs) {
                      Ref<exec::Pipeline> pipeline = library.get(request_for("10 1"));
                      encoder.allocate(outputs[0]);
                      int32_t numbers[] = {1, 2, 3, 4};
                      KernelBinding bindings[] = {KernelBinding::bytes(numbers, sizeof(numbers)),
                                                  KernelBinding::output(outputs[0])};
                      encoder.dispatch(*pipeline, bindings, {4}, {4});
                      numbers[0] = 99;
                    });
  CHECK(values(y) == std::vector<int32_t>{11, 21, 31, 41});
}

TEST_CASE("dispatch: a kernel that throws fails what it writes, and the queue goes on") {
  Stream stream = new_stream(Device::cpu);
  msl::KernelInterface interface;
  interface.arguments = {{"y", msl::KernelArgument::Kind::device, true, 0, 4}};
  auto kernel = make_ref<exec::NativeKernel>("failing", interface,
                                             [](const jit::DispatchArguments&, int64_t) {
                                               throw std::runtime_error("[failing] went wrong");
                                             });
  array x = counting(8);
  array y = make_op("dispatch", stream, {x}, {8},
                    [&](Encoder& encoder, const std::vector<array>&, std::vector<array>& outputs) {
                      encoder.allocate(outputs[0]);
                      KernelBinding bindings[] = {KernelBinding::output(outputs[0])};
                      encoder.dispatch(*kernel, bindings, {8}, {8});
                    });
  CHECK_THROWS_WITH_AS(eval(y), "[failing] went wrong", ExecutionError);
  CHECK(values(affine(x, 2, 0, stream))[3] == 6);
}
