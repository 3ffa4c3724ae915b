// What a reader of numbers has to know about the machine they come from.
#pragma once

#include <string>

namespace holdfast::bench {

struct MachineInfo {
  std::string processor;
  int threads;          // that this process may use
  int library_threads;  // that the library uses: HOLDFAST_THREADS, or the same
  size_t memory_bytes;  // that this process may use
  const char* kernels;  // the instruction set of the library's kernels
  std::string compiler;
  double load;  // runnable processes of the whole machine, averaged over the last minute
};

MachineInfo machine_info();

// How much of the machine others used since this object was made: numbers from a busy machine are
// worth little.
class OthersUse {
 public:
  OthersUse();
  // From 0 to 1; negative when the system does not say.
  double fraction() const;

 private:
  double busy_, own_;
  double started_;
};

}  // namespace holdfast::bench
