// Code that ends its process, run in a fork of the test program.
#pragma once

#include <functional>
#include <string>

namespace holdfast::testing {

// What the fork printed to stderr before it ended, and how it ended (see waitpid).
struct Death {
  std::string output;
  int status = 0;
};

// Runs `body` in a fork, which has the calling thread alone. A body that returns ends it with 0.
Death run_in_fork(const std::function<void()>& body);

bool aborted(const Death& death);
bool contains(const std::string& text, const std::string& part);

}  // namespace holdfast::testing
