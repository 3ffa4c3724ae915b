#include "devices/cuda/compiler/tiles.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>

#include <map>
#include <string>
#include <vector>

#include "devices/cpu/jit/compiler/widen/intrinsics.h"
#include "devices/cuda/compiler/target.h"

namespace holdfast::cuda {
namespace {

using llvm::IRBuilder;
using llvm::Value;
using msl::Intrinsic;

uint32_t constant(const Value* value) {
  return static_cast<uint32_t>(llvm::cast<llvm::ConstantInt>(value)->getZExtValue());
}

class TileLowering {
 public:
  TileLowering(llvm::Function& kernel, uint32_t target)
      : kernel_(kernel), target_(target), b_(kernel.getContext()) {}

  // Whether another target would have got another code.
  bool run() {
    for (llvm::BasicBlock& block : kernel_) {
      made_.clear();
      for (llvm::Instruction& instruction : llvm::make_early_inc_range(block)) {
        std::optional<Intrinsic> intrinsic = jit::kernel_intrinsic(instruction);
        if (!intrinsic) {
          // What a matrix load read may have changed.
          if (instruction.mayWriteToMemory()) made_.clear();
          continue;
        }
        auto& call = llvm::cast<llvm::CallInst>(instruction);
        b_.SetInsertPoint(&call);
        if (!lower(call, *intrinsic)) {
          if (instruction.mayWriteToMemory()) made_.clear();
          continue;
        }
        call.eraseFromParent();
      }
    }
    return orders_launches_;
  }

 private:
  llvm::CallInst* convergent(llvm::CallInst* call) {
    call->setConvergent();
    call->addFnAttr(llvm::Attribute::NoMerge);
    return call;
  }

  // False: it is none of ours.
  bool lower(llvm::CallInst& call, Intrinsic intrinsic) {
    auto operand = [&](unsigned i) { return call.getArgOperand(i); };
    auto become = [&](Value* value) {
      if (value->getType() != call.getType()) value = b_.CreateBitCast(value, call.getType());
      call.replaceAllUsesWith(value);
      return true;
    };
    auto perform = [&](llvm::Intrinsic::ID id, llvm::ArrayRef<Value*> operands) {
      made_.clear();
      b_.CreateIntrinsic(id, {}, operands);
      return true;
    };
    switch (intrinsic) {
      case Intrinsic::byte_permute:
        return become(b_.CreateIntrinsic(llvm::Intrinsic::nvvm_prmt, {},
                                         {operand(0), operand(1), operand(2)}));
      // The instruction puts its first operand into the high half.
      case Intrinsic::pack_f16:
        return become(
            b_.CreateIntrinsic(llvm::Intrinsic::nvvm_ff2f16x2_rn, {}, {operand(1), operand(0)}));
      case Intrinsic::pack_bf16:
        return become(
            b_.CreateIntrinsic(llvm::Intrinsic::nvvm_ff2bf16x2_rn, {}, {operand(1), operand(0)}));
      case Intrinsic::transpose_8x8:
        return become(transpose(operand(0)));
      case Intrinsic::mma_m16n8k16_f16:
      case Intrinsic::mma_m16n8k16_bf16:
        return become(element_of(call, [&] { return multiply(call, intrinsic); }));
      case Intrinsic::load_matrices:
        return become(element_of(call, [&] { return load_matrices(call); }));
      case Intrinsic::async_copy:
        made_.clear();
        copy(call);
        return true;
      case Intrinsic::async_copy_commit:
        return perform(llvm::Intrinsic::nvvm_cp_async_commit_group, {});
      case Intrinsic::async_copy_wait:
        return perform(llvm::Intrinsic::nvvm_cp_async_wait_group, {operand(0)});
      case Intrinsic::wait_for_launches_before:
        return order_launches("griddepcontrol.wait;");
      case Intrinsic::allow_next_launch:
        return order_launches("griddepcontrol.launch_dependents;");
      default:
        return false;
    }
  }

  Value* transpose(Value* word) {
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getInt32Ty()}, false);
    return convergent(b_.CreateCall(
        llvm::InlineAsm::get(type, "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r",
                             /*hasSideEffects=*/true),
        {word}));
  }

  // The results of one instruction are calls on the same operands but for the last, the result's
  // number: of those in one block, the first makes it.
  template <class Make>
  Value* element_of(llvm::CallInst& call, Make make) {
    std::vector<Value*> key{call.getCalledFunction()};
    for (unsigned i = 0; i + 1 < call.arg_size(); ++i) key.push_back(call.getArgOperand(i));
    Value*& results = made_[key];
    if (!results) results = make();
    return b_.CreateExtractValue(results, constant(call.getArgOperand(call.arg_size() - 1)) & 3);
  }

  Value* multiply(llvm::CallInst& call, Intrinsic intrinsic) {
    const bool is_bfloat = intrinsic == Intrinsic::mma_m16n8k16_bf16;
    llvm::SmallVector<Value*, 10> operands;
    for (unsigned i = 0; i < 10; ++i) {
      Value* one = call.getArgOperand(i);
      if (i < 6 && !is_bfloat)
        one = b_.CreateBitCast(one, llvm::FixedVectorType::get(b_.getHalfTy(), 2));
      operands.push_back(one);
    }
    return convergent(b_.CreateIntrinsic(is_bfloat
                                             ? llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16
                                             : llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32,
                                         {}, operands));
  }

  Value* load_matrices(llvm::CallInst& call) {
    Value* tile = call.getArgOperand(0);
    Value* row =
        b_.CreateGEP(b_.getInt8Ty(), tile, b_.CreateZExt(call.getArgOperand(1), b_.getInt64Ty()));
    return convergent(
        b_.CreateIntrinsic(constant(call.getArgOperand(2)) != 0
                               ? llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16
                               : llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16,
                           {tile->getType()}, {row}));
  }

  void copy(llvm::CallInst& call) {
    using namespace llvm::Intrinsic;
    Value *to = call.getArgOperand(0), *from = call.getArgOperand(1);
    Value* copied = call.getArgOperand(3);
    const uint32_t size = constant(call.getArgOperand(2));
    auto* known = llvm::dyn_cast<llvm::ConstantInt>(copied);
    if (known && known->getZExtValue() == size) {
      b_.CreateIntrinsic(size == 16  ? nvvm_cp_async_cg_shared_global_16
                         : size == 8 ? nvvm_cp_async_ca_shared_global_8
                                     : nvvm_cp_async_ca_shared_global_4,
                         {}, {to, from});
    } else {
      b_.CreateIntrinsic(size == 16  ? nvvm_cp_async_cg_shared_global_16_s
                         : size == 8 ? nvvm_cp_async_ca_shared_global_8_s
                                     : nvvm_cp_async_ca_shared_global_4_s,
                         {}, {to, from, copied});
    }
  }

  // From sm_90 on; before that, launches do not overlap.
  bool order_launches(const char* instruction) {
    made_.clear();
    orders_launches_ = true;
    if (target_ < 90) return true;
    b_.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(b_.getVoidTy(), {}, false),
                                       instruction, "~{memory}", /*hasSideEffects=*/true));
    return true;
  }

  llvm::Function& kernel_;
  const uint32_t target_;
  bool orders_launches_ = false;
  IRBuilder<> b_;
  std::map<std::vector<Value*>, Value*> made_;  // in this block, by function and operands
};

// Of memory that nothing writes while the kernel runs.
bool reads_constant_argument(const llvm::LoadInst& load) {
  auto* argument = llvm::dyn_cast<llvm::Argument>(
      llvm::getUnderlyingObject(load.getPointerOperand(), /*MaxLookup=*/0));
  return argument && argument->onlyReadsMemory() && argument->hasNoAliasAttr();
}

}  // namespace

bool lower_tiles(llvm::Function& kernel, uint32_t target) {
  return TileLowering(kernel, target).run();
}

void lower_streaming_loads(llvm::Function& entry, llvm::TargetMachine& machine) {
  auto is_streaming = [](const llvm::Instruction& instruction) {
    return llvm::isa<llvm::LoadInst>(instruction) &&
           instruction.hasMetadata(llvm::LLVMContext::MD_nontemporal);
  };
  if (llvm::none_of(llvm::instructions(entry), is_streaming)) return;
  merge_accesses(entry, machine);
  const llvm::DataLayout& layout = entry.getParent()->getDataLayout();
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(entry))) {
    if (!is_streaming(instruction)) continue;
    auto* load = llvm::cast<llvm::LoadInst>(&instruction);
    if (load->getPointerAddressSpace() != msl::address_space::device ||
        !reads_constant_argument(*load))
      continue;
    const uint64_t bytes = layout.getTypeStoreSize(load->getType());
    if ((bytes != 4 && bytes != 8 && bytes != 16) || load->getAlign().value() < bytes) continue;
    IRBuilder<> b(load);
    const unsigned words = static_cast<unsigned>(bytes / 4);
    llvm::SmallVector<llvm::Type*, 4> results(words, b.getInt32Ty());
    llvm::Type* type = results[0];
    if (words > 1) type = llvm::StructType::get(b.getContext(), results);
    std::string text = "ld.global.nc.L1::no_allocate", places, constraints;
    for (unsigned i = 0; i < words; ++i) {
      places += (i == 0 ? "$" : ", $") + std::to_string(i);
      constraints += "=r,";
    }
    if (words == 1) {
      text += ".b32 " + places;
    } else {
      text += ".v" + std::to_string(words) + ".b32 {" + places + "}";
    }
    text += ", [$" + std::to_string(words) + "];";
    Value* read = b.CreateCall(
        llvm::InlineAsm::get(llvm::FunctionType::get(type, {load->getPointerOperandType()}, false),
                             text, constraints + "l", /*hasSideEffects=*/false),
        {load->getPointerOperand()});
    if (words > 1) {
      Value* vector = llvm::PoisonValue::get(llvm::FixedVectorType::get(b.getInt32Ty(), words));
      for (unsigned i = 0; i < words; ++i)
        vector = b.CreateInsertElement(vector, b.CreateExtractValue(read, i), i);
      read = vector;
    }
    load->replaceAllUsesWith(b.CreateBitCast(read, load->getType()));
    load->eraseFromParent();
  }
}

}  // namespace holdfast::cuda
