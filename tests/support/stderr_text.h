// What is printed to stderr while an object lives. Of the whole process: for tests with one thread.
#pragma once

#include <string>

namespace holdfast::testing {

class StderrText {
 public:
  StderrText();
  ~StderrText() { take(); }
  StderrText(const StderrText&) = delete;

  // Ends it, and gives what was printed.
  std::string take();

 private:
  int file_, before_;
};

}  // namespace holdfast::testing
