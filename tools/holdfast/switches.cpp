#include <cstdio>
#include <cstdlib>

#include "base/environment.h"
#include "tools/holdfast/commands.h"

namespace holdfast::tool {

int run_switches(Arguments arguments) {
  for (const std::string& argument : arguments) {
    if (argument != "--markdown") throw UsageError("unknown argument \"" + argument + "\"");
  }
  if (!arguments.empty()) {
    std::fputs(environment::markdown().c_str(), stdout);
    return 0;
  }
  for (const environment::Switch& s : environment::table()) {
    const char* value = std::getenv(s.name);
    std::printf("%-28s %-10s default %-10s %s\n", s.name, value && *value ? value : "(not set)",
                s.default_text, s.meaning);
  }
  return 0;
}

}  // namespace holdfast::tool
