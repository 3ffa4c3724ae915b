// Element-wise work that memory limits. Outputs are dropped before the next evaluation, so they
// land in reused memory.
#include <holdfast/holdfast.h>

#include "benchmarks/bench.h"
#include "benchmarks/roofline.h"

namespace holdfast::bench {
namespace {

constexpr int elements = 16 << 20;

array gelu(const array& x) { return x * (1.0f + erf(x / std::sqrt(2.0))) / 2.0; }

}  // namespace

void run_elementwise(Report& report, const Options& options) {
  Roofline& roofline = Roofline::get();
  Rotation inputs({elements});
  HugeBuffer target(elements);
  auto library_add = [&] {
    const array& a = inputs.next();
    eval(a + inputs.next());
  };
  auto machine_add = [&] {
    const array& a = inputs.next();
    roofline.add(a.data<float>(), inputs.next().data<float>(), target.data(), elements);
  };

  double gigabytes = 3.0 * elements * sizeof(float) / 1e9;
  Pairs add_pairs = interleave(options.seconds(), library_add, machine_add);
  report.add({.name = "a + b, 16M float32",
              .value = gigabytes / median(add_pairs.a),
              .unit = "GB/s",
              .reference = "hand-written add, all cores",
              .reference_value = gigabytes / median(add_pairs.b),
              .ratio = 1 / add_pairs.ratio(),
              .bar = ratio_at_least(0.8),
              .note = describe(add_pairs, true)});

  auto against_add = [&](const char* name, auto&& work) {
    Pairs pairs = interleave(options.seconds(), work, library_add);
    report.add({.name = name,
                .value = median(pairs.a) * 1e3,
                .unit = "ms",
                .reference = "a + b",
                .reference_value = median(pairs.b) * 1e3,
                .ratio = pairs.ratio(),
                .bar = ratio_at_most(1.5),
                .note = describe(pairs)});
  };
  against_add("exp(a*b + a), 16M float32", [&] {
    const array& a = inputs.next();
    eval(exp(a * inputs.next() + a));
  });
  against_add("gelu(a), 16M float32", [&] { eval(gelu(inputs.next())); });
}

}  // namespace holdfast::bench
