#include "support/child.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

extern char** environ;

namespace holdfast::testing {

ChildResult run_child(const std::string& name, const std::vector<std::string>& variables) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
  std::vector<std::string> environment;
  for (char** variable = environ; *variable; ++variable) environment.emplace_back(*variable);
  for (const std::string& variable : variables) {
    std::erase_if(environment, [&](const std::string& old) {
      return old.starts_with(variable.substr(0, variable.find('=') + 1));
    });
    environment.push_back(variable);
  }
  environment.push_back("HOLDFAST_TEST_CHILD=" + name);
  std::vector<char*> environment_pointers;
  for (std::string& variable : environment) environment_pointers.push_back(variable.data());
  environment_pointers.push_back(nullptr);
  std::string filter = "--test-case=" + name;
  char program[] = "/proc/self/exe";
  char* arguments[] = {program, filter.data(), nullptr};

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  pid_t child = 0;
  int error =
      posix_spawn(&child, program, &actions, nullptr, arguments, environment_pointers.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    throw std::runtime_error("cannot start a child process");
  }
  ChildResult result{0, ""};
  char text[4096];
  for (ssize_t length; (length = read(ends[0], text, sizeof(text))) > 0;) {
    result.output.append(text, static_cast<size_t>(length));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  // A name that matches nothing would pass as well.
  bool has_run = result.output.find(" 1 passed | 0 failed") != std::string::npos;
  if (result.exit_code == 0 && !has_run) result.exit_code = -2;
  return result;
}

bool is_child(const std::string& name) {
  const char* current = std::getenv("HOLDFAST_TEST_CHILD");
  return current && current == name;
}

void report(const std::string& text) {
  std::string line = "<<" + text + ">>\n";
  if (write(1, line.data(), line.size()) < 0) std::abort();
}

std::string reported(const ChildResult& result) {
  std::string text;
  for (size_t at = 0; (at = result.output.find("<<", at)) != std::string::npos; at += 2) {
    size_t end = result.output.find(">>", at);
    if (end != std::string::npos) text += result.output.substr(at + 2, end - at - 2) + "\n";
  }
  return text;
}

}  // namespace holdfast::testing
