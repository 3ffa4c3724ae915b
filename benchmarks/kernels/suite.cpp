// `bench kernels`: MSL kernels against the same algorithms by hand and on PoCL.
#include <holdfast/fast.h>
#include <holdfast/holdfast.h>

#include <cmath>
#include <stdexcept>

#include "benchmarks/bench.h"
#include "benchmarks/kernels/case.h"
#include "benchmarks/kernels/opencl.h"
#include "benchmarks/roofline.h"

namespace holdfast::bench {

const HandKernels* hand_kernels() {
#if HOLDFAST_BENCH_HAND
  for (const HandKernels* kernels : {&avx512::hand_kernels(), &avx2::hand_kernels()}) {
    if (kernels->is_supported) return kernels;
  }
#endif
  return nullptr;
}

namespace {

// Says where results differ by more than the case allows.
void compare(const KernelCase& kernel, const std::vector<array>& results,
             const std::vector<array>& expected, const char* rival) {
  for (size_t i = 0; i < results.size(); ++i) {
    array a = astype(results[i], float64), b = astype(expected[i], float64);
    double scale = max(abs(b)).item<double>(), difference = max(abs(a - b)).item<double>();
    if (!(difference <= kernel.tolerance * scale)) {
      throw std::runtime_error(std::string("[bench kernels] ") + kernel.name + ": " +
                               kernel.output_names[i] + " differs from " + rival + " by " +
                               std::to_string(difference) + " of " + std::to_string(scale));
    }
  }
}

// Calls the kernel and waits for what it makes.
auto runner(const KernelCase& kernel, bool guard) {
  fast::CompileOptions options;
  options.guard = guard;
  auto function = fast::metal_kernel("bench", kernel.input_names, kernel.output_names, kernel.body,
                                     "", true, kernel.atomic_outputs, options);
  std::optional<float> start;
  if (kernel.atomic_outputs) start = 0.0f;
  return [&kernel, function, start] {
    std::vector<array> results = function(kernel.inputs, kernel.output_shapes, kernel.output_dtypes,
                                          kernel.grid, kernel.threadgroup, {}, start, false, {});
    eval(results);
    return results;
  };
}

// What guards cost: the kernel with them against the same without. Returns the ratio.
double run_guards(Report& report, const Options& options, const KernelCase& kernel) {
  auto guarded = runner(kernel, true), plain = runner(kernel, false);
  std::vector<array> results = guarded(), expected = plain();
  for (size_t i = 0; i < results.size() && !kernel.atomic_outputs; ++i) {
    if (!array_equal(results[i], expected[i], true).item<bool>())
      throw std::runtime_error(std::string("[bench kernels] ") + kernel.name +
                               ": guards change the result");
  }
  Pairs pairs = interleave(options.seconds(), [&] { guarded(); }, [&] { plain(); });
  report.add({.name = std::string("guards: ") + kernel.name,
              .value = median(pairs.a) * 1e3,
              .unit = "ms",
              .reference = "without guards",
              .reference_value = median(pairs.b) * 1e3,
              .ratio = pairs.ratio(),
              .bar = ratio_at_most(1.15),
              .note = describe(pairs)});
  return pairs.ratio();
}

void run_case(Report& report, const Options& options, const KernelCase& kernel,
              const HandKernels* hand, OpenCl* opencl) {
  auto ours = runner(kernel, true);
  for (array input : kernel.inputs) input.eval();
  std::vector<array> results = ours();

  Row row{.name = kernel.name, .unit = "ms"};
  if (hand) {
    std::vector<array> expected;
    std::vector<void*> pointers;
    for (size_t i = 0; i < results.size(); ++i) {
      expected.push_back(zeros(kernel.output_shapes[i], kernel.output_dtypes[i]));
      expected.back().eval();
      pointers.push_back(expected.back().data<char>());
    }
    Team& team = Roofline::get().team();
    kernel.hand(*hand, team, kernel.inputs, pointers);
    compare(kernel, results, expected, "the one by hand");
    Pairs pairs = interleave(
        options.seconds(), [&] { ours(); },
        [&] { kernel.hand(*hand, team, kernel.inputs, pointers); });
    row.value = median(pairs.a) * 1e3;
    row.reference = std::string("by hand, ") + hand->name;
    row.reference_value = median(pairs.b) * 1e3;
    row.ratio = 1 / pairs.ratio();
    row.bar = ratio_at_least(0.7);
    row.note = describe(pairs, true);
  } else {
    row.value = sample(options.seconds(), ours).median() * 1e3;
  }
  report.add(row);

  if (!opencl || kernel.opencl.empty()) return;
  std::unique_ptr<OpenClKernel> rival = opencl->prepare(kernel);
  rival->run();
  compare(kernel, results, rival->outputs(), "PoCL's");
  Pairs pairs = interleave(options.seconds(), [&] { ours(); }, [&] { rival->run(); });
  Row against{.name = kernel.name,
              .value = median(pairs.a) * 1e3,
              .unit = "ms",
              .reference = opencl->name(),
              .reference_value = median(pairs.b) * 1e3,
              .ratio = 1 / pairs.ratio(),
              .note = describe(pairs, true)};
  if (kernel.synchronises) against.bar = ratio_at_least(3);
  report.add(against);
}

}  // namespace

void run_kernels(Report& report, const Options& options) {
  const HandKernels* hand = hand_kernels();
  if (!hand) report.say("no AVX2: nothing by hand to compare with");
  std::string why;
  std::unique_ptr<OpenCl> opencl = OpenCl::find(why);
  if (!opencl) report.say("no PoCL to compare with: " + why);
  for (const auto& kernels : {row_kernels(), language_model_kernels(), compute_kernels()}) {
    for (const KernelCase& kernel : kernels) run_case(report, options, kernel, hand, opencl.get());
  }
  double logarithms = 0;
  int count = 0;
  for (const auto& kernels : {row_kernels(), language_model_kernels(), compute_kernels()}) {
    for (const KernelCase& kernel : kernels) {
      logarithms += std::log(run_guards(report, options, kernel));
      ++count;
    }
  }
  report.add({.name = "guards, geometric mean",
              .value = std::exp(logarithms / count),
              .unit = "×",
              .bar = value_at_most(1.05)});
}

}  // namespace holdfast::bench
