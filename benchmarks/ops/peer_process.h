// The Python process that times the rows of `holdfast bench ops` in other frameworks (peers.py).
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::bench {

class PeerProcess {
 public:
  // Starts peers.py of this source tree with python3; no peers when that fails.
  PeerProcess();
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

 private:
  // One line there, one line back; empty when the process has ended.
  std::string ask(const std::string& line);

  pid_t process_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  std::map<std::string, std::string> versions_;
};

}  // namespace holdfast::bench
