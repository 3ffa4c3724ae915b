#include "devices/cpu/jit/compiler/widen/private_memory.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>

#include <optional>

namespace holdfast::jit {
namespace {

using llvm::dyn_cast;

// The size of all accesses through `pointer`, if each offset is a multiple of it.
bool understand(const llvm::Value& pointer, const llvm::DataLayout& layout, uint64_t& size) {
  for (const llvm::User* user : pointer.users()) {
    if (auto* gep = dyn_cast<llvm::GetElementPtrInst>(user)) {
      if (gep->getPointerOperand() != &pointer) return false;
      if (!understand(*gep, layout, size)) return false;
      continue;
    }
    const llvm::Type* type = nullptr;
    if (auto* load = dyn_cast<llvm::LoadInst>(user)) {
      if (load->isAtomic()) return false;
      type = load->getType();
    } else if (auto* store = dyn_cast<llvm::StoreInst>(user)) {
      if (store->isAtomic() || store->getValueOperand() == &pointer) return false;
      type = store->getValueOperand()->getType();
    } else {
      return false;
    }
    uint64_t bytes = layout.getTypeStoreSize(const_cast<llvm::Type*>(type));
    if (bytes != layout.getTypeAllocSize(const_cast<llvm::Type*>(type)) || (bytes & (bytes - 1)) ||
        bytes > 8)
      return false;
    if (size && size != bytes) return false;
    size = bytes;
  }
  return true;
}

bool offsets_are_multiples(const llvm::Value& pointer, const llvm::DataLayout& layout,
                           uint64_t size) {
  for (const llvm::User* user : pointer.users()) {
    auto* gep = dyn_cast<llvm::GetElementPtrInst>(user);
    if (!gep) continue;
    unsigned width = layout.getIndexTypeSizeInBits(gep->getType());
    llvm::MapVector<llvm::Value*, llvm::APInt> variable;
    llvm::APInt constant(width, 0);
    if (!gep->collectOffset(layout, width, variable, constant)) return false;
    if (constant.srem(size) != 0) return false;
    for (auto& [index, scale] : variable) {
      if (scale.srem(size) != 0) return false;
    }
    if (!offsets_are_multiples(*gep, layout, size)) return false;
  }
  return true;
}

}  // namespace

PrivateMemory::PrivateMemory(llvm::Function& function) {
  const llvm::DataLayout& layout = function.getParent()->getDataLayout();
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    auto* place = dyn_cast<llvm::AllocaInst>(&instruction);
    if (!place) continue;
    Block block;
    std::optional<llvm::TypeSize> bytes = place->getAllocationSize(layout);
    uint64_t size = 0;
    if (understand(*place, layout, size) && size && offsets_are_multiples(*place, layout, size))
      block.element = size;
    block.alignment = std::max<uint64_t>(place->getAlign().value(), 4);
    block.lane_bytes = llvm::alignTo(bytes ? bytes->getFixedValue() : 0,
                                     block.is_interleaved() ? block.element : block.alignment);
    blocks[place] = block;
  }
}

const PrivateMemory::Block* PrivateMemory::interleaved(const llvm::Value* pointer) const {
  while (auto* gep = dyn_cast<llvm::GetElementPtrInst>(pointer)) pointer = gep->getPointerOperand();
  auto* place = dyn_cast<llvm::AllocaInst>(pointer);
  if (!place) return nullptr;
  auto found = blocks.find(place);
  return found != blocks.end() && found->second.is_interleaved() ? &found->second : nullptr;
}

}  // namespace holdfast::jit
