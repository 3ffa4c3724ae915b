#include "tools/holdfast/isolated.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>

namespace holdfast::tool {

struct Child {
  // Never returns.
  [[noreturn]] static void run(const Limits& limits, Progress& progress,
                               const std::function<int(Progress&)>& work) {
    progress.limits_ = limits;
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    if (limits.bytes != 0) {
      const rlimit space{limits.bytes, limits.bytes};
      setrlimit(RLIMIT_AS, &space);
    }
    for (int number : {SIGALRM, SIGXCPU}) signal(number, SIG_DFL);
    int status = 1;
    try {
      status = work(progress);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "holdfast: %s\n", error.what());
    }
    std::fflush(nullptr);
    _exit(status);
  }
};

void Progress::begin(uint32_t step, const std::string& name) {
  step_ = step;
  const size_t length = std::min(name.size(), sizeof(name_) - 1);
  std::memcpy(name_, name.data(), length);
  name_[length] = 0;
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  rlimit time{};
  getrlimit(RLIMIT_CPU, &time);
  // Rounded up: the kernel counts whole seconds.
  time.rlim_cur =
      static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 2 + limits_.seconds;
  setrlimit(RLIMIT_CPU, &time);
  alarm(10 * limits_.seconds);  // it sleeps, and nothing will wake it
}

Ending run_isolated(const Limits& limits, const std::function<int(Progress&)>& work) {
  void* shared =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("no memory for a child process");
  auto* progress = new (shared) Progress;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) Child::run(limits, *progress, work);
  int state = 0;
  pid_t ended = child;
  if (child > 0) {
    do {
      ended = waitpid(child, &state, 0);
    } while (ended < 0 && errno == EINTR);
  }
  Ending ending;
  ending.step = progress->step();
  ending.name = progress->name();
  ending.good = progress->good_;
  ending.bad = progress->bad_;
  munmap(shared, sizeof(Progress));
  if (ended < 0) throw std::runtime_error("no child process could be started");
  if (WIFEXITED(state)) {
    ending.status = WEXITSTATUS(state);
    return ending;
  }
  ending.status = -1;
  const int number = WTERMSIG(state);
  if (number == SIGXCPU || number == SIGALRM) {
    ending.problem = "it took more than " + std::to_string(limits.seconds) + " s";
  } else {
    const char* name = sigabbrev_np(number);
    ending.problem = std::string("it ended its process (SIG") + (name ? name : "?") + ")";
  }
  return ending;
}

}  // namespace holdfast::tool
