// Messages of kernels: lanes take turns, in their order.
#include <cstddef>

#include "devices/cpu/jit/compiler/messages.h"
#include "devices/cpu/jit/compiler/widen/emitter.h"
#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {

void Emitter::emit_message(llvm::CallInst& call) {
  if (!message_) message_ = guard_memory(sizeof(LogMessage), alignof(LogMessage));
  loops_over_lanes_ = true;
  llvm::SmallVector<Staged, LogMessage::most_values + 3> staged(call.arg_size(),
                                                                {nullptr, nullptr});
  for (unsigned i = 1; i < call.arg_size(); ++i) {
    if (shape(call.getArgOperand(i)).kind != Shape::uniform)
      staged[i] = stage(vector_of(call.getArgOperand(i)), i);
  }
  Value* format = scalar_of(call.getArgOperand(0));
  llvm::SmallVector<Value*, LogMessage::most_values + 3> same(call.arg_size(), nullptr);
  for (unsigned i = 1; i < call.arg_size(); ++i) {
    if (!staged[i].vector) same[i] = scalar_of(call.getArgOperand(i));
  }
  Value* log = b_.CreateLoad(
      b_.getPtrTy(),
      b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), context_pointer_, offsetof(GroupContext, log)));
  for_each_lane([&](Value* lane) {
    store_message(b_, message_, format,
                  [&](unsigned i) { return same[i] ? same[i] : take(staged[i], lane); });
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getPtrTy()}, false);
    b_.CreateCall(type, log, {context_pointer_, message_});
  });
  loops_over_lanes_ = false;
}

}  // namespace holdfast::jit
