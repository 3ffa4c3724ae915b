#include <algorithm>
#include <cstdio>
#include <fstream>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/machine_info.h"
#include "benchmarks/probe.h"
#include "tools/holdfast/commands.h"

namespace holdfast::tool {
namespace {

const bench::Suite& find_suite(const std::string& name) {
  std::string known;
  for (const bench::Suite& suite : bench::suites()) {
    if (name == suite.name) return suite;
    known += (known.empty() ? "" : ", ") + std::string(suite.name);
  }
  throw UsageError("there is no suite \"" + name + "\"; there are " + known);
}

void print_machine() {
  bench::MachineInfo machine = bench::machine_info();
  std::printf("%s, %d threads (library: %d), %.1f GiB, %s kernels, load %.1f\n\n",
              machine.processor.c_str(), machine.threads, machine.library_threads,
              static_cast<double>(machine.memory_bytes) / (1 << 30), machine.kernels, machine.load);
}

}  // namespace

int run_bench(Arguments arguments) {
  // One half of `kernel-latency` and `compile`: see probe.h.
  if (!arguments.empty() && arguments[0] == "--probe") {
    return bench::run_probe({arguments.begin() + 1, arguments.end()});
  }
  // With options of its own: shapes of models, batches, contexts.
  if (!arguments.empty() && arguments[0] == "decode") return run_bench_decode(arguments.subspan(1));
  bench::Options options;
  std::string json;
  std::vector<const bench::Suite*> chosen;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--quick") {
      options.quick = true;
    } else if (argument == "--peers") {
      options.peers = true;
    } else if (argument == "--list") {
      for (const bench::Suite& suite : bench::suites()) {
        std::printf("%-14s%s\n", suite.name, suite.description);
      }
      return 0;
    } else if (argument == "--json") {
      if (++i == arguments.size()) throw UsageError("--json needs a file name");
      json = arguments[i];
    } else if (argument == "--only") {
      if (++i == arguments.size()) throw UsageError("--only needs a part of a row's name");
      options.only = arguments[i];
    } else if (argument.rfind("-", 0) == 0) {
      throw UsageError("unknown option \"" + argument + "\"");
    } else {
      const bench::Suite* suite = &find_suite(argument);
      if (std::find(chosen.begin(), chosen.end(), suite) == chosen.end()) chosen.push_back(suite);
    }
  }
  if (chosen.empty()) {
    for (const bench::Suite& suite : bench::suites()) chosen.push_back(&suite);
  }

  // Not after minutes of measuring.
  if (!json.empty() && !std::ofstream(json, std::ios::app)) {
    throw std::runtime_error("[bench] cannot write \"" + json + "\"");
  }
  print_machine();
  bench::OthersUse others;
  bench::Report report(stdout);
  for (const bench::Suite* suite : chosen) {
    report.begin(suite->name);
    suite->run(report, options);
  }
  report.print_summary();
  double used_by_others = others.fraction();
  if (used_by_others >= 0.05) {
    std::printf(
        "Other programs used %.0f %% of the machine meanwhile: trust ratios more than values.\n",
        used_by_others * 100);
  }
  if (!json.empty()) bench::write_json(json, report, options, used_by_others);
  return 0;
}

}  // namespace holdfast::tool
