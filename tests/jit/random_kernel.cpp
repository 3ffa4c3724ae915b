#include "jit/random_kernel.h"

#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/NoFolder.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <random>
#include <stdexcept>
#include <vector>

#include "devices/cpu/jit/compiler/reference.h"
#include "jit/kernel_testing.h"

namespace holdfast::jit::testing {
namespace {

using llvm::BasicBlock;
using llvm::Value;

class Generator {
 public:
  Generator(llvm::LLVMContext& context, uint64_t seed)
      : context_(context), random_(seed), b_(context), has_sums_(seed % 2 == 0) {}

  std::unique_ptr<llvm::Module> run() {
    llvm::SMDiagnostic problem;
    module_ = llvm::parseAssemblyString(
        "@shared = internal addrspace(3) global [1024 x i32] undef\n"
        "@table = internal addrspace(5) constant [8 x i32] [i32 3, i32 1, i32 4, i32 1, i32 5, i32 "
        "9, i32 2, i32 6]\n" +
            intrinsic_declarations(),
        problem, context_);
    if (!module_) throw std::logic_error("declarations");
    auto* device = llvm::PointerType::get(context_, 1);
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), {device, device, device, device}, false);
    function_ =
        llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "kernel", *module_);
    b_.SetInsertPoint(BasicBlock::Create(context_, "entry", function_));
    begin();
    statements(3, 8, true);
    finish();
    std::string text;
    llvm::raw_string_ostream stream(text);
    if (llvm::verifyFunction(*function_, &stream)) throw std::logic_error(text);
    // Before anything is folded: what C++ leaves undefined has no result to compare.
    define_arithmetic(*function_);
    simplify();
    return std::move(module_);
  }

 private:
  uint32_t roll(uint32_t sides) { return static_cast<uint32_t>(random_() % sides); }
  template <class T>
  T& any(std::vector<T>& of) {
    return of[roll(static_cast<uint32_t>(of.size()))];
  }

  Value* call(const char* name, std::vector<Value*> arguments = {}) {
    return b_.CreateCall(module_->getFunction(std::string("__hf_") + name), arguments);
  }
  llvm::AllocaInst* variable(llvm::Type* type, Value* start) {
    llvm::IRBuilder<> at_start(&function_->getEntryBlock(), function_->getEntryBlock().begin());
    llvm::AllocaInst* made = at_start.CreateAlloca(type);
    if (start) b_.CreateStore(start, made);
    return made;
  }

  void begin() {
    for (uint32_t axis = 0; axis < 3; ++axis) {
      Value* position = call("thread_position_in_threadgroup", {b_.getInt32(axis)});
      Value* start = b_.CreateMul(call("threadgroup_position_in_grid", {b_.getInt32(axis)}),
                                  call("dispatch_threads_per_threadgroup", {b_.getInt32(axis)}));
      grid_[axis] = b_.CreateAdd(start, position);
      local_[axis] = position;
    }
    lane_ = call("thread_index_in_simdgroup");
    simdgroup_ = call("simdgroup_index_in_threadgroup");
    index_ = b_.CreateAdd(b_.CreateMul(simdgroup_, b_.getInt32(32)), lane_);
    Value* gx = call("threads_per_grid", {b_.getInt32(0)});
    Value* gy = call("threads_per_grid", {b_.getInt32(1)});
    thread_ = b_.CreateAdd(grid_[0],
                           b_.CreateMul(gx, b_.CreateAdd(grid_[1], b_.CreateMul(gy, grid_[2]))));
    uniforms_ = {call("threadgroup_position_in_grid", {b_.getInt32(0)}), gx, simdgroup_,
                 call("simdgroups_per_threadgroup"),
                 call("threads_per_threadgroup", {b_.getInt32(0)})};
    for (int i = 0; i < 5; ++i)
      integers_.push_back(variable(b_.getInt32Ty(), i < 3 ? integer(0) : constant()));
    for (int i = 0; i < 3; ++i) floats_.push_back(variable(b_.getFloatTy(), real(0)));
    array_ = variable(llvm::ArrayType::get(
                          roll(2) ? b_.getInt32Ty() : static_cast<llvm::Type*>(b_.getInt16Ty()), 8),
                      nullptr);
    for (uint32_t i = 0; i < 8; ++i) b_.CreateStore(narrow(integer(0)), element(b_.getInt32(i)));
    // Every thread owns the places of its number.
    result_ = b_.CreateGEP(
        b_.getInt32Ty(), function_->getArg(2),
        b_.CreateZExt(b_.CreateMul(thread_, b_.getInt32(random_results)), b_.getInt64Ty()));
    leave_ = BasicBlock::Create(context_, "leave", function_);
  }

  void finish() {
    b_.CreateBr(leave_);
    b_.SetInsertPoint(leave_);
    Value* sum = b_.getInt32(0);
    for (llvm::AllocaInst* v : integers_)
      sum = b_.CreateAdd(b_.CreateMul(sum, b_.getInt32(31)), b_.CreateLoad(b_.getInt32Ty(), v));
    b_.CreateStore(sum, result_);
    for (uint32_t i = 0; i < 2; ++i)
      b_.CreateStore(b_.CreateLoad(b_.getFloatTy(), floats_[i]),
                     b_.CreateConstGEP1_32(b_.getInt32Ty(), result_, 1 + i));
    b_.CreateRetVoid();
  }

  Value* constant() { return b_.getInt32(roll(2) ? roll(9) : roll(100000) - 50000); }
  Value* narrow(Value* v) {
    return b_.CreateTrunc(v, array_->getAllocatedType()->getArrayElementType());
  }
  Value* element(Value* index) {
    Value* bounded = b_.CreateAnd(index, b_.getInt32(7));
    return b_.CreateInBoundsGEP(array_->getAllocatedType()->getArrayElementType(), array_,
                                b_.CreateZExt(bounded, b_.getInt64Ty()));
  }
  Value* load_word(Value* index) {
    Value* bounded = b_.CreateURem(index, b_.getInt32(random_words));
    Value* wide =
        roll(2) ? b_.CreateZExt(bounded, b_.getInt64Ty()) : b_.CreateSExt(bounded, b_.getInt64Ty());
    return b_.CreateLoad(b_.getInt32Ty(),
                         b_.CreateGEP(b_.getInt32Ty(), function_->getArg(roll(2)), wide));
  }
  // An index that often rises with the lane.
  Value* index() {
    std::vector<Value*> starts = {thread_, grid_[0], lane_, index_, local_[0]};
    Value* v = any(starts);
    switch (roll(6)) {
      case 0:
        return b_.CreateAdd(v, any(uniforms_));
      case 1:
        return b_.CreateAdd(b_.CreateMul(v, b_.getInt32(1 + roll(5))), b_.getInt32(roll(8)));
      case 2:
        return integers_.empty() ? v : b_.CreateAdd(v, read_integer());
      case 3:
        return b_.CreateLShr(v, b_.getInt32(roll(6)));
      case 4:
        return b_.CreateAnd(v, b_.getInt32((1u << roll(8)) - 1));
      default:
        return v;
    }
  }
  Value* read_integer() { return b_.CreateLoad(b_.getInt32Ty(), any(integers_)); }
  Value* read_float() { return b_.CreateLoad(b_.getFloatTy(), any(floats_)); }

  // --- Signed sums, as `row * hidden + (g * gs + tid)` makes them: known not to overflow, of parts
  // read from memory, of which no bound is known. Made in one block, often before a barrier, and
  // taken for an index in another.
  struct Sum {
    Value* value;
    int most;  // at least 0
  };

  // 16 bits or 32.
  Sum sum_part(llvm::Type* type) {
    if (!sums_.empty() && roll(3) == 0) {
      Sum one = any(sums_);
      if (one.value->getType() == type) return one;
      if (type->isIntegerTy(32)) return {b_.CreateSExt(one.value, type), one.most};
      return {b_.CreateTrunc(one.value, type), one.most};
    }
    auto fit = [&](Value* v) { return b_.CreateZExtOrTrunc(v, type); };
    if (roll(2)) {
      // A word of the first buffer, less than `random_small_words`.
      Value* at = b_.CreateConstGEP1_32(b_.getInt32Ty(), function_->getArg(0), roll(random_words));
      Value* word = fit(b_.CreateLoad(b_.getInt32Ty(), at));
      return {word, static_cast<int>(random_small_words) - 1};
    }
    const std::vector<std::pair<Value*, int>> positions = {
        {lane_, 31}, {index_, 127}, {local_[0], 95}, {grid_[0], 191}, {grid_[1], 7}};
    auto [position, most] = positions[roll(5)];
    int factor = 1 + static_cast<int>(roll(3));
    Value* product = b_.CreateNSWMul(fit(position), llvm::ConstantInt::get(type, factor));
    return {factor == 1 ? fit(position) : product, most * factor};
  }

  void make_sum() {
    llvm::Type* type = roll(4) ? b_.getInt32Ty() : static_cast<llvm::Type*>(b_.getInt16Ty());
    Sum sum = sum_part(type);
    for (uint32_t i = 1 + roll(3); i > 0; --i) {
      Sum part = sum_part(type);
      if (sum.most + part.most > random_most_sum) break;
      Value *a = sum.value, *c = part.value;
      if (roll(2)) std::swap(a, c);
      sum = {roll(3) ? b_.CreateNSWAdd(a, c)
                     : b_.CreateAdd(a, c, "", /*HasNUW=*/true, /*HasNSW=*/true),
             sum.most + part.most};
    }
    sums_.push_back(sum);
  }

  // A word at `sum`, or at what is left of the sum without something: an address before the one
  // that the difference is added to.
  Value* load_at_sum() {
    Sum sum = any(sums_);
    llvm::Type* type = sum.value->getType();
    Value* value = sum.value;
    uint32_t start = 0;
    if (roll(2)) {
      Sum part = sum_part(type);
      if (roll(2)) {
        if (sum.most + part.most <= random_most_sum) value = b_.CreateNSWAdd(part.value, value);
      } else if (part.most <= random_most_start) {
        value = b_.CreateNSWSub(value, part.value);
        start = static_cast<uint32_t>(part.most);
      }
    }
    bool is_negative = start != 0;
    Value* wide = !is_negative && roll(3) == 0 ? b_.CreateZExt(value, b_.getInt64Ty())
                                               : b_.CreateSExt(value, b_.getInt64Ty());
    if (auto* extension = llvm::dyn_cast<llvm::ZExtInst>(wide); extension && roll(2))
      extension->setNonNeg();
    Value* from = b_.CreateConstGEP1_32(b_.getInt32Ty(), function_->getArg(1), start);
    return b_.CreateLoad(b_.getInt32Ty(), b_.CreateGEP(b_.getInt32Ty(), from, wide));
  }

  Value* integer(int depth) {
    if (!sums_.empty() && roll(8) == 0) return load_at_sum();
    if (depth <= 0) {
      switch (roll(integers_.empty() ? 4 : 6)) {
        case 0:
          return constant();
        case 1:
          return any(uniforms_);
        case 2:
          return index();
        case 3:
          return load_word(thread_);
        default:
          return read_integer();
      }
    }
    auto operand = [&] { return integer(depth - 1 - static_cast<int>(roll(2))); };
    switch (roll(20)) {
      case 0:
      case 1:
        return b_.CreateAdd(operand(), operand());
      case 2:
        return b_.CreateSub(operand(), operand());
      case 3:
        return b_.CreateMul(operand(), operand());
      case 4:
        return b_.CreateXor(operand(), operand());
      case 5:
        return b_.CreateUDiv(operand(), operand());
      case 6:
        return b_.CreateSRem(operand(), operand());
      case 7:
        return b_.CreateShl(operand(), operand());
      case 8:
        return b_.CreateAShr(operand(), operand());
      case 9:
        return b_.CreateSelect(condition(depth - 1), operand(), operand());
      case 10:
        return load_word(operand());
      case 11:
        return load_word(index());
      case 12:
        return b_.CreateSExt(
            b_.CreateLoad(array_->getAllocatedType()->getArrayElementType(), element(operand())),
            b_.getInt32Ty());
      case 13:
        return b_.CreateFPToSI(real(depth - 1), b_.getInt32Ty());
      case 14: {
        Value* at = b_.CreateInBoundsGEP(
            b_.getInt32Ty(), module_->getNamedGlobal("table"),
            b_.CreateZExt(b_.CreateAnd(operand(), b_.getInt32(7)), b_.getInt64Ty()));
        return b_.CreateLoad(b_.getInt32Ty(), at);
      }
      case 15:
        return b_.CreateTrunc(b_.CreateLShr(b_.CreateMul(b_.CreateZExt(operand(), b_.getInt64Ty()),
                                                         b_.CreateSExt(operand(), b_.getInt64Ty())),
                                            b_.getInt64(roll(40))),
                              b_.getInt32Ty());
      case 16:
        return b_.CreateSExt(b_.CreateTrunc(operand(), roll(2) ? b_.getInt8Ty() : b_.getInt16Ty()),
                             b_.getInt32Ty());
      case 17:
        return cross_lane(depth);
      default:
        return b_.CreateAnd(operand(), operand());
    }
  }

  Value* cross_lane(int depth) {
    Value* v = integer(depth - 1);
    switch (roll(12)) {
      case 0:
        return call("shuffle_u32", {v, roll(2) ? integer(0) : b_.getInt32(roll(34))});
      case 1:
        return call("shuffle_xor_u32", {v, roll(2) ? b_.CreateAnd(integer(0), b_.getInt32(63))
                                                   : b_.getInt32(roll(32))});
      case 2:
        return call("shuffle_up_u32", {v, roll(2) ? b_.CreateAnd(integer(0), b_.getInt32(31))
                                                  : b_.getInt32(roll(32))});
      case 3:
        return call("shuffle_down_u32", {v, roll(2) ? integer(0) : b_.getInt32(roll(32))});
      case 4:
        return call("reduce_add_u32", {v});
      case 5:
        return call("reduce_max_i32", {v});
      case 6:
        return call("reduce_xor_u32", {v});
      case 7:
        return call("scan_inclusive_add_u32", {v});
      case 8:
        return call("scan_exclusive_add_u32", {v});
      case 9:
        return b_.CreateTrunc(call("shuffle_u64", {b_.CreateMul(b_.CreateZExt(v, b_.getInt64Ty()),
                                                                b_.getInt64(0x100000001)),
                                                   b_.getInt32(roll(32))}),
                              b_.getInt32Ty());
      case 10:
        return call("ballot", {b_.CreateAnd(v, b_.getInt32(1))});
      default:
        return call("reduce_min_u32", {v});
    }
  }

  Value* real(int depth) {
    if (depth <= 0) {
      if (roll(3) == 0 || floats_.empty())
        return b_.CreateSIToFP(b_.CreateAShr(integer(0), b_.getInt32(16)), b_.getFloatTy());
      return roll(3) ? read_float() : llvm::ConstantFP::get(b_.getFloatTy(), roll(16) * 0.25 - 1.5);
    }
    auto operand = [&] { return real(depth - 1); };
    switch (roll(9)) {
      case 0:
        return b_.CreateFAdd(operand(), operand());
      case 1:
        return b_.CreateFMul(operand(), operand());
      case 2:
        return b_.CreateFSub(operand(), operand());
      case 3:
        return b_.CreateSelect(condition(depth - 1), operand(), operand());
      case 4:
        return b_.CreateUIToFP(integer(depth - 1), b_.getFloatTy());
      case 5:
        return call(roll(2) ? "reduce_add_f32" : "reduce_max_f32", {operand()});
      case 6:
        return call("scan_inclusive_add_f32", {operand()});
      case 7:
        return b_.CreateFPExt(
            b_.CreateFPTrunc(operand(), roll(2) ? b_.getHalfTy() : b_.getBFloatTy()),
            b_.getFloatTy());
      default:
        return b_.CreateIntrinsic(llvm::Intrinsic::fma, {b_.getFloatTy()},
                                  {operand(), operand(), operand()});
    }
  }

  Value* condition(int depth) {
    switch (roll(6)) {
      case 0:
        return b_.CreateFCmpOLT(real(depth), real(depth - 1));
      case 1:
        return b_.CreateICmpULT(index(), any(uniforms_));
      case 2:
        return b_.CreateICmpEQ(b_.CreateAnd(integer(depth), b_.getInt32(3)), b_.getInt32(roll(4)));
      case 3:
        return b_.CreateICmpULT(index(), b_.getInt32(roll(64)));
      default:
        return b_.CreateICmpSLT(integer(depth), integer(depth - 1));
    }
  }
  Value* uniform_condition() {
    std::vector<Value*> group = {uniforms_[0], uniforms_[1], uniforms_[3], uniforms_[4]};
    return b_.CreateICmpULT(b_.CreateAnd(any(group), b_.getInt32(3)), b_.getInt32(roll(5)));
  }

  BasicBlock* block() { return BasicBlock::Create(context_, "", function_); }
  void jump(BasicBlock* to) {
    if (!b_.GetInsertBlock()->getTerminator()) b_.CreateBr(to);
  }

  void statements(int depth, uint32_t most, bool converged) {
    uint32_t count = 1 + roll(most);
    size_t visible = sums_.size();
    for (uint32_t i = 0; i < count; ++i) statement(depth, converged);
    sums_.resize(visible);
  }

  // `converged`: all threads of the group come here, so a barrier may stand here.
  void statement(int depth, bool converged) {
    if (has_sums_ && roll(5) == 0) {
      make_sum();
      if (converged && !returned_ && roll(2)) call("threadgroup_barrier", {b_.getInt32(2)});
      return;
    }
    switch (roll(depth > 0 ? 16 : 8)) {
      case 0:
      case 1:
      case 2:
        b_.CreateStore(integer(3), any(integers_));
        return;
      case 3:
      case 4:
        b_.CreateStore(real(2), any(floats_));
        return;
      case 5:
        b_.CreateStore(narrow(integer(1)), element(roll(2) ? integer(1) : b_.getInt32(roll(8))));
        return;
      case 6:
        b_.CreateStore(integer(1), b_.CreateConstGEP1_32(b_.getInt32Ty(), result_, 3));
        return;
      case 7: {
        Value* at = b_.CreateGEP(
            b_.getInt32Ty(), function_->getArg(3),
            b_.CreateZExt(
                b_.CreateAnd(roll(2) ? integer(1) : b_.getInt32(roll(16)), b_.getInt32(15)),
                b_.getInt64Ty()));
        b_.CreateAtomicRMW(llvm::AtomicRMWInst::Add, at, integer(1), llvm::Align(4),
                           llvm::AtomicOrdering::Monotonic);
        return;
      }
      case 8:
      case 9:
      case 10: {
        bool same = roll(4) == 0;
        branch(depth, same ? uniform_condition() : condition(1), converged && same);
        return;
      }
      case 11:
      case 12:
        loop(depth, converged);
        return;
      case 13:
        if (roll(3) == 0) early_return();
        return;
      default:
        if (converged && !returned_) exchange();
        return;
    }
  }

  void branch(int depth, Value* condition_value, bool converged) {
    BasicBlock *yes = block(), *no = block(), *after = block();
    b_.CreateCondBr(condition_value, yes, no);
    b_.SetInsertPoint(yes);
    statements(depth - 1, 3, converged);
    if (roll(6) == 0 && !loops_.empty() && !converged) {
      BasicBlock* to = roll(2) ? loops_.back().next : loops_.back().after;
      if (!loops_.back().converged) b_.CreateBr(to);
    }
    jump(after);
    b_.SetInsertPoint(no);
    if (roll(2)) statements(depth - 1, 3, converged);
    jump(after);
    b_.SetInsertPoint(after);
  }

  void loop(int depth, bool converged) {
    BasicBlock *head = block(), *body = block(), *next = block(), *after = block();
    bool same = converged && roll(2) != 0;
    Value* bound = same ? static_cast<Value*>(b_.getInt32(1 + roll(4)))
                        : b_.CreateAnd(integer(1), b_.getInt32(7));
    Value* start =
        roll(3) ? static_cast<Value*>(b_.getInt32(0)) : b_.CreateAnd(index(), b_.getInt32(3));
    if (same) start = b_.getInt32(0);
    llvm::AllocaInst* counter = variable(b_.getInt32Ty(), start);
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    b_.CreateCondBr(b_.CreateICmpULT(b_.CreateLoad(b_.getInt32Ty(), counter), bound), body, after);
    b_.SetInsertPoint(body);
    loops_.push_back({next, after, same});
    statements(depth - 1, 4, same);
    if (!same && roll(3) == 0) {
      BasicBlock* rest = block();
      b_.CreateCondBr(condition(1), rest, roll(2) ? after : next);
      b_.SetInsertPoint(rest);
      statements(depth - 1, 2, false);
    }
    loops_.pop_back();
    b_.CreateStore(b_.CreateAdd(read_integer(), b_.CreateLoad(b_.getInt32Ty(), counter)),
                   any(integers_));
    jump(next);
    b_.SetInsertPoint(next);
    b_.CreateStore(b_.CreateAdd(b_.CreateLoad(b_.getInt32Ty(), counter), b_.getInt32(1)), counter);
    b_.CreateBr(head);
    b_.SetInsertPoint(after);
  }

  // Lanes that have returned take no part in what follows; barriers would be undefined then.
  void early_return() {
    returned_ = true;
    BasicBlock *go = block(), *stay = block();
    b_.CreateCondBr(condition(1), go, stay);
    b_.SetInsertPoint(go);
    b_.CreateBr(leave_);
    b_.SetInsertPoint(stay);
  }

  // Each thread writes its own place, reads another's after a barrier, and waits again.
  void exchange() {
    llvm::GlobalVariable* shared = module_->getNamedGlobal("shared");
    auto place = [&](Value* i) {
      return b_.CreateInBoundsGEP(b_.getInt32Ty(), shared, b_.CreateZExt(i, b_.getInt64Ty()));
    };
    b_.CreateStore(integer(1), place(index_));
    call("threadgroup_barrier", {b_.getInt32(roll(3))});
    Value* threads = b_.CreateMul(b_.CreateMul(call("threads_per_threadgroup", {b_.getInt32(0)}),
                                               call("threads_per_threadgroup", {b_.getInt32(1)})),
                                  call("threads_per_threadgroup", {b_.getInt32(2)}));
    Value* other =
        b_.CreateURem(roll(2) ? b_.CreateAdd(index_, b_.getInt32(roll(64))) : integer(1), threads);
    b_.CreateStore(b_.CreateXor(b_.CreateLoad(b_.getInt32Ty(), place(other)), read_integer()),
                   any(integers_));
    call("threadgroup_barrier", {b_.getInt32(2)});
  }

  void simplify() {
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
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    if (roll(4) != 0) {
      passes.addPass(llvm::EarlyCSEPass(true));
      passes.addPass(llvm::InstCombinePass());
      passes.addPass(llvm::SimplifyCFGPass());
      if (roll(2)) {
        llvm::LoopPassManager inner;
        inner.addPass(llvm::LoopRotatePass());
        inner.addPass(llvm::LICMPass(llvm::LICMOptions()));
        passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(inner), true));
        llvm::LoopPassManager counting;
        counting.addPass(llvm::IndVarSimplifyPass());
        counting.addPass(llvm::LoopFullUnrollPass());
        passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(counting)));
      }
      passes.addPass(llvm::GVNPass());
      passes.addPass(llvm::InstCombinePass());
      passes.addPass(llvm::SimplifyCFGPass());
    }
    passes.run(*function_, functions);
  }

  struct Loop {
    BasicBlock* next;
    BasicBlock* after;
    // All threads of the group take every turn of it whole: it may hold barriers, and a thread that
    // left a turn early would miss them.
    bool converged;
  };

  llvm::LLVMContext& context_;
  std::mt19937_64 random_;
  llvm::IRBuilder<llvm::NoFolder> b_;  // constants are folded after they are defined
  std::unique_ptr<llvm::Module> module_;
  llvm::Function* function_ = nullptr;
  Value *grid_[3] = {}, *local_[3] = {}, *lane_ = nullptr, *simdgroup_ = nullptr, *index_ = nullptr,
        *thread_ = nullptr, *result_ = nullptr;
  std::vector<Value*> uniforms_;
  std::vector<llvm::AllocaInst*> integers_, floats_;
  llvm::AllocaInst* array_ = nullptr;
  BasicBlock* leave_ = nullptr;
  std::vector<Loop> loops_;
  bool returned_ = false;
  bool has_sums_;
  std::vector<Sum> sums_;  // whose blocks dominate the one that is being written
};

}  // namespace

std::unique_ptr<llvm::Module> make_random_kernel(llvm::LLVMContext& context, uint64_t seed) {
  return Generator(context, seed).run();
}

}  // namespace holdfast::jit::testing
