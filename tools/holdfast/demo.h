// What the scenes of `holdfast demo` share.
#pragma once

#include <cstdio>
#include <string>

namespace holdfast::tool {

// "yes" or "NO", and remembers a NO.
class Verdict {
 public:
  const char* of(bool good) {
    all_good_ = all_good_ && good;
    return good ? "yes" : "NO";
  }
  bool all_good() const { return all_good_; }

 private:
  bool all_good_ = true;
};

inline void heading(const char* text) { std::printf("\n%s\n", text); }

// Twelve layers that use one kernel name, from many threads at once.
void show_kernels(Verdict& verdict);

// Streams that decode, captured and replayed. `report`: the file of a page about it, beside which
// the capture is kept; empty: none.
void show_capture(Verdict& verdict, const std::string& report);

}  // namespace holdfast::tool
