#include "benchmarks/ops/peer_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "benchmarks/bench.h"

extern char** environ;

namespace holdfast::bench {

PeerProcess::PeerProcess(const char* name) {
  auto script = std::filesystem::path(HOLDFAST_BENCHMARKS) / name;
  if (!std::filesystem::exists(script)) return;
  int requests[2], answers[2];
  if (pipe2(requests, O_CLOEXEC) != 0) return;
  if (pipe2(answers, O_CLOEXEC) != 0) {
    close(requests[0]);
    close(requests[1]);
    return;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, requests[0], 0);
  posix_spawn_file_actions_adddup2(&actions, answers[1], 1);
  std::string path = script.string(), python = "python3";
  char* arguments[] = {python.data(), path.data(), nullptr};
  if (posix_spawnp(&process_, "python3", &actions, nullptr, arguments, environ) != 0) process_ = -1;
  posix_spawn_file_actions_destroy(&actions);
  close(requests[0]);
  close(answers[1]);
  to_ = fdopen(requests[1], "w");
  from_ = fdopen(answers[0], "r");
  // A peer that dies is an empty answer, not a signal.
  std::signal(SIGPIPE, SIG_IGN);
  auto json = nlohmann::json::parse(ask(R"({"versions": true})"), nullptr, false);
  if (json.is_object()) versions_ = json.get<std::map<std::string, std::string>>();
}

PeerProcess::~PeerProcess() {
  if (to_) std::fclose(to_);
  if (from_) std::fclose(from_);
  if (process_ > 0) waitpid(process_, nullptr, 0);
}

std::string PeerProcess::ask(const std::string& line) {
  if (process_ <= 0 || !to_ || !from_) return {};
  std::fprintf(to_, "%s\n", line.c_str());
  std::fflush(to_);
  std::string text;
  for (int c = std::fgetc(from_); c != EOF && c != '\n'; c = std::fgetc(from_)) {
    text += static_cast<char>(c);
  }
  return text;
}

std::map<std::string, std::string> PeerProcess::prepare(
    const std::string& inputs, const std::map<std::string, std::string>& expressions) {
  nlohmann::json request = expressions;
  request["inputs"] = inputs;
  auto answer = nlohmann::json::parse(ask(request.dump()), nullptr, false);
  std::map<std::string, std::string> reasons;
  if (!answer.is_object()) return {{"all", "the process has ended"}};
  for (auto& [name, reason] : answer.items()) {
    if (reason.is_string()) reasons[name] = reason.get<std::string>();
  }
  return reasons;
}

std::map<std::string, std::vector<double>> PeerProcess::run(double seconds) {
  nlohmann::json request{{"seconds", seconds}};
  auto answer = nlohmann::json::parse(ask(request.dump()), nullptr, false);
  if (!answer.is_object()) return {};
  return answer.get<std::map<std::string, std::vector<double>>>();
}

Rounds PeerProcess::run_beside(double seconds, const std::function<void()>& work) {
  work();
  Rounds rounds;
  for (int round = 0; round < 3; ++round) {
    auto end = Clock::now() + std::chrono::duration<double>(seconds);
    do rounds.own.push_back(seconds_of(work));
    while (Clock::now() < end);
    for (auto& [name, times] : run(seconds)) {
      rounds.others[name].insert(rounds.others[name].end(), times.begin(), times.end());
    }
  }
  return rounds;
}

}  // namespace holdfast::bench
