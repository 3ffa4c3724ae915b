// What a capture costs while it is recorded: a decode loop with and without, in turn, in one run.
#include <holdfast/holdfast.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "benchmarks/bench.h"
#include "benchmarks/decode.h"
#include "exec/layers/layer.h"
#include "exec/ring.h"

namespace holdfast::bench {
namespace {

constexpr DecodeSizes sizes{256, 8, 64, 256};
// Enough that the writing thread has its share of the machine.
constexpr int steps_per_sample = 32;

// The ratio of a step that is recorded to one that is not; starting and stopping are not counted.
void compare(Report& report, const Options& options, const DecodeModel& model, const char* name,
             const metal::CaptureOptions& capture, std::optional<Bar> bar) {
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("holdfast-bench-" + std::to_string(::getpid()) + ".hfcap");
  DecodeState state = make_decode_state(model);
  array x = slice(model.embedding, {0, 0}, {1, model.sizes.width});
  eval(x);
  auto run = [&] {
    for (int i = 0; i < steps_per_sample; ++i) {
      x = decode_step(model, state, std::move(x), [](array&) {});
      eval(x);
    }
  };
  run();
  std::vector<double> on, off, ratios;
  uintmax_t bytes = 0;
  auto start = Clock::now();
  double budget = options.quick ? 3.0 : 15.0;
  while (ratios.size() < 7 ||
         std::chrono::duration<double>(Clock::now() - start).count() < budget) {
    off.push_back(seconds_of(run));
    metal::start_capture(path.string(), capture);
    on.push_back(seconds_of(run));
    metal::stop_capture();
    bytes = std::filesystem::file_size(path);
    ratios.push_back(on.back() / off.back());
  }
  std::filesystem::remove(path);
  double best = *std::min_element(on.begin(), on.end()) / *std::min_element(off.begin(), off.end());
  char note[96];
  std::snprintf(note, sizeof(note), "%zu pairs, best to best %.2f, %ju bytes of file a step",
                ratios.size(), best, bytes / steps_per_sample);
  report.add({.name = name,
              .value = median(on) / steps_per_sample * 1e6,
              .unit = "µs/step",
              .reference = "not recorded",
              .reference_value = median(off) / steps_per_sample * 1e6,
              .ratio = median(ratios),
              .bar = bar,
              .note = note});
}

// Counts the hooks that a step comes to.
class CountingLayer final : public exec::Layer {
 public:
  std::atomic<int64_t> calls{0};

  void on_create(const exec::Buffer&) override { ++calls; }
  void on_retire(const exec::Buffer&) override { ++calls; }
  void on_pipeline(const exec::KernelRequest&, const exec::Pipeline&) override { ++calls; }
  void on_begin() override { ++calls; }
  void on_address(const exec::Buffer&) override { ++calls; }
  void on_command(const exec::CommandList&) override { ++calls; }
  void on_encode(const exec::CommandList&) override { ++calls; }
  bool wants_commit(const exec::CommandList&) override {
    ++calls;
    return false;
  }
  void on_commit(exec::CommandList&) override { ++calls; }
  void on_complete(const exec::CommandList&) override { ++calls; }
  void on_observe(const exec::DeviceQueue&, uint64_t) override { ++calls; }
  void on_take_over(const exec::Buffer&) override { ++calls; }
  void on_host_access(const exec::Buffer&, int64_t, int64_t) override { ++calls; }
};

// Nothing is recorded: what is left of capturing is a load at each hook. There is no library
// without the hooks to compare with, so their number and the time of one are measured.
void measure_off(Report& report, const Options& options, const DecodeModel& model) {
  DecodeState state = make_decode_state(model);
  array x = slice(model.embedding, {0, 0}, {1, model.sizes.width});
  auto run = [&] {
    x = decode_step(model, state, std::move(x), [](array&) {});
    eval(x);
  };
  run();
  auto counter = std::make_shared<CountingLayer>();
  exec::layers::add(counter);
  run();
  exec::layers::remove(counter.get());
  // Each op also asks whether its notes are wanted: no more than as many again.
  double calls = 2.0 * static_cast<double>(counter->calls.load());
  constexpr int loads = 1'000'000;
  std::vector<double> load_seconds, step_seconds;
  int64_t wanted = 0;
  for (int i = 0; i < (options.quick ? 20 : 200); ++i) {
    step_seconds.push_back(seconds_of(run));
    load_seconds.push_back(seconds_of([&] {
      for (int k = 0; k < loads; ++k) wanted += exec::layers::want(exec::Layer::encoding);
    }));
  }
  double each = *std::min_element(load_seconds.begin(), load_seconds.end()) / loads;
  double step = *std::min_element(step_seconds.begin(), step_seconds.end());
  char note[128];
  std::snprintf(note, sizeof(note), "%.0f hooks a step, %.2f ns each, best of each%s", calls,
                each * 1e9, wanted ? ", with a layer on" : "");
  report.add({.name = "decode step, capture off",
              .value = step * 1e6,
              .unit = "µs/step",
              .reference = "without its hooks",
              .reference_value = (step - calls * each) * 1e6,
              .ratio = step / (step - calls * each),
              .bar = ratio_at_most(1.01),
              .note = note});
}

// The ring of the last lists, which is always on, against none.
void compare_ring(Report& report, const Options& options, const DecodeModel& model) {
  DecodeState state = make_decode_state(model);
  array x = slice(model.embedding, {0, 0}, {1, model.sizes.width});
  constexpr int steps = 4;
  auto run = [&](bool on) {
    exec::Ring::is_on.store(on);
    for (int i = 0; i < steps; ++i) {
      x = decode_step(model, state, std::move(x), [](array&) {});
      eval(x);
    }
  };
  Pairs pairs =
      interleave(options.quick ? 4.0 : 20.0, [&] { run(true); }, [&] { run(false); }, 0.004);
  exec::Ring::is_on.store(true);
  report.add({.name = "decode step, ring of the last lists",
              .value = median(pairs.a) / steps * 1e6,
              .unit = "µs/step",
              .reference = "no ring",
              .reference_value = median(pairs.b) / steps * 1e6,
              .ratio = pairs.ratio(),
              .bar = ratio_at_most(1.01),
              .note = describe(pairs)});
}

}  // namespace

void run_capture(Report& report, const Options& options) {
  DecodeModel model = make_decode_model(sizes, 21);
  measure_off(report, options, model);
  compare(report, options, model, "decode step, commands only",
          {.contents = false,
           .digests = false,
           .skip_lists = 0,
           .count_lists = -1,
           .max_file_bytes = 0,
           .reference_files = false},
          ratio_at_most(1.3));
  compare(report, options, model, "decode step, with digests",
          {.contents = false,
           .digests = true,
           .skip_lists = 0,
           .count_lists = -1,
           .max_file_bytes = 0,
           .reference_files = false},
          ratio_at_most(2.5));
  compare(report, options, model, "decode step, with digests and contents", {}, {});
  compare_ring(report, options, model);
}

}  // namespace holdfast::bench
