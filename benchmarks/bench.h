// The frame of `holdfast bench`: rows, suites, and how to time two things side by side.
//
// To add a suite: write `void run_name(Report&, const Options&)` in a file of its own and give it a
// row in the table at the top of bench.cpp.
#pragma once

#include <holdfast/array.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace holdfast::bench {

// Arrays used in turn, more than 512 MiB of them: a server's last-level cache may hold a single
// one, and then a benchmark of memory would measure the cache.
class Rotation {
 public:
  explicit Rotation(const Shape& shape);
  const array& next() { return arrays_[++turn_ % arrays_.size()]; }

 private:
  std::vector<array> arrays_;
  size_t turn_ = 0;
};

struct Options {
  bool quick = false;
  bool peers = false;  // also measure other frameworks that are installed

  std::string only = {};  // rows of `ops` whose name contains this

  bool wants(const std::string& row) const { return row.find(only) != std::string::npos; }
  // How long one measurement may take.
  double seconds() const { return quick ? 0.8 : 4.0; }
};

// What a row must reach to be `ok`.
struct Bar {
  enum class On { value, ratio };
  On on;
  bool at_most;
  double limit;
};
inline Bar value_at_most(double limit) { return {Bar::On::value, true, limit}; }
inline Bar ratio_at_most(double limit) { return {Bar::On::ratio, true, limit}; }
inline Bar ratio_at_least(double limit) { return {Bar::On::ratio, false, limit}; }

inline constexpr double none = std::numeric_limits<double>::quiet_NaN();

struct Row {
  std::string name;
  double value = none;
  std::string unit;
  std::string reference = {};  // what it is compared with
  double reference_value = none;
  double ratio = none;  // value to reference; none: value / reference_value
  std::optional<Bar> bar = {};
  std::string note = {};
  // Set by Report::add.
  std::string suite = {};
  std::optional<bool> ok = {};
};

// Collects rows and prints each as it comes.
class Report {
 public:
  explicit Report(std::FILE* out) : out_(out) {}
  void begin(std::string suite) { suite_ = std::move(suite); }
  void add(Row row);
  // A line beside the table, such as why something was left out.
  void say(const std::string& text);
  std::span<const Row> rows() const { return rows_; }
  // One line: how many rows meet their bar.
  void print_summary() const;

 private:
  void print(const Row& row);
  std::FILE* out_;
  std::string suite_;
  std::vector<Row> rows_;
};

struct Suite {
  const char* name;
  const char* description;
  void (*run)(Report&, const Options&);
};
// All suites, in the order they run.
std::span<const Suite> suites();

// Rows and machine as JSON. `used_by_others`: OthersUse::fraction of the run. Throws
// std::runtime_error when the file cannot be written.
void write_json(const std::string& path, const Report& report, const Options& options,
                double used_by_others);

// --- timing -----------------------------------------------------------------------------

using Clock = std::chrono::steady_clock;

template <class Work>
double seconds_of(Work&& work) {
  auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The value at `fraction` of the sorted values.
inline double quantile(std::vector<double> values, double fraction) {
  if (values.empty()) return none;
  std::sort(values.begin(), values.end());
  double place = fraction * static_cast<double>(values.size() - 1);
  return values[static_cast<size_t>(std::lround(place))];
}
inline double median(const std::vector<double>& values) { return quantile(values, 0.5); }

// A geometric mean of ratios.
struct GeometricMean {
  double logarithms = 0;
  int count = 0;

  void add(double ratio) {
    logarithms += std::log(ratio);
    ++count;
  }
  double mean() const { return count ? std::exp(logarithms / count) : none; }
  std::string note() const { return std::to_string(count) + " rows"; }
};

struct Interval {
  double low, high;
  double width() const { return high - low; }
};
// Where the true median lies with 95 % confidence, by order statistics: no assumption about how
// the noise is distributed.
inline Interval median_interval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  auto last = static_cast<double>(values.size() - 1);
  double half = 0.98 * std::sqrt(static_cast<double>(values.size()));
  auto at = [&](double place) {
    return values[static_cast<size_t>(std::lround(std::clamp(place, 0.0, last)))];
  };
  return {at(last / 2 - half), at(last / 2 + half)};
}

struct Samples {
  std::vector<double> seconds;
  double median() const { return bench::median(seconds); }
  double best() const { return *std::min_element(seconds.begin(), seconds.end()); }
};

// Times `work` again and again for about `budget` seconds, at least 5 times, after one warm-up.
template <class Work>
Samples sample(double budget, Work&& work) {
  work();
  Samples samples;
  auto start = Clock::now();
  while (samples.seconds.size() < 5 ||
         std::chrono::duration<double>(Clock::now() - start).count() < budget) {
    samples.seconds.push_back(seconds_of(work));
  }
  return samples;
}

// Two things timed in turn: A, B, B, A, A, B, … The ratio of each neighbouring pair is free of the
// drift of a shared machine; the median of the ratios is free of its outliers.
struct Pairs {
  std::vector<double> a, b, ratios;  // ratios: time of A / time of B
  double ratio() const { return median(ratios); }
  Interval interval() const { return median_interval(ratios); }
};

// Stops after `budget` seconds, or when the ratio's interval is narrower than `narrow`.
template <class A, class B>
Pairs interleave(double budget, A&& run_a, B&& run_b, double narrow = 0) {
  run_a();
  run_b();
  Pairs pairs;
  auto start = Clock::now();
  while (true) {
    double a, b;
    if (pairs.ratios.size() % 2 == 0) {
      a = seconds_of(run_a);
      b = seconds_of(run_b);
    } else {
      b = seconds_of(run_b);
      a = seconds_of(run_a);
    }
    pairs.a.push_back(a);
    pairs.b.push_back(b);
    pairs.ratios.push_back(a / b);
    size_t count = pairs.ratios.size();
    if (count < 7) continue;
    if (std::chrono::duration<double>(Clock::now() - start).count() > budget) break;
    if (narrow > 0 && count >= 64 && count % 32 == 0 && pairs.interval().width() < narrow) break;
  }
  return pairs;
}

// "101 pairs, 0.93 to 0.97, best to best 0.95": the number of pairs, the interval of the median
// ratio, and the ratio of the two best times, which a busy machine disturbs least. `inverse` when
// the row's ratio is B to A.
std::string describe(const Pairs& pairs, bool inverse = false);

// The suites' entry points.
void run_roofline(Report&, const Options&);
void run_overhead(Report&, const Options&);
void run_elementwise(Report&, const Options&);
void run_reduce(Report&, const Options&);
void run_retain(Report&, const Options&);
void run_capture(Report&, const Options&);
void run_validation(Report&, const Options&);
void run_python(Report&, const Options&);
void run_matmul(Report&, const Options&);
void run_lm_ops(Report&, const Options&);
void run_gpu(Report&, const Options&);
void run_ops(Report&, const Options&);
void run_compile(Report&, const Options&);
void run_kernels(Report&, const Options&);
void run_kernel_latency(Report&, const Options&);
void run_gpu_kernels(Report&, const Options&);

}  // namespace holdfast::bench
