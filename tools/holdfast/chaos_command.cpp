// `holdfast chaos`: a program under one seed of HOLDFAST_CHAOS after the other.
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "exec/layers/chaos/chaos.h"
#include "tools/holdfast/commands.h"

extern char** environ;

namespace holdfast::tool {
namespace {

namespace chaos = exec::chaos;

uint64_t number(const std::string& option, const std::string& text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw UsageError(option + " must be a whole number, got \"" + text + "\"");
  }
  return value;
}

struct Program {
  std::vector<std::string> words;
  uint64_t limit;  // seconds; 0: none
};

struct Outcome {
  int status = 0;
  uint64_t ended_after = 0;  // seconds, when it took too long
  std::string output;        // both streams
  bool failed() const { return status != 0; }
  std::string describe() const {
    if (ended_after != 0) return "did not end within " + std::to_string(ended_after) + " s";
    if (WIFSIGNALED(status)) return "was ended by signal " + std::to_string(WTERMSIG(status));
    return "ended with status " + std::to_string(WEXITSTATUS(status));
  }
};

// When a program has to end.
class Deadline {
 public:
  explicit Deadline(uint64_t limit) : limit_(limit) {}
  bool has_passed() const { return limit_ != 0 && left() <= 0; }
  // False when it passed before there was anything to read.
  bool wait_for_output(int from) const {
    while (!has_passed()) {
      pollfd end{from, POLLIN, 0};
      int ready =
          poll(&end, 1, limit_ == 0 ? -1 : static_cast<int>(std::min(left(), 3600.0) * 1e3 + 1));
      if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
    }
    return false;
  }

 private:
  double left() const {
    std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    return static_cast<double>(limit_) - passed.count();
  }
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  uint64_t limit_;
};

Outcome run_under(const chaos::Setting& setting, const Program& program) {
  setenv("HOLDFAST_CHAOS", chaos::to_text(setting).c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : program.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("[chaos] cannot make a pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child = 0;
  Deadline deadline(program.limit);
  int error = posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Outcome outcome;
  if (error == 0) {
    char text[4096];
    while (deadline.wait_for_output(ends[0])) {
      ssize_t length = read(ends[0], text, sizeof(text));
      if (length < 0 && errno == EINTR) continue;
      if (length <= 0) break;
      outcome.output.append(text, static_cast<size_t>(length));
    }
  }
  close(ends[0]);
  if (error != 0) {
    throw std::runtime_error("[chaos] cannot run \"" + program.words[0] +
                             "\": " + std::strerror(error));
  }
  // A program may close its output long before it ends.
  for (pid_t ended = 0; (ended = waitpid(child, &outcome.status, WNOHANG)) != child;) {
    if (ended < 0 && errno != EINTR) throw std::runtime_error("[chaos] cannot wait for a program");
    if (deadline.has_passed() && outcome.ended_after == 0) {
      outcome.ended_after = program.limit;
      kill(child, SIGKILL);
    }
    usleep(500);
  }
  return outcome;
}

// Drops each knob without which the program still fails.
chaos::Setting smallest(chaos::Setting setting, const Program& program) {
  for (uint32_t knob = 1; knob < chaos::all; knob <<= 1) {
    chaos::Setting fewer{setting.seed, setting.knobs & ~knob};
    if (fewer.knobs == setting.knobs || fewer.knobs == 0) continue;
    if (run_under(fewer, program).failed()) setting = fewer;
  }
  return setting;
}

}  // namespace

int run_chaos(Arguments arguments) {
  uint64_t count = 100, first = 1;
  uint32_t knobs = chaos::all;
  Program program{{}, 300};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      program.words.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
      break;
    }
    bool is_known = argument == "-n" || argument == "--seed" || argument == "--knobs" ||
                    argument == "--timeout";
    if (!is_known)
      throw UsageError("unknown argument \"" + argument + "\"; the program follows --");
    if (++i == arguments.size()) throw UsageError(argument + " needs a value");
    if (argument == "-n") count = number(argument, arguments[i]);
    if (argument == "--seed") first = number(argument, arguments[i]);
    if (argument == "--timeout") program.limit = number(argument, arguments[i]);
    if (argument == "--knobs") knobs = chaos::parse("0:" + arguments[i], "--knobs").knobs;
  }
  if (program.words.empty()) throw UsageError("there is no program to run; it follows --");
  bool is_terminal = isatty(1);
  for (uint64_t done = 0; done < count; ++done) {
    chaos::Setting setting{first + done, knobs};
    if (is_terminal) {
      std::printf("\rseed %llu, %llu of %llu passed", static_cast<unsigned long long>(setting.seed),
                  static_cast<unsigned long long>(done), static_cast<unsigned long long>(count));
      std::fflush(stdout);
    }
    Outcome outcome = run_under(setting, program);
    if (!outcome.failed()) continue;
    if (is_terminal) std::printf("\n");
    std::fputs(outcome.output.c_str(), stdout);
    if (outcome.ended_after == 0) setting = smallest(setting, program);
    std::printf("\n%s %s after %llu seeds that passed. To repeat it:\n  HOLDFAST_CHAOS=%s",
                program.words[0].c_str(), outcome.describe().c_str(),
                static_cast<unsigned long long>(done), chaos::to_text(setting).c_str());
    for (const std::string& word : program.words) std::printf(" %s", word.c_str());
    std::printf("\n");
    return 1;
  }
  std::printf("%s%llu seeds passed\n", is_terminal ? "\n" : "",
              static_cast<unsigned long long>(count));
  return 0;
}

}  // namespace holdfast::tool
