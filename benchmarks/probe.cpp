#include "benchmarks/probe.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

namespace holdfast::bench {

int run_probe(const std::vector<std::string>& arguments) {
  static constexpr std::pair<const char*, void (*)(const std::string&)> probes[] = {
      {"start", probe_start}, {"kernels", probe_kernels}, {"compile", probe_compile}};
  for (const auto& [name, run] : probes) {
    if (arguments.size() != 2 || arguments[0] != name) continue;
    run(arguments[1]);
    return 0;
  }
  return 1;
}

std::map<std::string, double> probe(const std::string& what, const std::string& folder) {
  std::string program = std::filesystem::read_symlink("/proc/self/exe");
  std::string command = "HOLDFAST_CACHE_DIR='" + folder + "' '" + program + "' bench --probe " +
                        what + " n" + std::filesystem::path(folder).filename().string();
  std::map<std::string, double> values;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("[bench] cannot run " + command);
  std::array<char, 256> line;
  while (std::fgets(line.data(), line.size(), pipe)) {
    std::istringstream words(line.data());
    std::string name;
    double value;
    if (words >> name >> value) values[name] = value;
  }
  if (pclose(pipe) != 0) throw std::runtime_error("[bench] failed: " + command);
  return values;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "holdfast-bench-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("[bench] no temporary folder: " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace holdfast::bench
