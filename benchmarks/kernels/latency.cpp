#include <holdfast/fast.h>
#include <holdfast/holdfast.h>
#include <holdfast/kernel_cache.h>

#include <fstream>
#include <iostream>
#include <map>

#include "benchmarks/bench.h"
#include "benchmarks/probe.h"

namespace holdfast::bench {
namespace {

constexpr int small_kernels = 15, long_kernels = 5;

fast::CustomKernelFunction small_kernel(const std::string& nonce, int i) {
  return fast::metal_kernel("latency", {"x"}, {"out"},
                            "// " + nonce +
                                "\n  uint i = thread_position_in_grid.x;\n  out[i] = x[i] * " +
                                std::to_string(i + 1) + ".0f + exp(x[i]);\n");
}

// About 2,000 characters: a norm, a softmax and arithmetic between.
fast::CustomKernelFunction long_kernel(const std::string& nonce, int i) {
  std::string body = "// " + nonce + R"(
  uint lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;
  uint i = thread_position_in_grid.x;
  threadgroup float partial[32];
  float value = x[i];
  float squares = simd_sum(value * value);
  if (lane == 0) partial[group] = squares;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float scale = rsqrt(simd_sum(lane < 2 ? partial[lane] : 0.0f) / 64 + 1e-5f);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  value *= scale;
  float top = simd_max(value);
  if (lane == 0) partial[group] = top;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  top = max(partial[0], partial[1]);
  float power = exp(value - top);
)";
  for (int step = 0; body.size() < 2000; ++step) {
    std::string number = std::to_string(step + i);
    body += "  if (power > " + number + ".5f) power = fma(power, 0.5f, tanh(value * " + number +
            ".0f)); else value += sin(power) * " + number + ".25f;\n";
  }
  body += "  out[i] = power + value;\n";
  return fast::metal_kernel("latency_long", {"x"}, {"out"}, body);
}

std::vector<array> call(const fast::CustomKernelFunction& kernel, const array& x) {
  int size = static_cast<int>(x.size());
  return kernel({x}, {x.shape()}, {float32}, {size, 1, 1}, {size, 1, 1}, {}, std::nullopt, false,
                {});
}

double milliseconds_of_first_call(const fast::CustomKernelFunction& kernel, const array& x) {
  return seconds_of([&] { eval(call(kernel, x)); }) * 1e3;
}

bool compiler_is_loaded() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libLLVM") != std::string::npos) return true;
  }
  return false;
}

}  // namespace

void probe_kernels(const std::string& nonce) {
  array x = ones({64});
  eval(x);
  std::cout << "first_ms " << milliseconds_of_first_call(small_kernel(nonce, 0), x) << "\n";
  std::vector<double> small, large;
  for (int i = 1; i <= small_kernels; ++i)
    small.push_back(milliseconds_of_first_call(small_kernel(nonce, i), x));
  for (int i = 0; i < long_kernels; ++i)
    large.push_back(milliseconds_of_first_call(long_kernel(nonce, i), x));
  std::cout << "small_ms " << median(small) << "\nlong_ms " << median(large) << "\n";

  auto kernel = small_kernel(nonce, 0);
  constexpr int calls = 1000;
  Samples chain = sample(0.3, [&] {
    array y = x;
    for (int i = 0; i < calls; ++i) y = call(kernel, y)[0];
    eval(y);
  });
  Samples alone = sample(0.3, [&] {
    for (int i = 0; i < calls; ++i) eval(call(kernel, x));
  });
  std::cout << "chain_us " << chain.median() * 1e6 / calls << "\nalone_us "
            << alone.median() * 1e6 / calls << "\n";
  std::cout << "disk_hits " << kernel_cache_stats().disk_hits << "\ncompiler_loaded "
            << compiler_is_loaded() << "\n";
}

void probe_start(const std::string&) {
  eval(ones({16}) + ones({16}));
  std::cout << "compiler_loaded " << compiler_is_loaded() << "\n";
}

void run_kernel_latency(Report& report, const Options& options) {
  std::vector<double> first, small, large, disk_first, disk_small, chain, alone, start;
  double loaded_without_need = 0;
  int rounds = options.quick ? 3 : 9;
  for (int i = 0; i < rounds; ++i) {
    TemporaryFolder folder;
    auto cold = probe("kernels", folder.path());
    auto warm = probe("kernels", folder.path());
    first.push_back(cold.at("first_ms"));
    small.push_back(cold.at("small_ms"));
    large.push_back(cold.at("long_ms"));
    disk_first.push_back(warm.at("first_ms"));
    disk_small.push_back(warm.at("small_ms"));
    chain.push_back(warm.at("chain_us"));
    alone.push_back(warm.at("alone_us"));
    if (warm.at("disk_hits") < small_kernels + long_kernels)
      report.say("the disk cache was not used");
    std::map<std::string, double> values;
    start.push_back(seconds_of([&] { values = probe("start", folder.path()); }) * 1e3);
    loaded_without_need += warm.at("compiler_loaded") + values.at("compiler_loaded");
  }
  auto row = [&](const char* name, const std::vector<double>& values, const char* unit,
                 std::optional<Bar> bar) {
    report.add({.name = name, .value = median(values), .unit = unit, .bar = bar});
  };
  row("compile a small kernel", small, "ms", value_at_most(40));
  row("compile 2,000 characters", large, "ms", value_at_most(150));
  row("compile a process's first", first, "ms", value_at_most(120));
  row("from the disk cache", disk_small, "ms", value_at_most(1));
  row("from the disk cache, a process's first", disk_first, "ms", {});
  row("dispatch of a cached kernel, in a chain", chain, "µs", value_at_most(3));
  row("dispatch of a cached kernel, waited for", alone, "µs", {});
  row("process without kernels, start to end", start, "ms", value_at_most(50));
  report.add({.name = "times a compiler was loaded without need",
              .value = loaded_without_need,
              .unit = "",
              .bar = value_at_most(0)});
}

}  // namespace holdfast::bench
