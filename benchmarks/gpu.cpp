// What Device::gpu reaches: the cost of an op beside its arithmetic, and the speed of memory. Bars
// are those of an H200, whose memory gives kernels 4.2 TB/s.
#include <holdfast/holdfast.h>

#include <time.h>

#include <cmath>

#include "benchmarks/bench.h"

namespace holdfast::bench {
namespace {

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

constexpr const char* increment = R"(
  uint i = thread_position_in_grid.x;
  y[i] = x[i] + 1.0f;
)";

// A threadgroup for each row; every thread holds its part of the row in registers.
constexpr const char* rms_norm = R"(
  constexpr uint width = 4096, threads = 512, per_thread = width / threads;
  uint row = threadgroup_position_in_grid.y, lane = thread_position_in_threadgroup.x;
  const device bfloat16_t* in = x + ulong(row) * width + lane * per_thread;
  device bfloat16_t* out = y + ulong(row) * width + lane * per_thread;
  float values[per_thread];
  float sum = 0;
  for (uint i = 0; i < per_thread; ++i) {
    values[i] = float(in[i]);
    sum += values[i] * values[i];
  }
  threadgroup float sums[threads / 32];
  sum = simd_sum(sum);
  if (thread_index_in_simdgroup == 0) sums[simdgroup_index_in_threadgroup] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  sum = simd_sum(thread_index_in_simdgroup < threads / 32 ? sums[thread_index_in_simdgroup] : 0.0f);
  float factor = rsqrt(sum / width + 1e-5f);
  for (uint i = 0; i < per_thread; ++i)
    out[i] = bfloat16_t(values[i] * factor * float(w[lane * per_thread + i]));
)";

void add_rate(Report& report, const Options& options, const std::string& name, double bytes,
              double bar, const std::function<array()>& make) {
  // Several at a time, so that the GPU never waits for the host.
  constexpr int times = 8;
  Samples samples = sample(options.seconds() / 2, [&] {
    std::vector<array> results;
    for (int i = 0; i < times; ++i) results.push_back(make());
    eval(results);
  });
  report.add({.name = name,
              .value = bytes * times / samples.median() * 1e-12,
              .unit = "TB/s",
              .bar = Bar{Bar::On::value, false, bar}});
}

// CPU time and time of an op in a repeated list of ops that wait for each other.
void add_chain(Report& report, const Options& options, const std::string& name, double bar,
               const std::function<array(const array&)>& step, const array& start) {
  constexpr int length = 200;
  double used = 0;
  int runs = 0;
  Samples samples = sample(options.seconds() / 2, [&] {
    const double begin = processor_seconds();
    array x = start;
    for (int i = 0; i < length; ++i) x = step(x);
    async_eval({x});
    used += processor_seconds() - begin;
    ++runs;
    eval(x);
  });
  report.add({.name = name + ", CPU time",
              .value = used / runs / length * 1e6,
              .unit = "µs/op",
              .bar = value_at_most(2)});
  report.add({.name = name,
              .value = samples.median() / length * 1e6,
              .unit = "µs/op",
              .bar = value_at_most(bar)});
}

}  // namespace

void run_gpu(Report& report, const Options& options) {
  const Stream stream = default_stream(Device::gpu);
  StreamContext here(stream);
  const double first = seconds_of([] { eval(array({1.0F, 2.0F}) + array({3.0F, 4.0F})); });
  report.add({.name = "first result of the process",
              .value = first * 1e3,
              .unit = "ms",
              .bar = value_at_most(600)});

  const array small = zeros({16 * 1024}, float32);
  const array one({1.0F});
  eval(small, one);
  {
    FusionScope off(false);
    add_chain(
        report, options, "chain of adds of 64 KiB, not fused", 1.3,
        [&](const array& x) { return x + one; }, small);
  }
  auto custom = fast::metal_kernel("increment", {"x"}, {"y"}, increment);
  add_chain(
      report, options, "chain of a custom kernel of 64 KiB", 1.3,
      [&](const array& x) {
        return custom({x}, {x.shape()}, {float32}, {16 * 1024, 1, 1}, {256, 1, 1}, {}, std::nullopt,
                      false, stream)[0];
      },
      small);
  Samples trip = sample(options.seconds() / 4, [&] { (one + one).item<float>(); });
  report.add({.name = "add + eval + item",
              .value = trip.median() * 1e6,
              .unit = "µs",
              .bar = value_at_most(10)});

  const int rows = options.quick ? 1024 : 16384;
  const int many = options.quick ? 1 << 20 : 1 << 28;
  const array x = astype(ones({rows, 4096}), bfloat16), w = astype(ones({4096}), bfloat16);
  const array a = ones({many}), b = ones({many});
  eval(x, w, a, b);
  const double row_bytes = 2.0 * 2 * rows * 4096;
  auto norm = fast::metal_kernel("rms_norm_rows", {"x", "w"}, {"y"}, rms_norm);
  auto run_norm = [&] {
    return norm({x, w}, {x.shape()}, {bfloat16}, {512, rows, 1}, {512, 1, 1}, {}, std::nullopt,
                false, stream)[0];
  };
  const array expected = astype(fast::rms_norm(x, w, 1e-5F, Device::cpu), float32, Device::cpu);
  const array got = astype(run_norm(), float32, Device::cpu);
  if (const float off =
          max(abs(subtract(got, expected, Device::cpu), Device::cpu), Device::cpu).item<float>();
      !(off <= 0.01F))
    throw std::runtime_error("[bench] the custom RMS norm is off by " + std::to_string(off));
  add_rate(report, options, "RMS norm of rows, custom kernel (guarded)", row_bytes, 3.6, run_norm);
  add_rate(report, options, "RMS norm of rows", row_bytes, 4.0,
           [&] { return fast::rms_norm(x, w, 1e-5F); });
  add_rate(report, options, "add, float32", 12.0 * many, 4.2, [&] { return a + b; });
  add_rate(report, options, "softmax of rows", row_bytes, 3.8, [&] { return softmax(x, -1); });
  add_rate(report, options, "transposed copy", row_bytes, 3.4,
           [&] { return contiguous(transpose(x, {1, 0})); });
  add_rate(report, options, "sum of rows", row_bytes / 2, 3.9, [&] { return sum(x, -1); });
}

}  // namespace holdfast::bench
