// Probes: measurements that need a process of their own, because a process does something for the
// first time only once.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace holdfast::bench {

// `holdfast bench --probe WHAT NONCE`: prints `name value` lines.
int run_probe(const std::vector<std::string>& arguments);

// Runs such a process, with a disk cache in `folder`, and returns what it printed. The nonce is the
// same for all probes with one folder.
std::map<std::string, double> probe(const std::string& what, const std::string& folder);

// The probes. Kernels hold the nonce in their text, so that nobody else has compiled them.
void probe_start(const std::string& nonce);
void probe_kernels(const std::string& nonce);
void probe_compile(const std::string& nonce);

// A folder that is removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace holdfast::bench
