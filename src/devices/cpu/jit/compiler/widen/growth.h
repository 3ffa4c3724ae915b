// How large a kernel may become by widening. Some kernels grow without measure: each block whose
// lanes part can make every other block one that lanes wait for, and each of them merges the values
// that live there. Then the compiler would take minutes and gigabytes; the reference lowering is as
// large as the kernel. The bound counts instructions, so that it decides alike on every machine.
#pragma once

#include <cstdint>
#include <string>

namespace llvm {
class Function;
}

namespace holdfast::jit {

// Thrown inside the widening compiler only: why a kernel is not widened.
struct Declined {
  std::string reason;
};

class Growth {
 public:
  explicit Growth(const llvm::Function& scalar);

  // Throws Declined when `size` is too large.
  void check(uint64_t size) const;
  // What it becomes at least. Before anything is computed for each pair of blocks.
  void check_least(const llvm::Function& scalar) const;
  // What code generation takes time for: instructions, and the values that phis choose from.
  static uint64_t size_of(const llvm::Function& function);

 private:
  uint64_t scalar_;
};

}  // namespace holdfast::jit
