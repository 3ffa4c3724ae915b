#include "devices/cpu/jit/fibre.h"

namespace holdfast::jit {

#if defined(__x86_64__)

// What a call must keep lies on the stack that is left, its end in *from. Lanes mostly switch to
// each other at one and the same place: the processor expects to return there, and does.
asm(R"(
  .pushsection .text
  .p2align 4
  .globl holdfast_switch_stack
  .hidden holdfast_switch_stack
  .type holdfast_switch_stack, @function
holdfast_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size holdfast_switch_stack, . - holdfast_switch_stack
  .p2align 4
  .globl holdfast_enter_stack
  .hidden holdfast_enter_stack
  .type holdfast_enter_stack, @function
holdfast_enter_stack:
  movq %r12, %rdi
  callq *%r13
  ud2
  .size holdfast_enter_stack, . - holdfast_enter_stack
  .popsection
)");

extern "C" void holdfast_enter_stack() noexcept;

void* start_of_stack(char* top, void (*entry)(void*), void* argument) noexcept {
  void** end = reinterpret_cast<void**>(top);
  *--end = reinterpret_cast<void*>(&holdfast_enter_stack);
  *--end = nullptr;                         // rbp
  *--end = nullptr;                         // rbx
  *--end = argument;                        // r12
  *--end = reinterpret_cast<void*>(entry);  // r13
  *--end = nullptr;                         // r14
  *--end = nullptr;                         // r15
  return end;
}

#else

extern "C" void holdfast_switch_stack(void**, void*) noexcept { __builtin_trap(); }
void* start_of_stack(char*, void (*)(void*), void*) noexcept { return nullptr; }

#endif

}  // namespace holdfast::jit
