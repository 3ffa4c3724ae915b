// Replays: parts of a capture, other instruction sets, under validation.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include <holdfast/holdfast.h>
#include <holdfast/validation.h>

#include "capture/file.h"
#include "capture/programs.h"
#include "kernels/cpu/instruction_set.h"
#include "support/device.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;

TEST_CASE_FIXTURE(OnCpu, "replay: only some commands are checked, and nothing behind them runs") {
  File file("only");
  Stream s = default_stream(Device::cpu);
  array x = random::normal({64}, float32, 0.0f, 1.0f, random::key(1));
  eval(x);
  record(file, [&] {
    for (int i = 0; i < 10; ++i) {
      x = sin(x, s) + array(1.0f);
      eval(x);
    }
  });
  Capture read(file.path);
  REQUIRE(read.commands == 10);
  std::vector<int64_t> seen;
  capture::ReplayOptions options;
  options.first = 4;
  options.last = 6;
  options.on_output = [&](const capture::Digest& digest, std::string_view) {
    for (const capture::List& list : read.lists) {
      if (list.id == digest.list) seen.push_back(list.first_number + digest.command);
    }
  };
  capture::ReplayResult result = capture::replay(read, options);
  CHECK(seen == std::vector<int64_t>{4, 5, 6});
  CHECK(result.commands == 7);
  CHECK(result.checked == 3);
  CHECK(result.differences.empty());
}

TEST_CASE("replay: on other instruction sets, the same within rounding") {
  File file("instructions");
  Stream s = default_stream(Device::cpu);
  array x = random::normal({32, 32}, float32, 0.0f, 1.0f, random::key(1));
  eval(x);
  record(file, [&] { eval(network(x, s)); });
  Capture read(file.path);
  auto outputs = [&] {
    std::vector<float> values;
    capture::ReplayOptions options;
    options.on_output = [&](const capture::Digest&, std::string_view bytes) {
      size_t count = values.size();
      values.resize(count + bytes.size() / sizeof(float));
      std::memcpy(values.data() + count, bytes.data(), bytes.size() / 4 * 4);
    };
    CHECK(capture::replay(read, options).checked >= 4);
    return values;
  };
  std::vector<float> expected = outputs();
  for (kernels::cpu::InstructionSet set : kernels::cpu::available_instruction_sets()) {
    CAPTURE(kernels::cpu::instruction_set_name(set));
    kernels::cpu::force_instruction_set(set);
    std::vector<float> values = outputs();
    kernels::cpu::unforce_instruction_set();
    REQUIRE(values.size() == expected.size());
    float worst = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      worst = std::max(worst, std::abs(values[i] - expected[i]) / (1 + std::abs(expected[i])));
    }
    CHECK(worst < 1e-5f);
  }
}

TEST_CASE("replay: under validation, what a recorded dispatch does wrong is found") {
  if (!metal::is_available()) return;
  Ref<exec::Pipeline> pipeline = compiled_probe(
      "kernel void probe(const device int* x [[buffer(0)]], device int* y [[buffer(1)]], "
      "uint i [[thread_position_in_grid]]) { y[i] = x[i]; }");
  // `distance` elements between what the kernel reads and what it writes, in one buffer.
  auto found_with = [&](int distance) {
    File file("validated");
    Stream s = default_stream(Device::cpu);
    record(file, [&] {
      eval(make_op(
          "Probe", s, {counting(16)}, {16}, [=](Encoder& encoder, const auto& in, auto& out) {
            array x(Shape{16}, int32, nullptr, {}), y(Shape{16}, int32, nullptr, {});
            x.set_data(encoder.allocate(256));
            y.copy_shared_buffer(x, Strides{1}, {true, true, true}, 16, distance);
            KernelBinding overlapping[] = {KernelBinding::input(x), KernelBinding::output(y)};
            encoder.dispatch(*pipeline, overlapping, {16}, {16});
            encoder.allocate(out[0]);
            KernelBinding bindings[] = {KernelBinding::input(in[0]), KernelBinding::output(out[0])};
            encoder.dispatch(*pipeline, bindings, {16}, {16});
          }));
    });
    Capture read(file.path);
    validation::Scope scope;
    CHECK(capture::replay(read).differences.empty());
    std::string found;
    for (const validation::Report& report : scope.reports()) found += report.id + ";";
    return found;
  };
  CHECK(found_with(16) == "");
  CHECK(found_with(1) == "bindings.same-memory;kernels.race;");
}
