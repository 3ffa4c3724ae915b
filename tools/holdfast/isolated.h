// Work that may end its process (a compiler on a text that was never compiled before), in a child
// process with bounds.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace holdfast::tool {

struct Limits {
  unsigned seconds = 120;  // of processor time for a step; of the clock ten times as many
  uint64_t bytes = 0;      // of address space; 0: no bound
};

struct Ending;
class Progress;
Ending run_isolated(const Limits& limits, const std::function<int(Progress&)>& work);

// How far a child has come: written by it, read by its parent when it is gone.
class Progress {
 public:
  // A step begins: its bounds count from here.
  void begin(uint32_t step, const std::string& name);
  // What came of steps, for the parent to count.
  void count(bool good) { ++(good ? good_ : bad_); }
  uint32_t step() const { return step_; }
  const char* name() const { return name_; }

 private:
  friend struct Child;
  friend Ending run_isolated(const Limits& limits, const std::function<int(Progress&)>& work);
  Limits limits_;
  uint32_t step_ = 0, good_ = 0, bad_ = 0;
  char name_[256] = {};
};

struct Ending {
  int status = 0;       // what `work` returned; -1: the child was ended
  std::string problem;  // by what, in that case
  uint32_t step = 0;    // the last one that began
  std::string name;
  uint32_t good = 0, bad = 0;  // as counted
};

// Runs `work` in a child of this process and waits. The process must not have started threads yet.
// The child ends without destructors; what it prints is flushed.
Ending run_isolated(const Limits& limits, const std::function<int(Progress&)>& work);

}  // namespace holdfast::tool
