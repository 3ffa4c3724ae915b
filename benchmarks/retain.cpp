// What it costs that binding is retaining, in a decode loop of some 300 small ops a step. The arms
// alternate on one queue in one run.
//
// Element-wise fusion is off in both arms: an array that is kept by hand has to be written to
// memory, so the arms would not do the same work.
#include <holdfast/holdfast.h>

#include "base/fault.h"
#include "benchmarks/bench.h"
#include "benchmarks/decode.h"
#include "exec/runtime.h"

namespace holdfast::bench {
namespace {

constexpr DecodeSizes time_sizes{64, 8, 32, 64};      // 288 ops a step
constexpr DecodeSizes memory_sizes{256, 8, 64, 256};  // large enough that rounding up is small
constexpr int steps_per_sample = 4;

exec::Queue& own_queue() { return exec::Runtime::get().queue(default_stream(default_device())); }

// Binds without retaining while it lives.
class RetainingOff {
 public:
  RetainingOff() { own_queue().set_retaining(false); }
  ~RetainingOff() { own_queue().set_retaining(true); }
};

struct Arm {
  const DecodeModel& model;
  DecodeState state;
  array x;

  explicit Arm(const DecodeModel& m)
      : model(m), state(make_decode_state(m)), x(slice(m.embedding, {0, 0}, {1, m.sizes.width})) {
    eval(x);
  }

  template <class Made>
  void step(Made&& made) {
    x = decode_step(model, state, std::move(x), made);
    eval(x);
  }
};

void compare_time(Report& report, const Options& options, const DecodeModel& model,
                  bool keep_by_hand) {
  Arm on(model), off(model);
  std::vector<array> kept;
  kept.reserve(static_cast<size_t>(time_sizes.layers) * 36);
  auto run_on = [&] {
    for (int i = 0; i < steps_per_sample; ++i) on.step([](array&) {});
  };
  auto run_off = [&] {
    RetainingOff scope;
    for (int i = 0; i < steps_per_sample; ++i) {
      if (keep_by_hand) {
        off.step([&](array& made) { kept.push_back(made); });
        kept.clear();  // eval has waited for everything
      } else {
        off.step([](array&) {});
      }
    }
  };
  double budget = options.quick ? 4.0 : 20.0;
  Pairs pairs = interleave(budget, run_on, run_off, 0.004);
  if (!array_equal(on.x, off.x).item<bool>()) {
    // Both did the same number of steps from the same start.
    throw std::runtime_error("[bench retain] the two arms computed different values");
  }
  report.add({.name = keep_by_hand ? "decode step, against kept by hand"
                                   : "decode step, against nothing kept",
              .value = median(pairs.a) / steps_per_sample * 1e6,
              .unit = "µs/step",
              .reference = keep_by_hand ? "retaining off, arrays kept" : "retaining off",
              .reference_value = median(pairs.b) / steps_per_sample * 1e6,
              .ratio = pairs.ratio(),
              // Nothing kept is no program that could be written: its price is shown, not bounded.
              .bar = keep_by_hand ? std::optional(ratio_at_most(1.01)) : std::nullopt,
              .note = describe(pairs)});
}

struct Peak {
  double total;  // everything
  double above;  // beyond what was there between two steps: the step's own
};

template <class Made>
Peak peak_of(Arm& arm, Made&& made) {
  arm.step(made);  // warm: the state is this arm's own by now
  size_t before = get_active_memory();
  reset_peak_memory();
  for (int i = 0; i < steps_per_sample; ++i) arm.step(made);
  auto total = static_cast<double>(get_peak_memory());
  return {total, total - static_cast<double>(before)};
}

// The peaks of a step that is evaluated as one graph, with retaining and without: without it, what
// an op was the last to use is given back as soon as the op is encoded, which is the earliest that
// any registration by hand could do. And the peak of a step whose ops are evaluated one by one, in
// the order of the program: evaluation may choose another order.
void compare_memory(Report& report, const DecodeModel& model) {
  Peak retained, released, one_by_one;
  {
    Arm arm(model);
    retained = peak_of(arm, [](array&) {});
  }
  {
    RetainingOff scope;
    Arm arm(model);
    released = peak_of(arm, [](array&) {});
  }
  {
    RetainingOff scope;
    Arm arm(model);
    one_by_one = peak_of(arm, [](array& made) { eval(made); });
  }
  auto row = [&](const char* name, double value, const char* reference, double reference_value,
                 std::optional<Bar> bar) {
    report.add({.name = name,
                .value = value / 1024,
                .unit = "KiB",
                .reference = reference,
                .reference_value = reference_value / 1024,
                .bar = bar,
                .note = "release at the last use"});
  };
  const char* off = "retaining off";
  row("peak memory, all", retained.total, off, released.total, ratio_at_most(1.01));
  row("peak memory, a step's own", retained.above, off, released.above, ratio_at_most(1.01));
  row("the same, one op at a time", retained.above, "off, one op at a time", one_by_one.above, {});
}

}  // namespace

void run_retain(Report& report, const Options& options) {
  if (HOLDFAST_CHECKS) {
    report.say(
        "left out: this build checks identities and would stop at the first unretained array");
    return;
  }
  FusionScope off(false);
  {
    DecodeModel model = make_decode_model(time_sizes, 11);
    compare_time(report, options, model, true);
    compare_time(report, options, model, false);
  }
  compare_memory(report, make_decode_model(memory_sizes, 12));
}

}  // namespace holdfast::bench
