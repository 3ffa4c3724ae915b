#include "devices/cpu/jit/compiler/messages.h"

#include <cstddef>

#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {

void store_message(llvm::IRBuilderBase& b, llvm::Value* message, llvm::Value* format,
                   llvm::function_ref<llvm::Value*(unsigned)> operand) {
  auto store = [&](size_t offset, llvm::Value* value) {
    b.CreateStore(value, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), message, offset));
  };
  store(offsetof(LogMessage, format), format);
  store(offsetof(LogMessage, what), operand(1));
  store(offsetof(LogMessage, kinds), operand(2));
  for (unsigned i = 0; i < LogMessage::most_values; ++i)
    store(offsetof(LogMessage, values) + i * sizeof(uint64_t), operand(3 + i));
}

}  // namespace holdfast::jit
