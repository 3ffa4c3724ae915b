// What a guarded kernel says about the accesses of its source, as constants of its object.
#pragma once

#include <llvm/IR/Constants.h>

#include <map>
#include <string>

#include "devices/cpu/jit/kernel_abi.h"
#include "msl/frontend/unproved_accesses.h"
#include "msl/kernel_source.h"

namespace holdfast::jit {

// What guards need to know of the kernel that they are put into. `source` says how the user's parts
// are called; may be null.
struct GuardedKernel {
  const msl::KernelInterface& interface;
  const msl::KernelSource* source;
};

class OutsideSites {
 public:
  OutsideSites(llvm::Module& module, const GuardedKernel& kernel)
      : module_(module), kernel_(kernel) {}

  // A pointer to the OutsideSite of an access to one of `roots`.
  llvm::Constant* site_of(const llvm::Instruction& instruction, llvm::ArrayRef<llvm::Value*> roots,
                          bool writes);

 private:
  llvm::Module& module_;
  const GuardedKernel kernel_;
  std::map<std::string, llvm::Constant*> known_;  // by their bytes
};

}  // namespace holdfast::jit
