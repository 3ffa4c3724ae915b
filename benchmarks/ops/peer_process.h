// A Python process that times rows of a suite in other frameworks (ops/peers.py says how they
// talk).
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::bench {

// Seconds of single calls, ours and by framework.
struct Rounds {
  std::vector<double> own;
  std::map<std::string, std::vector<double>> others;
};

class PeerProcess {
 public:
  // Starts the script, of this source tree's `benchmarks`, with python3; no peers when that fails.
  explicit PeerProcess(const char* script);
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  // The installed frameworks, "mlx", "jax", "numpy", with their versions.
  const std::map<std::string, std::string>& versions() const { return versions_; }

  // Makes the inputs and runs each expression once. Returns why a framework cannot run its own.
  std::map<std::string, std::string> prepare(const std::string& inputs,
                                             const std::map<std::string, std::string>& expressions);
  // The seconds of each call, after about `seconds` in each framework.
  std::map<std::string, std::vector<double>> run(double seconds);
  // Times `work` and the frameworks in turn, after one warm-up call: a busy moment of the machine
  // hits one round of one framework.
  Rounds run_beside(double seconds, const std::function<void()>& work);

 private:
  // One line there, one line back; empty when the process has ended.
  std::string ask(const std::string& line);

  pid_t process_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  std::map<std::string, std::string> versions_;
};

}  // namespace holdfast::bench
