// The same kernels on PoCL (Debian's pocl-opencl-icd), where it is installed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "benchmarks/kernels/case.h"

namespace holdfast::bench {

// One kernel of a case, compiled, with its inputs copied.
class OpenClKernel {
 public:
  virtual ~OpenClKernel() = default;
  // Runs it once and waits. Outputs of an atomic case are cleared first.
  virtual void run() = 0;
  virtual std::vector<array> outputs() = 0;
};

class OpenCl {
 public:
  // Null when there is no OpenCL device on the processor; then `why` says so.
  static std::unique_ptr<OpenCl> find(std::string& why);
  virtual ~OpenCl() = default;
  virtual const std::string& name() const = 0;
  // Throws std::runtime_error with the compiler's log.
  virtual std::unique_ptr<OpenClKernel> prepare(const KernelCase& kernel) = 0;
};

}  // namespace holdfast::bench
