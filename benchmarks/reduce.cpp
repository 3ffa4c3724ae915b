// Reductions and softmax of a matrix that does not fit the caches.
#include <holdfast/holdfast.h>

#include "benchmarks/bench.h"
#include "benchmarks/roofline.h"

namespace holdfast::bench {
namespace {

constexpr int side = 4096;
constexpr size_t elements = size_t{side} * side;

}  // namespace

void run_reduce(Report& report, const Options& options) {
  Roofline& roofline = Roofline::get();
  Rotation inputs({side, side});
  double gigabytes = static_cast<double>(elements) * sizeof(float) / 1e9;
  auto machine_read = [&] {
    volatile float sum = roofline.read(inputs.next().data<float>(), elements);
    (void)sum;
  };
  auto against_read = [&](const char* name, auto&& work) {
    Pairs pairs = interleave(options.seconds(), work, machine_read);
    report.add({.name = name,
                .value = gigabytes / median(pairs.a),
                .unit = "GB/s",
                .reference = "hand-written read, all cores",
                .reference_value = gigabytes / median(pairs.b),
                .ratio = 1 / pairs.ratio(),
                .bar = ratio_at_least(0.8),
                .note = describe(pairs, true)});
  };
  against_read("sum of all, 4096² float32", [&] { eval(sum(inputs.next())); });
  against_read("sum of each row", [&] { eval(sum(inputs.next(), 1)); });
  against_read("sum of each column", [&] { eval(sum(inputs.next(), 0)); });

  HugeBuffer target(elements);
  Pairs pairs = interleave(
      options.seconds(), [&] { eval(softmax(inputs.next(), 1)); },
      [&] { roofline.copy(inputs.next().data<float>(), target.data(), elements); });
  report.add({.name = "softmax of each row",
              .value = median(pairs.a) * 1e3,
              .unit = "ms",
              .reference = "hand-written copy, all cores",
              .reference_value = median(pairs.b) * 1e3,
              .ratio = pairs.ratio(),
              .bar = ratio_at_most(2.0),
              .note = describe(pairs)});
}

}  // namespace holdfast::bench
