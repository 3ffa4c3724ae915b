// `holdfast chaos`: a program under one seed of HOLDFAST_CHAOS after the other.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
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

struct Outcome {
  int status = 0;
  std::string output;  // both streams
  bool failed() const { return status != 0; }
  std::string describe() const {
    if (WIFSIGNALED(status)) return "was ended by signal " + std::to_string(WTERMSIG(status));
    return "ended with status " + std::to_string(WEXITSTATUS(status));
  }
};

Outcome run_under(const chaos::Setting& setting, const std::vector<std::string>& program) {
  setenv("HOLDFAST_CHAOS", chaos::to_text(setting).c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : program) words.push_back(const_cast<char*>(word.c_str()));
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
  int error = posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Outcome outcome;
  if (error == 0) {
    char text[4096];
    for (ssize_t length; (length = read(ends[0], text, sizeof(text))) != 0;) {
      if (length < 0 && errno == EINTR) continue;
      if (length < 0) break;
      outcome.output.append(text, static_cast<size_t>(length));
    }
  }
  close(ends[0]);
  if (error != 0) {
    throw std::runtime_error("[chaos] cannot run \"" + program[0] + "\": " + std::strerror(error));
  }
  while (waitpid(child, &outcome.status, 0) < 0 && errno == EINTR) {
  }
  return outcome;
}

// Drops each knob without which the program still fails.
chaos::Setting smallest(chaos::Setting setting, const std::vector<std::string>& program) {
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
  std::vector<std::string> program;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      program.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
      break;
    }
    bool is_known = argument == "-n" || argument == "--seed" || argument == "--knobs";
    if (!is_known)
      throw UsageError("unknown argument \"" + argument + "\"; the program follows --");
    if (++i == arguments.size()) throw UsageError(argument + " needs a value");
    if (argument == "-n") count = number(argument, arguments[i]);
    if (argument == "--seed") first = number(argument, arguments[i]);
    if (argument == "--knobs") knobs = chaos::parse("0:" + arguments[i], "--knobs").knobs;
  }
  if (program.empty()) throw UsageError("there is no program to run; it follows --");
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
    std::printf("\n%s %s after %llu seeds that passed. To repeat it:\n  HOLDFAST_CHAOS=%s",
                program[0].c_str(), outcome.describe().c_str(),
                static_cast<unsigned long long>(done),
                chaos::to_text(smallest(setting, program)).c_str());
    for (const std::string& word : program) std::printf(" %s", word.c_str());
    std::printf("\n");
    return 1;
  }
  std::printf("%s%llu seeds passed\n", is_terminal ? "\n" : "",
              static_cast<unsigned long long>(count));
  return 0;
}

}  // namespace holdfast::tool
