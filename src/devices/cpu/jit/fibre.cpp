#include "devices/cpu/jit/fibre.h"

namespace holdfast::jit {

#if defined(__x86_64__)

// As they are written below. A lane finds the whole from its own `values`.
static_assert(offsetof(LaneTurns, values.operands) == 0);
static_assert(sizeof(LaneValues::operands[0]) == 256 && alignof(LaneTurns) == 256);
static_assert(offsetof(LaneTurns, values.results) == 2816);
static_assert(offsetof(LaneTurns, ready) == 3072);
static_assert(offsetof(LaneTurns, waits_for) == 3080);
static_assert(offsetof(LaneTurns, stacks) == 3336);

// A stack that is left ends with the frame pointer and the address to go on at. Lanes go on by a
// jump, never by `ret`: that would be expected to lead where the lane that has just called waits,
// which is one place further than where the next lane does.
asm(R"(
  .pushsection .text
  .p2align 4
  .globl holdfast_wait
  .hidden holdfast_wait
  .type holdfast_wait, @function
holdfast_wait:
  pushq %rbp
  movq %rsp, 3336(%r12)
  movq %r13, 3080(%r12)
  andq $-256, %r12
.Lnext_turn:
  movq 3072(%r12), %rax
  tzcntq %rax, %rcx
  leaq -1(%rax), %rdx
  andq %rax, %rdx
  movq %rdx, 3072(%r12)
  movq 3336(%r12,%rcx,8), %rsp
  movq 2816(%r12,%rcx,8), %rax
  popq %rbp
  popq %rcx
  jmpq *%rcx
  .size holdfast_wait, . - holdfast_wait

  .p2align 4
  .globl holdfast_take_turns
  .hidden holdfast_take_turns
  .type holdfast_take_turns, @function
holdfast_take_turns:
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  leaq .Lturns_are_over(%rip), %rax
  pushq %rax
  pushq %rbp
  movq %rdi, %r12
  movq %rsp, 3592(%r12)
  jmp .Lnext_turn
.Lturns_are_over:
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rcx
  jmpq *%rcx
  .size holdfast_take_turns, . - holdfast_take_turns

  .p2align 4
  .globl holdfast_enter_stack
  .hidden holdfast_enter_stack
  .type holdfast_enter_stack, @function
holdfast_enter_stack:
  popq %rdi
  popq %rax
  callq *%rax
  movq %rax, %r12
  jmp .Lnext_turn
  .size holdfast_enter_stack, . - holdfast_enter_stack
  .popsection
)");

extern "C" void holdfast_enter_stack() noexcept;

void* start_of_stack(char* top, LaneTurns* (*entry)(void*), void* argument) noexcept {
  void** end = reinterpret_cast<void**>(top);
  *--end = reinterpret_cast<void*>(entry);
  *--end = argument;
  *--end = reinterpret_cast<void*>(&holdfast_enter_stack);
  *--end = nullptr;  // the frame pointer
  return end;
}

#else

extern "C" void holdfast_take_turns(LaneTurns*) noexcept { __builtin_trap(); }
extern "C" void holdfast_wait() noexcept { __builtin_trap(); }
void* start_of_stack(char*, LaneTurns* (*)(void*), void*) noexcept { return nullptr; }

#endif

}  // namespace holdfast::jit
