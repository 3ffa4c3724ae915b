// What validation costs, in a decode loop of some 300 small ops a step. The arms alternate on one
// queue in one run.
#include <holdfast/holdfast.h>

#include "benchmarks/bench.h"
#include "benchmarks/decode.h"
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

}  // namespace

void run_validation(Report& report, const Options& options) {
  compare(report, options, "decode step, lifetime and hazards", "lifetime,hazards",
          ratio_at_most(1.5));
  compare(report, options, "decode step, all checks", "1", {});
}

}  // namespace holdfast::bench
