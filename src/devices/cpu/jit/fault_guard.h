// Turns SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGTRAP that a kernel's own code raises into something
// that can be thrown. Best effort: a kernel that wrote over the process's memory before has done
// so.
#pragma once

#include <setjmp.h>

#include <string>

#include "devices/cpu/jit/image.h"

namespace holdfast::jit {

// Around calls of generated code:
//
//   FaultGuard guard(image);
//   if (sigsetjmp(guard.jump, 0) == 0) { guard.arm(); … call … } else { throw …guard.what() }
//
// When the processor refuses an instruction inside the image, the thread goes on in the second
// branch; frames between, ours and generated, must hold nothing that wants a destructor. The first
// guard of the process puts handlers in place; faults elsewhere go to the handlers that were there
// before. With HOLDFAST_CATCH_FAULTS=0 nothing is installed and nothing caught.
class FaultGuard {
 public:
  explicit FaultGuard(const Image& image);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;

  void arm();
  // "SIGSEGV at address 0x…": what happened.
  std::string what() const;

  sigjmp_buf jump;

 private:
  friend struct FaultHandler;
  const Image& image_;
  FaultGuard* outer_ = nullptr;
  bool is_armed_ = false;
  int signal_ = 0;
  const void* address_ = nullptr;
};

// Puts the handlers in place, in front of those that are there: also where the program has replaced
// ours meanwhile.
void install_fault_handlers();

}  // namespace holdfast::jit
