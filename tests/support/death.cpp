#include "tests/support/death.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

namespace holdfast::testing {

Death run_in_fork(const std::function<void()>& body) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::cout.flush();
  fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    signal(SIGABRT, SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    alarm(30);
    body();
    _exit(0);
  }
  close(ends[1]);
  Death death;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    death.output.append(buffer, static_cast<size_t>(n));
  }
  close(ends[0]);
  REQUIRE(waitpid(child, &death.status, 0) == child);
  return death;
}

bool aborted(const Death& death) {
  return WIFSIGNALED(death.status) && WTERMSIG(death.status) == SIGABRT;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace holdfast::testing
