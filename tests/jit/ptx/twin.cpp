#include "jit/ptx/twin.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "devices/cpu/jit/compiler/service.h"
#include "devices/cuda/compiler/entry.h"
#include "devices/cuda/compiler/polling.h"
#include "devices/cuda/compiler/ptx.h"
#include "devices/cuda/compiler/target.h"
#include "msl/frontend/frontend.h"

namespace holdfast::jit::testing {
namespace {

using llvm::IRBuilder;
using llvm::Value;

// The body of the entry in a function of scalar IR: the entry's parameters, the launch's as a
// device buffer, and a counter of wrong masks.
class Reader {
 public:
  explicit Reader(llvm::Function& entry)
      : entry_(entry), module_(*entry.getParent()), b_(entry.getContext()) {}

  void run(const std::string& name) {
    llvm::Type* device = llvm::PointerType::get(module_.getContext(), 1);
    llvm::SmallVector<llvm::Type*, 16> types(entry_.arg_size() + 1, device);
    kernel_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                                     llvm::GlobalValue::ExternalLinkage, "", module_);
    kernel_->addFnAttr(llvm::Attribute::NoUnwind);
    kernel_->splice(kernel_->end(), &entry_);
    b_.SetInsertPoint(&kernel_->getEntryBlock(), kernel_->getEntryBlock().begin());
    for (llvm::Argument& argument : entry_.args()) {
      Value* replacement = kernel_->getArg(argument.getArgNo());
      if (argument.getType()->isIntegerTy()) {
        replacement = b_.CreatePtrToInt(replacement, argument.getType());
      } else if (replacement->getType() != argument.getType()) {
        replacement = b_.CreateAddrSpaceCast(replacement, argument.getType());
      }
      argument.replaceAllUsesWith(replacement);
    }
    wrong_ = kernel_->getArg(static_cast<unsigned>(entry_.arg_size()));
    if (llvm::NamedMDNode* notes = module_.getNamedMetadata("nvvm.annotations"))
      module_.eraseNamedMetadata(notes);
    entry_.eraseFromParent();
    kernel_->setName(name);
    llvm::SmallVector<llvm::CallInst*, 32> calls;
    for (llvm::Instruction& instruction : llvm::instructions(*kernel_)) {
      if (auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction)) calls.push_back(call);
    }
    for (llvm::CallInst* call : calls) {
      b_.SetInsertPoint(call);
      Value* result = read(*call);
      if (!result) continue;
      if (!call->getType()->isVoidTy()) call->replaceAllUsesWith(result);
      call->eraseFromParent();
    }
    for (llvm::Function& function : llvm::make_early_inc_range(module_)) {
      if (&function != kernel_ && function.use_empty()) function.eraseFromParent();
    }
  }

 private:
  Value* call(const std::string& name, llvm::ArrayRef<Value*> arguments, bool is_convergent,
              llvm::Type* type = nullptr) {
    llvm::SmallVector<llvm::Type*, 2> types;
    for (Value* argument : arguments) types.push_back(argument->getType());
    llvm::FunctionCallee callee = module_.getOrInsertFunction(
        "__hf_" + name, llvm::FunctionType::get(type ? type : b_.getInt32Ty(), types, false));
    auto* function = llvm::cast<llvm::Function>(callee.getCallee());
    function->addFnAttr(llvm::Attribute::NoUnwind);
    if (is_convergent) {
      function->addFnAttr(llvm::Attribute::Convergent);
    } else {
      function->setDoesNotAccessMemory();
    }
    return b_.CreateCall(callee, arguments);
  }
  Value* position(const char* name, uint32_t axis) {
    return call(name, {b_.getInt32(axis)}, false);
  }
  Value* across(const char* name, llvm::ArrayRef<Value*> arguments) {
    return call(name, arguments, true);
  }

  Value* count_outside() {
    Value* count = b_.CreateConstInBoundsGEP1_64(b_.getInt32Ty(), wrong_, 1);
    return b_.CreateAtomicRMW(llvm::AtomicRMWInst::Add, count, b_.getInt32(1), llvm::Align(4),
                              llvm::AtomicOrdering::Monotonic);
  }
  void count_unless(Value* good) {
    Value* one = b_.CreateZExt(b_.CreateNot(good), b_.getInt32Ty());
    b_.CreateAtomicRMW(llvm::AtomicRMWInst::Add, wrong_, one, llvm::Align(4),
                       llvm::AtomicOrdering::Monotonic);
  }
  void check_mask(Value* mask) {
    count_unless(b_.CreateICmpEQ(mask, across("ballot", {b_.getInt32(1)})));
  }

  // Null: it stays.
  Value* read(llvm::CallInst& site) {
    auto operand = [&](unsigned i) { return site.getArgOperand(i); };
    if (auto* assembly = llvm::dyn_cast<llvm::InlineAsm>(site.getCalledOperand()))
      return read_assembly(*assembly, site);
    llvm::Function* callee = site.getCalledFunction();
    // Or a copy of it for some site.
    if (callee->getName().starts_with(cuda::report_function_name)) return count_outside();
    if (callee->getName() == "holdfast_gather") return across("ballot", {b_.getInt32(1)});
    using namespace llvm::Intrinsic;
    switch (callee->getIntrinsicID()) {
      case nvvm_read_ptx_sreg_tid_x:
        return position("thread_position_in_threadgroup", 0);
      case nvvm_read_ptx_sreg_tid_y:
        return position("thread_position_in_threadgroup", 1);
      case nvvm_read_ptx_sreg_tid_z:
        return position("thread_position_in_threadgroup", 2);
      case nvvm_read_ptx_sreg_ctaid_x:
        return position("threadgroup_position_in_grid", 0);
      case nvvm_read_ptx_sreg_ctaid_y:
        return position("threadgroup_position_in_grid", 1);
      case nvvm_read_ptx_sreg_ctaid_z:
        return position("threadgroup_position_in_grid", 2);
      case nvvm_read_ptx_sreg_ntid_x:
        return position("threads_per_threadgroup", 0);
      case nvvm_read_ptx_sreg_ntid_y:
        return position("threads_per_threadgroup", 1);
      case nvvm_read_ptx_sreg_ntid_z:
        return position("threads_per_threadgroup", 2);
      case nvvm_read_ptx_sreg_laneid:
        return lane();
      case nvvm_barrier0:
      case nvvm_barrier_sync:
        return call("threadgroup_barrier", {b_.getInt32(0)}, true, b_.getVoidTy());
      case nvvm_bar_warp_sync:
        check_mask(operand(0));
        return call("simdgroup_barrier", {b_.getInt32(0)}, true, b_.getVoidTy());
      case nvvm_vote_ballot_sync:
        check_mask(operand(0));
        return across("ballot", {b_.CreateZExt(operand(1), b_.getInt32Ty())});
      case nvvm_shfl_sync_idx_i32: {
        check_mask(operand(0));
        Value* from = b_.CreateAnd(operand(2), 31);
        // The bits of the lane's index that stay.
        const uint64_t kept = llvm::cast<llvm::ConstantInt>(operand(3))->getZExtValue() >> 8;
        if (kept != 0) {
          from = b_.CreateOr(b_.CreateAnd(lane(), kept), b_.CreateAnd(from, ~kept & 31));
        }
        count_unless(
            b_.CreateICmpNE(b_.CreateAnd(b_.CreateLShr(operand(0), from), 1), b_.getInt32(0)));
        return across("shuffle_u32", {operand(1), from});
      }
      case nvvm_shfl_sync_bfly_i32:
        check_mask(operand(0));
        return across("shuffle_xor_u32", {operand(1), operand(2)});
      case nvvm_shfl_sync_up_i32:
        check_mask(operand(0));
        return across("shuffle_up_u32", {operand(1), operand(2)});
      case nvvm_redux_sync_add:
        return reduced("add_u32", operand(0), operand(1));
      case nvvm_redux_sync_min:
        return reduced("min_i32", operand(0), operand(1));
      case nvvm_redux_sync_umin:
        return reduced("min_u32", operand(0), operand(1));
      case nvvm_redux_sync_max:
        return reduced("max_i32", operand(0), operand(1));
      case nvvm_redux_sync_umax:
        return reduced("max_u32", operand(0), operand(1));
      case nvvm_redux_sync_and:
        return reduced("and_u32", operand(0), operand(1));
      case nvvm_redux_sync_or:
        return reduced("or_u32", operand(0), operand(1));
      case nvvm_redux_sync_xor:
        return reduced("xor_u32", operand(0), operand(1));
      case nvvm_prmt:
        return permuted(operand(0), operand(1), operand(2));
      case nvvm_ff2f16x2_rn:
        return packed(operand(1), operand(0), b_.getHalfTy());
      case nvvm_ff2bf16x2_rn:
        return packed(operand(1), operand(0), b_.getBFloatTy());
      case nvvm_mma_m16n8k16_row_col_f32_f32:
        return product("mma_m16n8k16_f16", site);
      case nvvm_mma_m16n8k16_row_col_bf16:
        return product("mma_m16n8k16_bf16", site);
      case nvvm_ldmatrix_sync_aligned_m8n8_x4_b16:
        return matrices(operand(0), false, site.getType());
      case nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16:
        return matrices(operand(0), true, site.getType());
      case nvvm_cp_async_ca_shared_global_4:
        return copy(operand(0), operand(1), 4, nullptr);
      case nvvm_cp_async_ca_shared_global_8:
        return copy(operand(0), operand(1), 8, nullptr);
      case nvvm_cp_async_cg_shared_global_16:
        return copy(operand(0), operand(1), 16, nullptr);
      case nvvm_cp_async_ca_shared_global_4_s:
        return copy(operand(0), operand(1), 4, operand(2));
      case nvvm_cp_async_ca_shared_global_8_s:
        return copy(operand(0), operand(1), 8, operand(2));
      case nvvm_cp_async_cg_shared_global_16_s:
        return copy(operand(0), operand(1), 16, operand(2));
      case nvvm_cp_async_commit_group:
      case nvvm_cp_async_wait_group:
        return b_.getInt32(0);
      default:
        if (callee->getName().starts_with("llvm.nvvm"))
          throw std::logic_error("the twin does not know " + callee->getName().str());
        return nullptr;
    }
  }
  // The functions of include/holdfast/tile.h, from what PTX says of their instructions.
  Value* read_assembly(const llvm::InlineAsm& assembly, llvm::CallInst& site) {
    const llvm::StringRef text = assembly.getAsmString();
    if (text.starts_with("griddepcontrol.")) return b_.getInt32(0);
    if (text.starts_with("movmatrix.")) return transposed(site.getArgOperand(0));
    throw std::logic_error("the twin does not know " + text.str());
  }
  Value* permuted(Value* low, Value* high, Value* selector) {
    Value* bytes = b_.CreateOr(b_.CreateZExt(low, b_.getInt64Ty()),
                               b_.CreateShl(b_.CreateZExt(high, b_.getInt64Ty()), 32));
    Value* result = b_.getInt32(0);
    for (uint64_t i = 0; i < 4; ++i) {
      Value* choice = b_.CreateZExt(b_.CreateLShr(selector, 4 * i), b_.getInt64Ty());
      Value* byte = b_.CreateTrunc(b_.CreateLShr(bytes, b_.CreateShl(b_.CreateAnd(choice, 7), 3)),
                                   b_.getInt8Ty());
      Value* sign = b_.CreateICmpNE(b_.CreateAnd(choice, 8), b_.getInt64(0));
      byte = b_.CreateSelect(sign, b_.CreateAShr(byte, 7), byte);
      result = b_.CreateOr(result, b_.CreateShl(b_.CreateZExt(byte, b_.getInt32Ty()), 8 * i));
    }
    return result;
  }
  Value* packed(Value* first, Value* second, llvm::Type* type) {
    Value* words[2] = {first, second};
    for (Value*& word : words)
      word = b_.CreateZExt(b_.CreateBitCast(b_.CreateFPTrunc(word, type), b_.getInt16Ty()),
                           b_.getInt32Ty());
    return b_.CreateBitCast(b_.CreateOr(words[0], b_.CreateShl(words[1], 16)),
                            llvm::FixedVectorType::get(type, 2));
  }
  Value* product(const char* name, llvm::CallInst& site) {
    llvm::SmallVector<Value*, 11> operands;
    for (unsigned i = 0; i < 10; ++i)
      operands.push_back(i < 6 ? b_.CreateBitCast(site.getArgOperand(i), b_.getInt32Ty())
                               : site.getArgOperand(i));
    Value* result = llvm::PoisonValue::get(site.getType());
    for (unsigned which = 0; which < 4; ++which) {
      operands.resize(10);
      operands.push_back(b_.getInt32(which));
      result = b_.CreateInsertValue(result, call(name, operands, true, b_.getFloatTy()), which);
    }
    return result;
  }
  Value* lane() { return call("thread_index_in_simdgroup", {}, false); }
  Value* transposed(Value* word) {
    Value *row = b_.CreateLShr(lane(), 2), *column = b_.CreateShl(b_.CreateAnd(lane(), 3), 1);
    Value* shift = b_.CreateShl(b_.CreateAnd(row, 1), 4);
    Value* halves[2];
    for (uint64_t e = 0; e < 2; ++e) {
      // Element (row, column + e) was at (column + e, row).
      Value* from =
          b_.CreateAdd(b_.CreateShl(b_.CreateAdd(column, b_.getInt32(static_cast<uint32_t>(e))), 2),
                       b_.CreateLShr(row, 1));
      halves[e] = b_.CreateAnd(b_.CreateLShr(across("shuffle_u32", {word, from}), shift), 0xffff);
    }
    return b_.CreateOr(halves[0], b_.CreateShl(halves[1], 16));
  }
  Value* matrices(Value* row, bool are_transposed, llvm::Type* type) {
    Value* address = b_.CreatePtrToInt(row, b_.getInt64Ty());
    Value* result = llvm::PoisonValue::get(type);
    for (uint32_t m = 0; m < 4; ++m) {
      Value* from = b_.CreateAdd(b_.getInt32(8 * m), b_.CreateLShr(lane(), 2));
      Value* begin = call("shuffle_u64", {address, from}, true, b_.getInt64Ty());
      Value* word = b_.CreateLoad(
          b_.getInt32Ty(), b_.CreateGEP(b_.getInt32Ty(), b_.CreateIntToPtr(begin, row->getType()),
                                        b_.CreateAnd(lane(), 3)));
      result = b_.CreateInsertValue(result, are_transposed ? transposed(word) : word, m);
    }
    return result;
  }
  // At once. `copied` bytes, the rest zeros; null: all. One that copies nothing may read `from`
  // here.
  Value* copy(Value* to, Value* from, uint64_t size, Value* copied) {
    for (uint64_t at = 0; at < size; at += 4) {
      auto place = [&](Value* base) {
        return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), base, at);
      };
      Value* word = b_.CreateLoad(b_.getInt32Ty(), place(from));
      if (copied)
        word = b_.CreateSelect(b_.CreateICmpUGT(copied, b_.getInt32(static_cast<uint32_t>(at))),
                               word, b_.getInt32(0));
      b_.CreateStore(word, place(to));
    }
    return b_.getInt32(0);
  }
  Value* reduced(const std::string& operation, Value* value, Value* mask) {
    check_mask(mask);
    return across(("reduce_" + operation).c_str(), {value});
  }

  llvm::Function& entry_;
  llvm::Module& module_;
  IRBuilder<> b_;
  llvm::Function* kernel_ = nullptr;
  Value* wrong_ = nullptr;
};

bool is_nan(const char* at, ElementKind kind) {
  if (kind == ElementKind::float32) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return std::isnan(value);
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return (bits & 0x7fff) > (kind == ElementKind::float16 ? 0x7c00 : 0x7f80);
}

}  // namespace

TwinResult run_twin(const GpuCase& gpu_case, cuda::Positions positions, bool optimised,
                    bool cancelled, const TwinOptions& how) {
  TwinResult result;
  cuda::PtxOptions options = gpu_case.options(positions);
  options.guarded = how.guarded;
  options.has_inline_constants = how.has_inline_constants;
  llvm::LLVMContext context;
  msl::KernelInterface interface;
  // As for the GPU, but exponentials are those of the CPU.
  msl::LoweringTraits traits = cuda::traits_of(options);
  traits.has_approximations = false;
  std::unique_ptr<llvm::Module> module =
      msl::to_scalar_ir(gpu_case.source, context, interface, msl::ScalarForm::optimised, traits);
  std::unique_ptr<llvm::TargetMachine> machine = cuda::make_target_machine(options.target);
  cuda::PtxKernel kernel;
  module = cuda::lower_to_nvptx(std::move(module), interface, options, *machine, kernel);
  if (optimised) cuda::optimise_entry(*module, *machine, kernel.symbol);
  cuda::poll_unbounded_loops(*module->getFunction(kernel.symbol));
  result.gathers = kernel.gathers;
  Reader(*module->getFunction(kernel.symbol)).run(interface.entry);

  Size size, groups;
  for (size_t axis = 0; axis < 3; ++axis) {
    size[axis] = std::min(gpu_case.grid[axis], gpu_case.threadgroup[axis]);
    groups[axis] = (gpu_case.grid[axis] + size[axis] - 1) / size[axis];
  }
  cuda::LaunchParameters launch{};
  std::copy(gpu_case.grid.begin(), gpu_case.grid.end(), launch.grid);
  std::copy(size.begin(), size.end(), launch.threadgroup);
  std::copy(groups.begin(), groups.end(), launch.groups);
  const uint32_t is_cancelled = cancelled;
  launch.cancelled = reinterpret_cast<uint64_t>(&is_cancelled);
  uint32_t counts[2] = {};  // wrong masks, accesses outside
  std::vector<void*> buffers;
  for (const msl::KernelArgument& argument : interface.arguments)
    result.arguments.push_back(gpu_case.argument(argument));
  for (GpuArgument& argument : result.arguments) buffers.push_back(argument.bytes.data());
  const cuda::ParameterLayout layout =
      cuda::parameter_layout(interface, how.guarded, how.has_inline_constants);
  std::vector<char> block(layout.bytes - layout.launch);
  std::memcpy(block.data(), &launch, sizeof(launch));
  for (size_t i = 0; i < result.arguments.size(); ++i) {
    const std::vector<char>& bytes = result.arguments[i].bytes;
    const exec::ArgumentRange range{0, gpu_case.bytes_of_range(i, bytes.size())};
    if (how.guarded)
      std::memcpy(block.data() + layout.guard - layout.launch + sizeof(cuda::GuardParameters) +
                      i * sizeof(range),
                  &range, sizeof(range));
    if (const uint32_t place = layout.inline_places[i])
      std::memcpy(block.data() + place - layout.launch, bytes.data(),
                  std::min<size_t>(bytes.size(), layout.inline_bytes[i]));
  }
  for (void* more : {static_cast<void*>(block.data()), static_cast<void*>(counts)}) {
    msl::KernelArgument argument;
    argument.name = "more";
    argument.slot = static_cast<uint32_t>(buffers.size());
    interface.arguments.push_back(argument);
    buffers.push_back(more);
  }
  CompileOptions compile;
  compile.lowering = Lowering::reference;
  compile.instruction_set = host_instruction_set();
  Ref<CpuPipeline> pipeline = CpuPipeline::load(
      gpu_case.name, compile_scalar_ir(std::move(module), interface, compile, gpu_case.name));
  Size grid = gpu_case.grid;
  if (positions == cuda::Positions::general) {
    size = {size[0] * size[1] * size[2], 1, 1};
    grid = {size[0] * groups[0] * groups[1] * groups[2], 1, 1};
  }
  run(*pipeline, buffers, grid, size);
  result.wrong_masks = counts[0];
  result.outside = counts[1];
  return result;
}

std::string difference(const std::vector<GpuArgument>& got,
                       const std::vector<GpuArgument>& expected) {
  for (size_t i = 0; i < got.size(); ++i) {
    const ElementKind kind = got[i].kind;
    const size_t width = kind == ElementKind::bits ? 1 : kind == ElementKind::float32 ? 4 : 2;
    for (size_t at = 0; at + width <= got[i].bytes.size(); at += width) {
      const char *a = &got[i].bytes[at], *b = &expected[i].bytes[at];
      if (std::memcmp(a, b, width) == 0) continue;
      if (kind != ElementKind::bits && is_nan(a, kind) && is_nan(b, kind)) continue;
      return "argument " + std::to_string(i) + " differs at byte " + std::to_string(at);
    }
  }
  return "";
}

}  // namespace holdfast::jit::testing
