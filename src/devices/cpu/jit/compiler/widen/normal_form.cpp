#include "devices/cpu/jit/compiler/widen/normal_form.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DepthFirstIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/Scalarizer.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/FixIrreducible.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LowerSwitch.h>

#include <map>

#include "devices/cpu/jit/compiler/codegen.h"
#include "devices/cpu/jit/compiler/widen/if_convert.h"
#include "devices/cpu/jit/compiler/widen/intrinsics.h"

namespace holdfast::jit {
namespace {

using llvm::IRBuilder;
using llvm::Value;

std::string text_of(const llvm::Value& value) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  value.print(stream);
  return text.substr(text.find_first_not_of(' '));
}

void lower_globals_to_instructions(llvm::Function& function) {
  llvm::SmallVector<llvm::Constant*, 16> globals;
  for (llvm::GlobalVariable& global : function.getParent()->globals()) globals.push_back(&global);
  llvm::convertUsersOfConstantsToInstructions(globals, &function);
}

// Marks what nothing needs any more: hints and markers.
bool is_marker(const llvm::Instruction& instruction) {
  auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (!call) return false;
  switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::lifetime_start:
    case llvm::Intrinsic::lifetime_end:
    case llvm::Intrinsic::invariant_start:
    case llvm::Intrinsic::invariant_end:
    case llvm::Intrinsic::assume:
    case llvm::Intrinsic::experimental_noalias_scope_decl:
    case llvm::Intrinsic::sideeffect:
    case llvm::Intrinsic::donothing:
    case llvm::Intrinsic::dbg_declare:
    case llvm::Intrinsic::dbg_value:
    case llvm::Intrinsic::dbg_label:
      return true;
    default:
      return false;
  }
}

// {value, overflowed} intrinsics as arithmetic on a type twice as wide.
void expand_with_overflow(llvm::WithOverflowInst& call) {
  IRBuilder<> b(&call);
  llvm::Type* type = call.getLHS()->getType();
  llvm::Type* wide = llvm::IntegerType::get(type->getContext(), 2 * type->getIntegerBitWidth());
  auto extend = [&](Value* v) {
    return call.isSigned() ? b.CreateSExt(v, wide) : b.CreateZExt(v, wide);
  };
  Value* exact = b.CreateBinOp(call.getBinaryOp(), extend(call.getLHS()), extend(call.getRHS()));
  Value* result = b.CreateTrunc(exact, type);
  Value* overflow = b.CreateICmpNE(extend(result), exact);
  for (llvm::User* user : llvm::make_early_inc_range(call.users())) {
    auto* extract = llvm::dyn_cast<llvm::ExtractValueInst>(user);
    if (!extract) continue;
    extract->replaceAllUsesWith(extract->getIndices()[0] == 0 ? result : overflow);
    extract->eraseFromParent();
  }
  if (call.use_empty()) call.eraseFromParent();
}

// Bit casts between vectors and other types, element by element: the scalarizer then sees only
// inserts and extracts.
void expand_vector_bit_cast(llvm::BitCastInst& cast) {
  IRBuilder<> b(&cast);
  Value* source = cast.getOperand(0);
  auto* from = llvm::dyn_cast<llvm::FixedVectorType>(source->getType());
  auto* to = llvm::dyn_cast<llvm::FixedVectorType>(cast.getType());
  if (!from && !to) return;
  unsigned total = source->getType()->getPrimitiveSizeInBits();
  unsigned from_bits = from ? total / from->getNumElements() : total;
  unsigned to_bits = to ? total / to->getNumElements() : total;
  llvm::Type* from_int = b.getIntNTy(from_bits);
  llvm::Type* to_int = b.getIntNTy(to_bits);
  // Pieces of the smaller size, then glued.
  unsigned piece = std::min(from_bits, to_bits);
  if (from_bits % piece != 0 || to_bits % piece != 0) return;
  llvm::SmallVector<Value*, 16> pieces;
  for (unsigned i = 0; i < total / from_bits; ++i) {
    Value* element = from ? b.CreateExtractElement(source, uint64_t{i}) : source;
    element = b.CreateBitCast(element, from_int);
    for (unsigned k = 0; k < from_bits / piece; ++k)
      pieces.push_back(b.CreateTrunc(b.CreateLShr(element, k * piece), b.getIntNTy(piece)));
  }
  Value* result = to ? llvm::PoisonValue::get(to) : nullptr;
  unsigned glue = to_bits / piece;
  for (unsigned i = 0; i < total / to_bits; ++i) {
    Value* element = llvm::ConstantInt::get(to_int, 0);
    for (unsigned k = 0; k < glue; ++k) {
      Value* part = b.CreateZExt(pieces[i * glue + k], to_int);
      element = glue == 1 ? part : b.CreateOr(element, b.CreateShl(part, k * piece));
    }
    element = b.CreateBitCast(element, to ? to->getElementType() : cast.getType());
    result = to ? b.CreateInsertElement(result, element, uint64_t{i}) : element;
  }
  cast.replaceAllUsesWith(result);
  cast.eraseFromParent();
}

// `shl nsw x, 3` as `mul nsw x, 8`: define_arithmetic drops what is known of shifts.
void shift_to_product(llvm::BinaryOperator& shift) {
  auto* amount = llvm::dyn_cast<llvm::ConstantInt>(shift.getOperand(1));
  unsigned width = shift.getType()->getScalarSizeInBits();
  if (!amount || !amount->getValue().ult(width - 1)) return;
  if (!shift.hasNoSignedWrap() && !shift.hasNoUnsignedWrap()) return;
  IRBuilder<> b(&shift);
  Value* factor =
      llvm::ConstantInt::get(shift.getType(), llvm::APInt(width, 1).shl(amount->getZExtValue()));
  shift.replaceAllUsesWith(b.CreateMul(shift.getOperand(0), factor, "", shift.hasNoUnsignedWrap(),
                                       shift.hasNoSignedWrap()));
  shift.eraseFromParent();
}

// Indices as wide as pointers, so that their extension is an instruction of its own.
void widen_indices(llvm::GetElementPtrInst& gep) {
  IRBuilder<> b(&gep);
  for (llvm::Use& index : gep.indices()) {
    if (llvm::isa<llvm::Constant>(index) || index->getType()->isIntegerTy(64)) continue;
    index.set(b.CreateSExtOrTrunc(index, b.getInt64Ty()));
  }
}

// `value` as another value plus a constant, where that holds for all 64 bits; else the value
// itself.
struct Offset {
  Value* value;
  int64_t constant = 0;
};
Offset split_offset(IRBuilder<>& b, Value* value) {
  auto* cast = llvm::dyn_cast<llvm::CastInst>(value);
  bool is_zext = llvm::isa<llvm::ZExtInst>(value), is_sext = llvm::isa<llvm::SExtInst>(value);
  if (cast && !is_zext && !is_sext) return {value};
  auto* sum = llvm::dyn_cast<llvm::BinaryOperator>(cast ? cast->getOperand(0) : value);
  auto* constant = sum ? llvm::dyn_cast<llvm::ConstantInt>(sum->getOperand(1)) : nullptr;
  if (!constant || constant->getBitWidth() > 64) return {value};
  bool is_or = sum->getOpcode() == llvm::Instruction::Or &&
               llvm::cast<llvm::PossiblyDisjointInst>(sum)->isDisjoint();
  if (!is_or && sum->getOpcode() != llvm::Instruction::Add) return {value};
  Value* rest = sum->getOperand(0);
  if (!cast) return {rest, constant->getSExtValue()};
  if (is_zext && (is_or || sum->hasNoUnsignedWrap()))
    return {b.CreateZExt(rest, value->getType()), static_cast<int64_t>(constant->getZExtValue())};
  // An extension of what is not negative is the other one too.
  if ((is_sext || cast->hasNonNeg()) && !is_or && sum->hasNoSignedWrap())
    return {b.CreateSExt(rest, value->getType()), constant->getSExtValue()};
  return {value};
}

// `p[i + 3]` as three elements beyond `p[i]`: neighbours share the rest of their addresses.
void split_address(llvm::GetElementPtrInst& gep) {
  if (gep.getNumIndices() != 1 || !gep.getOperand(1)->getType()->isIntegerTy(64)) return;
  IRBuilder<> b(&gep);
  Offset index = split_offset(b, gep.getOperand(1));
  if (index.constant == 0) return;
  llvm::Type* type = gep.getSourceElementType();
  Value* start = b.CreateGEP(type, gep.getPointerOperand(), index.value);
  gep.replaceAllUsesWith(
      b.CreateGEP(type, start, b.getInt64(static_cast<uint64_t>(index.constant))));
  gep.eraseFromParent();
}

void simplify_instructions(llvm::Function& function) {
  // First of all, since it erases instructions that follow.
  llvm::SmallVector<llvm::WithOverflowInst*, 4> overflows;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    if (auto* overflow = llvm::dyn_cast<llvm::WithOverflowInst>(&instruction))
      overflows.push_back(overflow);
  }
  for (llvm::WithOverflowInst* overflow : overflows) expand_with_overflow(*overflow);
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    if (is_marker(instruction)) {
      instruction.eraseFromParent();
    } else if (auto* cast = llvm::dyn_cast<llvm::BitCastInst>(&instruction)) {
      expand_vector_bit_cast(*cast);
    } else if (instruction.getOpcode() == llvm::Instruction::Shl &&
               !instruction.getType()->isVectorTy()) {
      shift_to_product(llvm::cast<llvm::BinaryOperator>(instruction));
    } else if (auto* gep = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction)) {
      widen_indices(*gep);
      split_address(*gep);
    }
  }
}

// Small constant copies and fills as loads and stores of the largest type that alignment and length
// allow, so that private arrays keep one element size; others as loops.
bool expand_small(llvm::MemIntrinsic& intrinsic, llvm::Type* element) {
  auto* length = llvm::dyn_cast<llvm::ConstantInt>(intrinsic.getLength());
  if (!length || llvm::isa<llvm::MemMoveInst>(intrinsic)) return false;
  uint64_t bytes = length->getZExtValue();
  uint64_t size = element->getPrimitiveSizeInBits() / 8;
  if (bytes % size != 0 || bytes / size > 128) return false;
  IRBuilder<> b(&intrinsic);
  auto at = [&](Value* base, uint64_t offset) {
    return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, offset);
  };
  llvm::Align to_align = intrinsic.getDestAlign().valueOrOne();
  if (auto* fill = llvm::dyn_cast<llvm::MemSetInst>(&intrinsic)) {
    Value* value = b.CreateZExt(fill->getValue(), element);
    for (uint64_t filled = 1; filled < size; filled *= 2)
      value = b.CreateOr(value, b.CreateShl(value, filled * 8));
    for (uint64_t o = 0; o < bytes; o += size)
      b.CreateAlignedStore(value, at(intrinsic.getRawDest(), o),
                           llvm::commonAlignment(to_align, o));
  } else {
    auto& copy = llvm::cast<llvm::MemTransferInst>(intrinsic);
    llvm::Align from_align = copy.getSourceAlign().valueOrOne();
    llvm::SmallVector<Value*, 64> values;
    for (uint64_t o = 0; o < bytes; o += size)
      values.push_back(b.CreateAlignedLoad(element, at(copy.getRawSource(), o),
                                           llvm::commonAlignment(from_align, o)));
    for (uint64_t o = 0; o < bytes; o += size)
      b.CreateAlignedStore(values[o / size], at(intrinsic.getRawDest(), o),
                           llvm::commonAlignment(to_align, o));
  }
  intrinsic.eraseFromParent();
  return true;
}

void expand_memory(llvm::Function& function) {
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    auto* intrinsic = llvm::dyn_cast<llvm::MemIntrinsic>(&instruction);
    if (!intrinsic) continue;
    uint64_t align = intrinsic->getDestAlign().valueOrOne().value();
    if (auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(intrinsic))
      align = std::min(align, copy->getSourceAlign().valueOrOne().value());
    llvm::LLVMContext& context = function.getContext();
    if (align >= 4 && expand_small(*intrinsic, llvm::Type::getInt32Ty(context))) continue;
    if (align >= 2 && expand_small(*intrinsic, llvm::Type::getInt16Ty(context))) continue;
    if (expand_small(*intrinsic, llvm::Type::getInt8Ty(context))) continue;
  }
  expand_memory_intrinsics(function);
}

bool has_unreachable_end(llvm::Function& function) {
  return llvm::any_of(function, [](llvm::BasicBlock& block) {
    return llvm::isa<llvm::UnreachableInst>(block.getTerminator());
  });
}

void end_at_returns(llvm::Function& function) {
  llvm::SmallVector<llvm::Instruction*, 8> ends;
  for (llvm::BasicBlock& block : function) {
    llvm::Instruction* end = block.getTerminator();
    if (llvm::isa<llvm::UnreachableInst, llvm::ReturnInst>(end)) ends.push_back(end);
  }
  auto* exit = llvm::BasicBlock::Create(function.getContext(), "exit", &function);
  llvm::ReturnInst::Create(function.getContext(), exit);
  for (llvm::Instruction* end : ends) {
    IRBuilder<>(end).CreateBr(exit);
    end->eraseFromParent();
  }
}

// Some edge back to a block that is being visited, among the blocks from which nothing leads to the
// return; none when there are no such blocks.
std::optional<std::pair<llvm::BasicBlock*, llvm::BasicBlock*>> endless_edge(
    llvm::Function& function, llvm::BasicBlock* exit) {
  llvm::SmallPtrSet<llvm::BasicBlock*, 32> ends(llvm::idf_begin(exit), llvm::idf_end(exit));
  for (auto at = llvm::df_begin(&function), end = llvm::df_end(&function); at != end; ++at) {
    if (ends.contains(*at)) continue;
    for (llvm::BasicBlock* next : llvm::successors(*at)) {
      for (unsigned i = 0; i < at.getPathLength(); ++i) {
        if (at.getPath(i) == next) return {{*at, next}};
      }
    }
  }
  return std::nullopt;
}

// A loop that nothing leaves is left when the dispatch is cancelled, so that every block leads to
// the return: lanes that do not enter it have somewhere to go.
void leave_endless_loops(llvm::Function& function) {
  llvm::BasicBlock* exit = nullptr;
  for (llvm::BasicBlock& block : function) {
    if (llvm::isa<llvm::ReturnInst>(block.getTerminator())) exit = &block;
  }
  llvm::FunctionCallee poll = function.getParent()->getOrInsertFunction(
      "__hf_poll", llvm::Type::getInt32Ty(function.getContext()));
  while (auto edge = endless_edge(function, exit)) {
    auto [from, to] = *edge;
    auto* leave = llvm::BasicBlock::Create(function.getContext(), "leave", &function);
    from->getTerminator()->replaceSuccessorWith(to, leave);
    to->replacePhiUsesWith(from, leave);
    for (llvm::PHINode& phi : to->phis()) {
      // Several edges of a switch have become one.
      while (llvm::count(phi.blocks(), leave) > 1) phi.removeIncomingValue(leave, false);
    }
    IRBuilder<> b(leave);
    b.CreateCondBr(b.CreateICmpNE(b.CreateCall(poll), b.getInt32(0)), exit, to);
  }
}

// One call for each position and axis, in the entry block; a computed axis chooses between them.
void hoist_positions(llvm::Function& function) {
  std::map<std::pair<msl::Intrinsic, uint64_t>, llvm::Instruction*> known;
  llvm::BasicBlock& entry = function.getEntryBlock();
  auto position = [&](llvm::CallInst& call, msl::Intrinsic intrinsic, uint64_t axis) {
    llvm::Instruction*& found = known[{intrinsic, axis}];
    if (!found) {
      llvm::SmallVector<Value*, 1> operands;
      if (call.arg_size() == 1)
        operands.push_back(llvm::ConstantInt::get(call.getArgOperand(0)->getType(), axis));
      found = IRBuilder<>(&entry, entry.begin()).CreateCall(call.getCalledFunction(), operands);
    }
    return found;
  };
  llvm::SmallVector<llvm::CallInst*, 32> calls;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    std::optional<msl::Intrinsic> intrinsic = kernel_intrinsic(instruction);
    if (intrinsic && behaviour_of(*intrinsic) <= Behaviour::lane &&
        *intrinsic != msl::Intrinsic::poll)
      calls.push_back(llvm::cast<llvm::CallInst>(&instruction));
  }
  for (llvm::CallInst* call : calls) {
    msl::Intrinsic intrinsic = *kernel_intrinsic(*call);
    Value* result = nullptr;
    if (call->arg_size() == 0) {
      result = position(*call, intrinsic, 0);
    } else if (auto* axis = llvm::dyn_cast<llvm::ConstantInt>(call->getArgOperand(0))) {
      result = position(*call, intrinsic, std::min<uint64_t>(axis->getZExtValue(), 2));
    } else {
      IRBuilder<> b(call);
      Value* a = call->getArgOperand(0);
      Value* x = position(*call, intrinsic, 0);
      Value* y = position(*call, intrinsic, 1);
      Value* z = position(*call, intrinsic, 2);
      Value* is_x = b.CreateICmpEQ(a, llvm::ConstantInt::get(a->getType(), 0));
      Value* is_y = b.CreateICmpEQ(a, llvm::ConstantInt::get(a->getType(), 1));
      result = b.CreateSelect(is_x, x, b.CreateSelect(is_y, y, z));
    }
    call->replaceAllUsesWith(result);
    call->eraseFromParent();
  }
}

void run_passes(llvm::Function& function) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::FunctionPassManager passes;
  llvm::ScalarizerPassOptions options;
  options.ScalarizeLoadStore = true;
  options.ScalarizeVariableInsertExtract = true;
  options.ScalarizeMinBits = 0;
  passes.addPass(llvm::ScalarizerPass(options));
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::ADCEPass());
  passes.addPass(llvm::LowerSwitchPass());
  passes.addPass(llvm::FixIrreduciblePass());
  passes.addPass(llvm::LoopSimplifyPass());
  passes.addPass(llvm::LCSSAPass());
  passes.run(function, functions);
}

// extractvalue of a cmpxchg next to it, so that no aggregate lives on.
void move_extracts(llvm::Function& function) {
  llvm::SmallVector<llvm::Instruction*, 4> exchanges;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    if (llvm::isa<llvm::AtomicCmpXchgInst>(instruction)) exchanges.push_back(&instruction);
  }
  for (llvm::Instruction* exchange : exchanges) {
    llvm::Instruction& instruction = *exchange;
    IRBuilder<> b(instruction.getNextNode());
    Value* parts[2] = {nullptr, nullptr};
    for (llvm::User* user : llvm::make_early_inc_range(instruction.users())) {
      auto* extract = llvm::dyn_cast<llvm::ExtractValueInst>(user);
      if (!extract) continue;
      Value*& part = parts[extract->getIndices()[0]];
      if (!part) part = b.CreateExtractValue(&instruction, extract->getIndices());
      if (part == extract) continue;
      extract->replaceAllUsesWith(part);
      extract->eraseFromParent();
    }
  }
}

std::string refusal(llvm::Function& function) {
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    llvm::Type* type = instruction.getType();
    if (llvm::isa<llvm::AtomicCmpXchgInst>(instruction)) {
      for (llvm::User* user : instruction.users()) {
        if (!llvm::isa<llvm::ExtractValueInst>(user))
          return "a compare-exchange result as a whole: " + text_of(instruction);
      }
      continue;
    }
    if (llvm::isa<llvm::AllocaInst>(instruction)) {
      if (!llvm::cast<llvm::AllocaInst>(instruction).isStaticAlloca())
        return "private memory of unknown size: " + text_of(instruction);
      continue;
    }
    if (auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction)) {
      if (!call->getCalledFunction()) return "a call through a pointer: " + text_of(instruction);
      if (call->getCalledFunction()->isDeclaration() && !call->getCalledFunction()->isIntrinsic() &&
          !kernel_intrinsic(*call))
        return "a call to " + call->getCalledFunction()->getName().str();
    }
    if (type->isVectorTy() || type->isAggregateType())
      return "a value that is not a scalar: " + text_of(instruction);
    for (Value* operand : instruction.operands()) {
      if (operand->getType()->isVectorTy() || (operand->getType()->isAggregateType() &&
                                               !llvm::isa<llvm::ExtractValueInst>(instruction)))
        return "an operand that is not a scalar: " + text_of(instruction);
    }
    if (instruction.isTerminator() && !llvm::isa<llvm::BranchInst, llvm::ReturnInst>(instruction))
      return "a jump that is no branch: " + text_of(instruction);
    if (llvm::isa<llvm::VAArgInst>(instruction)) return "variable arguments";
  }
  return {};
}

}  // namespace

std::string make_normal_form(llvm::Function& function) {
  lower_globals_to_instructions(function);
  end_at_returns(function);
  expand_memory(function);
  simplify_instructions(function);
  hoist_positions(function);
  move_extracts(function);
  for (llvm::BasicBlock& block : function) llvm::ConstantFoldTerminator(&block);
  leave_endless_loops(function);
  llvm::removeUnreachableBlocks(function);
  if_convert(function);
  run_passes(function);
  // They may have found a place that is never reached, and say so.
  if (has_unreachable_end(function)) {
    end_at_returns(function);
    run_passes(function);
  }
  return refusal(function);
}

}  // namespace holdfast::jit
