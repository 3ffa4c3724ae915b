// The subcommands of `holdfast`. Each gets its arguments (without its name) and returns the exit
// status: 0, 1 for a failure, 2 for wrong usage.
#pragma once

#include <span>
#include <stdexcept>
#include <string>

namespace holdfast::tool {

using Arguments = std::span<const std::string>;

struct Command {
  const char* name;
  const char* usage;        // the arguments
  const char* description;  // one line
  const char* details;      // for --help; may be empty
  int (*run)(Arguments arguments);
};

// Thrown by a command for arguments it does not understand; main prints it with the usage.
class UsageError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

int run_bench(Arguments arguments);
int run_bench_decode(Arguments arguments);
int run_chaos(Arguments arguments);
int run_demo(Arguments arguments);
int run_generate(Arguments arguments);
int run_info(Arguments arguments);
int run_kernel(Arguments arguments);
int run_ops(Arguments arguments);
int run_switches(Arguments arguments);
int run_trace(Arguments arguments);

}  // namespace holdfast::tool
