// HOLDFAST_DUMP_KERNELS: what the compiler made of a kernel, step by step, as files.
#pragma once

#include <string>

namespace llvm {
class Module;
}

namespace holdfast::jit {

// Files `<folder>/<name>.<suffix>`. Does nothing when the folder is empty; what cannot be written
// is left out: a dump never makes a compilation fail.
class Dump {
 public:
  Dump(std::string folder, const std::string& kernel, const std::string& variant);

  explicit operator bool() const { return !stem_.empty(); }
  void text(const char* suffix, const std::string& contents) const;
  void module(const char* suffix, const llvm::Module& module) const;

 private:
  std::string stem_;
};

}  // namespace holdfast::jit
