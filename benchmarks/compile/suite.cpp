// `holdfast bench compile`: compiled functions beside MLX's and JAX's, and what a call costs.
#include <holdfast/holdfast.h>

#include <iostream>

#include "benchmarks/bench.h"
#include "benchmarks/compile/programs.h"
#include "benchmarks/ops/peer_process.h"
#include "benchmarks/ops/rows.h"
#include "benchmarks/probe.h"

namespace holdfast::bench {
namespace {

using Arrays = std::vector<array>;

void compare_programs(Report& report, const Options& options) {
  PeerProcess peers("compile/peers.py");
  std::map<std::string, std::string> labels;
  std::map<std::string, GeometricMean> means;
  for (const auto& [name, version] : peers.versions()) {
    labels[name] = (name == "mlx" ? "MLX " : "JAX ") + version + ", compiled";
  }
  if (labels.empty()) report.say("no Python with MLX or JAX: nothing to compare with");
  GeometricMean uncompiled;
  for (const CompiledProgram& program : compiled_programs()) {
    if (!options.wants(program.name)) continue;
    Arrays inputs = make_inputs(program.inputs);
    for (const auto& [name, reason] :
         peers.prepare(program.inputs, {{"mlx", program.peer}, {"jax", program.peer}})) {
      report.say(program.name + " in " + name + ": " + reason);
    }
    auto function = compile(program.function);
    double budget = options.quick ? 0.1 : 0.4;
    auto [own, others] = peers.run_beside(budget, [&] { eval(function(inputs)); });
    double seconds = quantile(own, 0);
    for (const auto& [name, times] : others) {
      double other = quantile(times, 0);
      means[name].add(other / seconds);
      char note[64];
      std::snprintf(note, sizeof(note), "medians %.2f", median(times) / median(own));
      report.add({.name = program.name,
                  .value = seconds * 1e6,
                  .unit = "µs",
                  .reference = labels[name],
                  .reference_value = other * 1e6,
                  .ratio = other / seconds,
                  .note = note});
    }
    // The calls that a compiled function saves are Python's in the peers; ours are cheap.
    double plain = sample(budget, [&] { eval(program.function(inputs)); }).best();
    uncompiled.add(plain / seconds);
    report.add({.name = program.name,
                .value = seconds * 1e6,
                .unit = "µs",
                .reference = "not compiled",
                .reference_value = plain * 1e6,
                .ratio = plain / seconds});
  }
  auto add_mean = [&](const GeometricMean& mean, const std::string& label, std::optional<Bar> bar) {
    if (mean.count == 0) return;
    report.add({.name = "geometric mean",
                .value = mean.mean(),
                .unit = "×",
                .reference = label,
                .ratio = mean.mean(),
                .bar = bar,
                .note = mean.note()});
  };
  add_mean(means["jax"], labels["jax"], ratio_at_least(1.2));
  add_mean(means["mlx"], labels["mlx"], ratio_at_least(10));
  add_mean(uncompiled, "not compiled", {});
}

Arrays ten_ops(const Arrays& a) {
  array x = a[0];
  for (int i = 0; i < 5; ++i) x = sin(x) * a[1];
  return {x};
}

void measure_calls(Report& report, const Options& options) {
  auto function = compile(ten_ops);
  Arrays inputs = {array({0.5f}), array({2.0f})};
  eval(inputs);
  constexpr int calls = 1000;
  // Nobody asks what the function computes: the call alone.
  Samples call = sample(options.seconds() / 4, [&] {
    for (int i = 0; i < calls; ++i) function(inputs);
  });
  Samples waited = sample(options.seconds() / 4, [&] {
    for (int i = 0; i < calls; ++i) eval(function(inputs));
  });
  Samples arithmetic = sample(options.seconds() / 4, [&] {
    for (int i = 0; i < calls; ++i) eval(inputs[0] + inputs[1]);
  });
  report.add({.name = "call of a compiled function of 10 ops",
              .value = call.best() * 1e6 / calls,
              .unit = "µs",
              .bar = value_at_most(2)});
  report.add({.name = "call, evaluate and wait, 10 ops on one element",
              .value = waited.best() * 1e6 / calls,
              .unit = "µs",
              .reference = "add + eval + wait",
              .reference_value = arithmetic.best() * 1e6 / calls,
              .bar = value_at_most(2)});
}

// What the first call of each program takes beyond a later one, in milliseconds: the least of
// several processes, since a process can do it once and a busy machine makes it longer only.
std::map<std::string, double> least(std::map<std::string, double> a,
                                    const std::map<std::string, double>& b) {
  for (const auto& [name, value] : b) {
    auto [at, is_new] = a.emplace(name, value);
    if (!is_new) at->second = std::min(at->second, value);
  }
  return a;
}

void measure_first_calls(Report& report, const Options& options) {
  std::map<std::string, double> cold, warm;
  for (int round = 0; round < (options.quick ? 3 : 9); ++round) {
    TemporaryFolder folder;
    cold = least(std::move(cold), probe("compile", folder.path()));
    warm = least(std::move(warm), probe("compile", folder.path()));
  }
  auto add = [&](const char* name, const std::map<std::string, double>& values, double limit) {
    auto longest = std::max_element(values.begin(), values.end(), [](const auto& a, const auto& b) {
      return a.second < b.second;
    });
    report.add({.name = name,
                .value = longest->second,
                .unit = "ms",
                .bar = value_at_most(limit),
                .note = "program " + longest->first});
  };
  add("first call beyond a later one, longest", cold, 100);
  // Nothing is generated, so that the disk cache has nothing to give: the two differ by chance.
  add("the same in a second process", warm, 5);
}

}  // namespace

void probe_compile(const std::string&) {
  eval(ones({16}) + ones({16}));  // the runtime has started
  int number = 0;
  for (const CompiledProgram& program : compiled_programs()) {
    Arrays inputs = make_inputs(program.inputs);
    eval(program.function(inputs));  // memory for results is there
    auto function = compile(program.function);
    double first = seconds_of([&] { eval(function(inputs)); });
    double later = sample(0, [&] { eval(function(inputs)); }).best();
    std::cout << ++number << " " << (first - later) * 1e3 << "\n";
  }
}

void run_compile(Report& report, const Options& options) {
  measure_calls(report, options);
  measure_first_calls(report, options);
  compare_programs(report, options);
}

}  // namespace holdfast::bench
