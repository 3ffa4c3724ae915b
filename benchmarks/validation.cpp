// What validation costs: in a decode loop of some 300 small ops a step, and for kernels, each of
// whose accesses is looked at. The arms alternate on one queue in one run.
#include <holdfast/fast.h>
#include <holdfast/holdfast.h>
#include <holdfast/metal.h>

#include "benchmarks/bench.h"
#include "benchmarks/decode.h"
#include "benchmarks/kernels/case.h"
#include "exec/layers/validation/validator.h"

namespace holdfast::bench {
namespace {

constexpr DecodeSizes sizes{256, 8, 32, 64};  // 288 ops a step
constexpr int steps_per_sample = 4;

struct Arm {
  const DecodeModel& model;
  DecodeState state;
  array x;

  explicit Arm(const DecodeModel& m)
      : model(m), state(make_decode_state(m)), x(slice(m.embedding, {0, 0}, {1, m.sizes.width})) {
    eval(x);
  }
  void steps() {
    for (int i = 0; i < steps_per_sample; ++i) {
      x = decode_step(model, state, std::move(x), [](array&) {});
      eval(x);
    }
  }
};

void compare(Report& report, const Options& options, const char* name, const char* checks,
             std::optional<Bar> bar) {
  auto validator = std::make_shared<validation::Validator>(validation::Options{.checks = checks},
                                                           "checks", "ignore");
  // What is made before validation begins is not looked at: the weights must be known.
  exec::layers::add(validator);
  DecodeModel model = make_decode_model(sizes, 11);
  Arm on(model);
  exec::layers::remove(validator.get());
  Arm off(model);
  auto run_on = [&] {
    exec::layers::add(validator);
    on.steps();
    exec::layers::remove(validator.get());
  };
  Pairs pairs = interleave(options.quick ? 4.0 : 20.0, run_on, [&] { off.steps(); }, 0.004);
  if (!validator->reporter().reports().empty()) {
    throw std::runtime_error("[bench validation] a right program was reported");
  }
  report.add({.name = name,
              .value = median(pairs.a) / steps_per_sample * 1e6,
              .unit = "µs/step",
              .reference = "validation off",
              .reference_value = median(pairs.b) / steps_per_sample * 1e6,
              .ratio = pairs.ratio(),
              .bar = bar,
              .note = describe(pairs)});
}

// The kernels of `bench kernels`, all groups on one thread while they are checked.
void compare_kernel(Report& report, const Options& options, const KernelCase& kernel) {
  auto function = fast::metal_kernel("bench", kernel.input_names, kernel.output_names, kernel.body,
                                     "", true, kernel.atomic_outputs);
  std::optional<float> start;
  if (kernel.atomic_outputs) start = 0.0f;
  auto run = [&] {
    eval(function(kernel.inputs, kernel.output_shapes, kernel.output_dtypes, kernel.grid,
                  kernel.threadgroup, {}, start, false, {}));
  };
  for (array input : kernel.inputs) input.eval();
  auto validator = std::make_shared<validation::Validator>(validation::Options{.checks = "kernels"},
                                                           "checks", "ignore");
  auto run_checked = [&] {
    exec::layers::add(validator);
    run();
    exec::layers::remove(validator.get());
  };
  run();
  run_checked();
  if (!validator->reporter().reports().empty()) {
    throw std::runtime_error("[bench validation] a right kernel was reported: " +
                             validator->reporter().reports()[0].text());
  }
  const double plain = sample(options.quick ? 0.2 : 1.0, run).median();
  const double checked = sample(options.quick ? 0.2 : 1.0, run_checked).median();
  report.add({.name = std::string(kernel.name) + ", checked",
              .value = checked * 1e3,
              .unit = "ms",
              .reference = "widened",
              .reference_value = plain * 1e3,
              .bar = ratio_at_most(300)});
}

}  // namespace

void run_validation(Report& report, const Options& options) {
  compare(report, options, "decode step, lifetime and hazards", "lifetime,hazards",
          ratio_at_most(1.5));
  compare(report, options, "decode step, all checks", "1", {});
  if (!metal::is_available()) return;
  for (const auto& kernels : {row_kernels(), language_model_kernels(), compute_kernels()}) {
    for (const KernelCase& kernel : kernels) compare_kernel(report, options, kernel);
  }
}

}  // namespace holdfast::bench
