// Test cases that run in a process of their own: the test program starts itself.
#pragma once

#include <string>
#include <vector>

namespace holdfast::testing {

struct ChildResult {
  int exit_code;  // -1 when it was killed by a signal, -2 when no test case ran
  std::string output;
};

// Runs the test case `name` of this program in a new process, with the variables ("NAME=value")
// added to the environment.
ChildResult run_child(const std::string& name, const std::vector<std::string>& variables = {});

// Is this process the child that runs `name`? A test case meant for children returns otherwise.
bool is_child(const std::string& name);

// For a child to say something that ends up in ChildResult::output, between "<<" and ">>".
void report(const std::string& text);
// What the child reported.
std::string reported(const ChildResult& result);

}  // namespace holdfast::testing
