#include "devices/cpu/jit/compiler/widen/tile_product.h"

#include <llvm/IR/IRBuilder.h>

#include <array>

#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {
namespace {

using llvm::Value;

constexpr int tile_lanes = simdgroup_width;

// One of the two elements of each word, as float.
Value* element(llvm::IRBuilder<>& b, Value* words, bool is_second, bool is_bfloat) {
  auto* floats = llvm::FixedVectorType::get(b.getFloatTy(), tile_lanes);
  if (is_bfloat)
    return b.CreateBitCast(is_second ? b.CreateAnd(words, 0xffff0000u) : b.CreateShl(words, 16),
                           floats);
  if (is_second) words = b.CreateLShr(words, 16);
  Value* bits = b.CreateTrunc(words, llvm::FixedVectorType::get(b.getInt16Ty(), tile_lanes));
  return b.CreateFPExt(b.CreateBitCast(bits, llvm::FixedVectorType::get(b.getHalfTy(), tile_lanes)),
                       floats);
}

template <class Source>
Value* moved(llvm::IRBuilder<>& b, Value* vector, Source source) {
  llvm::SmallVector<int, tile_lanes> pattern;
  for (int lane = 0; lane < tile_lanes; ++lane) pattern.push_back(source(lane));
  return b.CreateShuffleVector(vector, pattern);
}

}  // namespace

llvm::Function* make_tile_product(llvm::Module& module, const std::string& name, bool is_bfloat) {
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {llvm::PointerType::get(context, 0)}, false);
  auto* made = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
  made->addFnAttr(llvm::Attribute::NoInline);
  made->addFnAttr(llvm::Attribute::NoUnwind);
  made->addFnAttr(llvm::Attribute::WillReturn);
  made->setMemoryEffects(llvm::MemoryEffects::argMemOnly());
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "product", made));
  auto place = [&](unsigned i) {
    return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), made->getArg(0), i * tile_operand_bytes);
  };
  const llvm::Align align(tile_operand_bytes);
  auto load = [&](unsigned i, llvm::Type* element) {
    return b.CreateAlignedLoad(llvm::FixedVectorType::get(element, tile_lanes), place(i), align);
  };
  std::array<std::array<Value*, 2>, first_tile_result> elements;
  for (unsigned i = 0; i < first_tile_result; ++i) {
    Value* words = load(i, b.getInt32Ty());
    for (unsigned e = 0; e < 2; ++e) elements[i][e] = element(b, words, e != 0, is_bfloat);
  }
  std::array<Value*, tile_results> sums;
  for (unsigned i = 0; i < tile_results; ++i) sums[i] = load(first_tile_result + i, b.getFloatTy());
  for (unsigned k = 0; k < 16; ++k) {
    const int among = static_cast<int>(k / 2 % 4);  // the lane of four that holds it
    auto row = [&](int lane) { return (lane & ~3) + among; };
    Value *rows[2], *columns[2];
    for (unsigned i = 0; i < 2; ++i) {
      rows[i] = moved(b, elements[k / 8 * 2 + i][k % 2], row);
      columns[i] = moved(b, elements[4 + k / 8][k % 2], [&](int lane) {
        return (lane % 4 * 2 + static_cast<int>(i)) * 4 + among;
      });
    }
    for (unsigned i = 0; i < tile_results; ++i)
      sums[i] = b.CreateIntrinsic(llvm::Intrinsic::fma, {sums[i]->getType()},
                                  {rows[i / 2], columns[i % 2], sums[i]});
  }
  for (unsigned i = 0; i < tile_results; ++i)
    b.CreateAlignedStore(sums[i], place(first_tile_result + i), align);
  b.CreateRetVoid();
  return made;
}

}  // namespace holdfast::jit
