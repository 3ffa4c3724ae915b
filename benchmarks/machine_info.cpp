#include "benchmarks/machine_info.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "base/environment.h"
#include "base/machine.h"
#include "kernels/cpu/instruction_set.h"

namespace holdfast::bench {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("model name", 0) == 0 || line.rfind("CPU implementer", 0) == 0) {
      size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown processor";
}

std::string compiler_name() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

// Seconds that all processors together were not idle; negative when unknown.
double busy_seconds() {
  std::ifstream file("/proc/stat");
  std::string name;
  double user, nice, system, idle, waiting, interrupts, soft_interrupts, stolen;
  if (!(file >> name >> user >> nice >> system >> idle >> waiting >> interrupts >>
        soft_interrupts >> stolen)) {
    return -1;
  }
  double ticks = user + nice + system + interrupts + soft_interrupts + stolen;
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Processor time of this process and of the children it has waited for.
double own_seconds() {
  double seconds = 0;
  for (int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
      seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    }
  }
  return seconds;
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

OthersUse::OthersUse() : busy_(busy_seconds()), own_(own_seconds()), started_(now_seconds()) {}

double OthersUse::fraction() const {
  double busy = busy_seconds();
  double available =
      (now_seconds() - started_) * static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  if (busy < 0 || busy_ < 0 || available <= 0) return -1;
  return std::clamp((busy - busy_ - (own_seconds() - own_)) / available, 0.0, 1.0);
}

MachineInfo machine_info() {
  double load[1] = {0};
  if (getloadavg(load, 1) != 1) load[0] = -1;
  int threads = machine::threads();
  int asked = environment::settings().threads;
  return {processor_name(),
          threads,
          asked > 0 ? asked : threads,
          machine::memory_bytes(),
          kernels::cpu::instruction_set_name(kernels::cpu::instruction_set()),
          compiler_name(),
          load[0]};
}

}  // namespace holdfast::bench
