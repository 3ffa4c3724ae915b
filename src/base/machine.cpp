#include "base/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

namespace holdfast::machine {
namespace {

// The cgroup folders that bind this process, innermost first (v2), with the v1 fallback paths.
template <class Visit>
void for_each_cgroup(Visit visit) {
  std::ifstream self("/proc/self/cgroup");
  std::string line, path = "/";
  while (std::getline(self, line)) {
    if (line.rfind("0::", 0) == 0) path = line.substr(3);
  }
  while (true) {
    visit("/sys/fs/cgroup" + path + (path.ends_with('/') ? "" : "/"));
    if (path.empty() || path == "/") break;
    path.erase(path.rfind('/'));
    if (path.empty()) path = "/";
  }
}

bool read_line(const std::string& file, std::string& line) {
  std::ifstream stream(file);
  return static_cast<bool>(std::getline(stream, line));
}

}  // namespace

int threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (sched_getaffinity(0, sizeof(set), &set) == 0) count = CPU_COUNT(&set);
  double quota = count;
  std::string line;
  for_each_cgroup([&](const std::string& folder) {
    double allowed = 0, period = 0;
    if (read_line(folder + "cpu.max", line) && std::istringstream(line) >> allowed >> period &&
        period > 0) {
      quota = std::min(quota, allowed / period);
    }
  });
  std::string period_line;
  if (read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line) &&
      read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period_line)) {
    double allowed = std::atof(line.c_str()), period = std::atof(period_line.c_str());
    if (allowed > 0 && period > 0) quota = std::min(quota, allowed / period);
  }
  return std::max(1, std::min(count, static_cast<int>(std::ceil(quota))));
}

size_t memory_bytes() {
  size_t bytes =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::string line;
  auto lower = [&](const std::string& file) {
    size_t limit = 0;
    if (read_line(file, line) && std::istringstream(line) >> limit && limit > 0) {
      bytes = std::min(bytes, limit);
    }
  };
  for_each_cgroup([&](const std::string& folder) { lower(folder + "memory.max"); });
  lower("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  return bytes;
}

bool supports(InstructionSet set) {
  if (set == InstructionSet::baseline) return true;
#if defined(__x86_64__)
  // The features of x86-64-v3 and x86-64-v4, which a compiler may use for these sets.
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi") &&
              __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt") &&
              __builtin_cpu_supports("movbe") && __builtin_cpu_supports("popcnt");
  if (set == InstructionSet::avx2) return avx2;
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

}  // namespace holdfast::machine
