// Captures of commands that work on parts of buffers, of inline bytes and of nothing: made here,
// and made by earlier versions (corpus).
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include <holdfast/holdfast.h>
#include <holdfast/validation.h>

#include "capture/file.h"
#include "capture/programs.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// y[i] = tile[3 - i] - 2 * backwards[-i] + f, of which `tile` gets `part`.
constexpr const char* places_source = R"(
using namespace metal;
kernel void probe(device int* y [[buffer(4)]], threadgroup int* tile [[threadgroup(1)]],
                  const device int* part [[buffer(0)]], constant int& f [[buffer(3)]],
                  const device int* none [[buffer(1)]], const device int* backwards [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
  tile[i] = part[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[3 - i] - 2 * backwards[-int(i)] + f;
})";

}  // namespace

TEST_CASE("capture: parts of buffers, inline bytes and arrays without elements are replayed") {
  if (!metal::is_available()) return;
  Ref<exec::Pipeline> pipeline = compiled_probe(places_source);
  File file("places");
  Stream s = default_stream(Device::cpu);
  array x = counting(32);
  array part = slice(x, {20}, {24}, s), backwards = slice(x, {15}, {11}, {-1}, s);
  array none = slice(x, {9}, {9}, s);
  eval(part, backwards, none);
  std::vector<int32_t> result;
  record(file, [&] {
    array out = make_op("Probe", s, {part, none, backwards}, {8},
                        [&](Encoder& encoder, const auto& in, auto& outputs) {
                          encoder.allocate(outputs[0]);
                          const int32_t one = 1, thousand = 1000;
                          encoder.fill(outputs[0], &one);
                          array y(Shape{4}, int32, nullptr, {});
                          y.copy_shared_buffer(outputs[0], Strides{1}, {true, true, true}, 4, 3);
                          KernelBinding bindings[] = {
                              KernelBinding::input(in[0]), KernelBinding::input(in[1]),
                              KernelBinding::input(in[2]), KernelBinding::bytes(&thousand, 4),
                              KernelBinding::output(y)};
                          const uint32_t tiles[] = {64, 16};
                          encoder.dispatch(*pipeline, bindings, {4}, {4}, tiles);
                        });
    result = values(out);
  });
  CHECK(result == std::vector<int32_t>{1, 1, 1, 993, 994, 995, 996, 1});
  Capture read(file.path);
  REQUIRE(read.commands == 2);
  const capture::Command& dispatch = read.lists.at(0).commands.at(1);
  const uint64_t filled = read.lists[0].commands[0].target.buffer;
  REQUIRE(dispatch.arguments.size() == 6);
  auto place = [&](size_t i) { return dispatch.arguments[i].place; };
  CHECK(place(0).buffer == filled);
  CHECK(place(0).offset == 12);
  CHECK(dispatch.arguments[1].bytes == 16);
  CHECK(place(2).offset == 80);
  CHECK(dispatch.arguments[3].value == std::string("\xe8\x03\0\0", 4));
  CHECK(place(4).buffer == 0);
  CHECK(place(5).buffer == place(2).buffer);
  CHECK(place(5).offset == 60);
  validation::Scope scope;
  capture::ReplayResult again = capture::replay(read, {.passes = 2, .first = 0, .last = INT64_MAX});
  CHECK(again.checked == 2);
  CHECK(again.differences.empty());
  CHECK(scope.reports().empty());
}

TEST_CASE("capture: what a kernel reports about its data fails a replay as it failed the op") {
  if (!metal::is_available()) return;
  Ref<exec::Pipeline> pipeline = compiled_probe(R"(
using namespace metal;
struct Errors { atomic_uint is_claimed; uint code; long numbers[2]; };
kernel void probe(const device int* x, device int* y, device Errors& errors,
                  uint i [[thread_position_in_grid]]) {
  y[i] = x[i];
  if (x[i] < 0 && atomic_exchange_explicit(&errors.is_claimed, 1u, memory_order_relaxed) == 0) {
    errors.code = 1;
    errors.numbers[0] = x[i];
  }
})");
  for (int first : {1, -3}) {
    CAPTURE(first);
    File file("errors");
    array x({first, -3 * (first < 0), 5, 6});
    std::string message;
    validation::Scope scope;
    record(file, [&] {
      array y = make_op("Probe", default_stream(Device::cpu), {x}, {4},
                        [&](Encoder& encoder, const auto& in, auto& out) {
                          encoder.allocate(out[0]);
                          KernelBinding bindings[] = {
                              KernelBinding::input(in[0]), KernelBinding::output(out[0]),
                              KernelBinding::errors("[probe] {} is negative", 23)};
                          encoder.dispatch(*pipeline, bindings, {4}, {4});
                        });
      try {
        eval(y);
      } catch (const ExecutionError& error) {
        message = error.what();
      }
    });
    CHECK(message == (first < 0 ? "[probe] -3 is negative" : ""));
    Capture read(file.path);
    CHECK(read.lists.at(0).commands.at(0).failed == (first < 0));
    CHECK(read.lists[0].commands[0].arguments.at(2).errors.size() == 23);
    capture::ReplayResult again = capture::replay(read);
    CHECK(again.differences.empty());
    CHECK(again.checked == (first > 0));
    CHECK(scope.reports().empty());
  }
}

TEST_CASE("capture: files of earlier versions are replayed") {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HOLDFAST_TEST_DATA)) {
    if (entry.path().extension() != ".hfcap") continue;
    CAPTURE(entry.path().string());
    ++files;
    // A copy: reading rolls back journals, in the file.
    File file("corpus");
    std::filesystem::copy_file(entry.path(), file.path);
    Capture read(file.path);
    REQUIRE(read.why_not() == "");
    CHECK(!read.digests.empty());
    if (!read.pipelines.empty() && !metal::is_available()) continue;
    capture::ReplayResult result = capture::replay(read);
    CHECK(result.checked == static_cast<int64_t>(read.digests.size()));
    for (const auto& difference : result.differences) MESSAGE(difference.number, difference.op);
    CHECK(result.differences.empty());
  }
  CHECK(files == 10);
}
