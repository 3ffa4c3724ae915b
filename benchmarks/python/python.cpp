// `holdfast bench python`: what calls from Python cost, beside the mlx package in the same run. The
// measuring is done by measure.py, with the python3 that is found first, once for each package.
#include <cstdio>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "benchmarks/bench.h"

namespace holdfast::bench {

namespace {

namespace fs = std::filesystem;

// The package of this build: beside the folder of the running program.
fs::path package_folder() {
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path() / "python";
}

nlohmann::json measure(const std::string& package) {
  fs::path script = fs::path(HOLDFAST_BENCHMARKS) / "python" / "measure.py";
  std::string command = "PYTHONPATH='" + package_folder().string() + "' python3 '" +
                        script.string() + "' " + package + " 2>/dev/null";
  std::string text;
  if (std::FILE* pipe = popen(command.c_str(), "r")) {
    char part[4096];
    while (size_t count = std::fread(part, 1, sizeof(part), pipe)) text.append(part, count);
    if (pclose(pipe) != 0) text.clear();
  }
  nlohmann::json result = nlohmann::json::parse(text, nullptr, false);
  return result.is_object() ? result : nlohmann::json::object();
}

}  // namespace

void run_python(Report& report, const Options&) {
  if (!fs::exists(package_folder() / "holdfast")) {
    report.say("no Python package beside this command: build the target holdfast-python");
    return;
  }
  nlohmann::json ours = measure("holdfast"), theirs = measure("mlx");
  if (ours.empty()) {
    report.say("python3 cannot import the package (it needs 3.11 or later)");
    return;
  }
  if (theirs.empty()) report.say("the mlx package is not installed: nothing to compare with");

  report.add({.name = "import",
              .value = ours.value("import_ms", none),
              .unit = "ms",
              .reference = "150 ms",
              .reference_value = 150,
              .bar = value_at_most(150)});
  struct Measured {
    const char *key, *name;
  };
  constexpr Measured calls[] = {
      {"add_ns", "a + b, build only"},
      {"add_scalar_ns", "a + 1.0"},
      {"index_ns", "m[1]"},
      {"slice_ns", "m[1:3]"},
      {"take_ns", "m[places]"},
      {"mixed_ns", "m[1:3, None, 2]"},
      {"method_ns", "m.sum(axis=0)"},
  };
  for (const Measured& call : calls) {
    Row row{.name = call.name, .value = ours.value(call.key, none), .unit = "ns"};
    if (!theirs.empty()) {
      row.reference = "mlx, this run";
      row.reference_value = theirs.value(call.key, none);
      row.bar = ratio_at_most(1.0);
    }
    report.add(row);
  }
  if (ours.contains("numpy_ms")) {
    bool is_shared = ours.value("numpy_shared", false);
    report.add({.name = "1 GB from NumPy and back",
                .value = ours.value("numpy_ms", none),
                .unit = "ms",
                .note = is_shared ? "the same memory, no copy" : "COPIED"});
  } else {
    report.say("NumPy is not installed: no round trip of a gigabyte");
  }
}

}  // namespace holdfast::bench
