#include "benchmarks/bench.h"

#include <holdfast/holdfast.h>

#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "benchmarks/machine_info.h"

namespace holdfast::bench {

Rotation::Rotation(const Shape& shape) {
  size_t bytes = 0;
  for (uint64_t seed = 1; bytes <= size_t{512} << 20; ++seed) {
    array a = random::normal(shape, random::key(seed));
    a.eval();
    bytes += a.nbytes();
    arrays_.push_back(std::move(a));
  }
}
namespace {

constexpr Suite all_suites[] = {
    {"roofline", "what the machine can do: bandwidth and floating-point peak of all cores",
     run_roofline},
    {"overhead", "cost of an op that computes almost nothing", run_overhead},
    {"elementwise", "a + b, exp(a*b+a) and gelu on 16M floats", run_elementwise},
    {"reduce", "sums and softmax of a 4096 x 4096 matrix", run_reduce},
    {"retain", "what it costs that command lists own what they refer to", run_retain},
    {"validation", "what validation costs while it is on", run_validation},
    {"capture", "what a capture costs while it is recorded", run_capture},
    {"matmul", "a 2048 x 2048 product against OpenBLAS", run_matmul},
    {"lm-ops", "decode steps of language models: how fast caches and states are read", run_lm_ops},
    {"gpu", "ops on Device::gpu: what each costs, and what memory gives", run_gpu},
    {"ops", "ops beside the machine's limits, and a frozen list beside MLX, JAX and NumPy",
     run_ops},
    {"compile", "compiled functions beside MLX and JAX, and what a call of one costs", run_compile},
    {"kernels", "kernels in the Metal Shading Language against SIMD by hand and PoCL", run_kernels},
    {"kernel-latency", "what a kernel costs before it runs: compiling, disk cache, dispatch",
     run_kernel_latency},
    {"gpu-kernels", "bytes that the GPU's kernels move against those that must move",
     run_gpu_kernels},
    {"python", "what calls from Python cost beside the mlx package, importing, NumPy", run_python},
};

// Characters, not bytes: the table has µ, ≤ and × in it.
size_t display_width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string left(std::string text, size_t width) {
  size_t have = display_width(text);
  return have < width ? text + std::string(width - have, ' ') : text;
}
std::string right(std::string text, size_t width) {
  size_t have = display_width(text);
  return have < width ? std::string(width - have, ' ') + text : text;
}

// Three to four significant digits, without an exponent.
std::string number(double value) {
  if (std::isnan(value)) return "-";
  double size = std::abs(value);
  int decimals = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", decimals, value);
  return text;
}
std::string ratio_text(double value) {
  if (std::isnan(value)) return "-";
  char text[64];
  std::snprintf(text, sizeof(text), "%.3f", value);
  return text;
}

std::string bar_text(const std::optional<Bar>& bar) {
  if (!bar) return "-";
  std::string limit =
      bar->on == Bar::On::ratio ? ratio_text(bar->limit) + " ×" : number(bar->limit);
  return std::string(bar->at_most ? "≤ " : "≥ ") + limit;
}

std::string line(const std::string& suite, const std::string& name, const std::string& value,
                 const std::string& unit, const std::string& reference,
                 const std::string& reference_value, const std::string& ratio,
                 const std::string& bar, const std::string& ok, const std::string& note) {
  std::string text = left(suite, 12) + left(name, 52) + right(value, 8) + " " + left(unit, 9) +
                     left(reference, 36) + right(reference_value, 8) + right(ratio, 8) + "  " +
                     left(bar, 9) + " " + left(ok, 4) + note;
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

nlohmann::json number_or_null(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

nlohmann::json to_json(const Row& row) {
  nlohmann::json json;
  json["suite"] = row.suite;
  json["name"] = row.name;
  json["value"] = number_or_null(row.value);
  json["unit"] = row.unit;
  json["reference"] =
      row.reference.empty() ? nlohmann::json(nullptr) : nlohmann::json(row.reference);
  json["reference_value"] = number_or_null(row.reference_value);
  json["ratio"] = number_or_null(row.ratio);
  json["bar"] = nullptr;
  if (row.bar) {
    json["bar"] = {{"on", row.bar->on == Bar::On::ratio ? "ratio" : "value"},
                   {"direction", row.bar->at_most ? "at most" : "at least"},
                   {"limit", row.bar->limit}};
  }
  json["ok"] = row.ok ? nlohmann::json(*row.ok) : nlohmann::json(nullptr);
  json["note"] = row.note;
  return json;
}

}  // namespace

std::span<const Suite> suites() { return all_suites; }

void Report::add(Row row) {
  row.suite = suite_;
  if (std::isnan(row.ratio)) row.ratio = row.value / row.reference_value;
  if (row.bar) {
    double measured = row.bar->on == Bar::On::ratio ? row.ratio : row.value;
    row.ok = row.bar->at_most ? measured <= row.bar->limit : measured >= row.bar->limit;
  }
  print(row);
  rows_.push_back(std::move(row));
}

void Report::print(const Row& row) {
  if (rows_.empty()) {
    std::string head =
        line("suite", "name", "value", "unit", "reference", "value", "ratio", "bar", "ok", "note");
    std::fprintf(out_, "%s\n%s\n", head.c_str(), std::string(155, '-').c_str());
  }
  std::string ok = !row.ok ? "-" : *row.ok ? "yes" : "NO";
  std::string text = line(row.suite, row.name, number(row.value), row.unit,
                          row.reference.empty() ? "-" : row.reference, number(row.reference_value),
                          ratio_text(row.ratio), bar_text(row.bar), ok, row.note);
  std::fprintf(out_, "%s\n", text.c_str());
  std::fflush(out_);
}

void Report::say(const std::string& text) {
  std::fprintf(out_, "# %s: %s\n", suite_.c_str(), text.c_str());
  std::fflush(out_);
}

void Report::print_summary() const {
  size_t with_bar = 0, met = 0;
  for (const Row& row : rows_) {
    if (row.ok) ++with_bar;
    if (row.ok.value_or(false)) ++met;
  }
  std::fprintf(out_, "\n%zu rows, %zu with a bar, %zu of them met\n", rows_.size(), with_bar, met);
}

std::string describe(const Pairs& pairs, bool inverse) {
  Interval interval = pairs.interval();
  if (inverse) interval = {1 / interval.high, 1 / interval.low};
  double best = *std::min_element(pairs.a.begin(), pairs.a.end()) /
                *std::min_element(pairs.b.begin(), pairs.b.end());
  char text[96];
  std::snprintf(text, sizeof(text), "%zu pairs, %.3f to %.3f, best to best %.3f",
                pairs.ratios.size(), interval.low, interval.high, inverse ? 1 / best : best);
  return text;
}

void write_json(const std::string& path, const Report& report, const Options& options,
                double used_by_others) {
  MachineInfo machine = machine_info();
  nlohmann::json json;
  json["program"] = "holdfast";
  json["version"] = HOLDFAST_VERSION;
  json["quick"] = options.quick;
  json["machine"] = {{"processor", machine.processor},
                     {"threads", machine.threads},
                     {"library_threads", machine.library_threads},
                     {"memory_bytes", machine.memory_bytes},
                     {"kernels", machine.kernels},
                     {"compiler", machine.compiler},
                     {"load_at_the_end", machine.load},
                     {"used_by_others", number_or_null(used_by_others)}};
  json["rows"] = nlohmann::json::array();
  for (const Row& row : report.rows()) json["rows"].push_back(to_json(row));
  std::ofstream file(path);
  file << json.dump(2) << "\n";
  file.close();
  if (!file) throw std::runtime_error("[bench] cannot write \"" + path + "\"");
}

}  // namespace holdfast::bench
