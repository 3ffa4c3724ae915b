// The form that msl/scalar_ir.h promises, checked.
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <string_view>

#include "msl/frontend/frontend.h"
#include "msl/frontend/initialisers.h"
#include "msl/frontend/inline_calls.h"
#include "msl/scalar_ir.h"

namespace holdfast::msl {
namespace {

constexpr uint64_t most_private_bytes = uint64_t{1} << 20;

bool is_intrinsic_row(llvm::StringRef name) {
  static constexpr std::string_view names[] = {
#define X(name, result, parameters, behaviour) "__hf_" #name,
#include "msl/intrinsics.def"
#undef X
  };
  for (std::string_view row : names) {
    if (name == llvm::StringRef(row)) return true;
  }
  return false;
}

std::string quoted(llvm::StringRef name) { return "'" + llvm::demangle(name) + "'"; }

// LLVM's own functions that every back-end lowers; those of one target are refused.
bool is_generic_intrinsic(const llvm::Function& function) {
  return function.isIntrinsic() && !function.isTargetIntrinsic();
}

std::string check_call(const llvm::CallBase& call) {
  if (call.isInlineAsm()) return "inline assembly is not part of the language";
  const llvm::Function* callee = call.getCalledFunction();
  if (callee == nullptr) return "calls through pointers are not part of the language";
  if (is_generic_intrinsic(*callee) || is_shared_function(*callee)) return {};
  if (callee->getName() == "__hf_needs_performance_primitives") {
    return "uses mpp::tensor_ops: MetalPerformancePrimitives are not available here, use "
           "simdgroup_matrix";
  }
  if (!is_intrinsic_row(callee->getName())) {
    return "calls " + quoted(callee->getName()) + ", which is declared but not defined";
  }
  return {};
}

std::string check_instruction(const llvm::Instruction& instruction) {
  if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
    if (std::string wrong = check_call(*call); !wrong.empty()) return wrong;
  }
  const bool may_use_vectors =
      llvm::isa<llvm::LoadInst, llvm::StoreInst, llvm::BitCastInst>(instruction);
  bool has_vectors = instruction.getType()->isVectorTy();
  for (const llvm::Use& operand : instruction.operands()) {
    has_vectors = has_vectors || operand->getType()->isVectorTy();
  }
  if (has_vectors && !may_use_vectors) return "an instruction works on vectors";
  if (llvm::isa<llvm::InvokeInst, llvm::ResumeInst, llvm::IndirectBrInst>(instruction)) {
    return "an instruction of exceptions or computed jumps";
  }
  return {};
}

std::string check_global(const llvm::GlobalVariable& global) {
  if (global.isDeclaration()) {
    const std::optional<uint64_t> missing = missing_function_constant(global);
    return "variable " + quoted(global.getName()) + " has no value: " +
           (missing ? "function constant " + std::to_string(*missing) + " was not given"
                    : "it is not initialised by a constant");
  }
  if (global.getAddressSpace() == address_space::threadgroup) {
    return llvm::isa<llvm::UndefValue>(global.getInitializer())
               ? ""
               : "threadgroup variable " + quoted(global.getName()) + " has a value";
  }
  if (!global.isConstant()) {
    return "variable " + quoted(global.getName()) +
           " at program scope must be in constant memory and initialised by a constant";
  }
  if (global.getAddressSpace() != address_space::constant) {
    return "table " + quoted(global.getName()) + " is not in constant memory";
  }
  if (holds_threadgroup_addresses(*global.getInitializer())) {
    return "table " + quoted(global.getName()) +
           " holds addresses of threadgroup memory: fill a private array with them";
  }
  return {};
}

}  // namespace

std::string check_scalar_ir(const llvm::Module& module, const KernelInterface& interface) {
  const llvm::Function* entry = module.getFunction(interface.entry);
  if (entry == nullptr || entry->isDeclaration())
    return "there is no function with the entry's name";
  for (const llvm::Function& function : module) {
    if (&function != entry && !function.isDeclaration() && !is_shared_function(function)) {
      return "function " + quoted(function.getName()) + " was not inlined";
    }
  }
  if (!entry->getReturnType()->isVoidTy()) return "the entry returns a value";
  if (entry->arg_size() != interface.arguments.size())
    return "the entry has other parameters than the interface";
  for (const llvm::Argument& argument : entry->args()) {
    const KernelArgument& described = interface.arguments[argument.getArgNo()];
    const unsigned expected = described.kind == KernelArgument::Kind::device ? address_space::device
                              : described.kind == KernelArgument::Kind::constant
                                  ? address_space::constant
                                  : address_space::threadgroup;
    if (!argument.getType()->isPointerTy() ||
        argument.getType()->getPointerAddressSpace() != expected) {
      return "parameter " + quoted(described.name) + " is not a pointer to its space";
    }
  }
  uint64_t private_bytes = 0;
  for (const llvm::Instruction& instruction : llvm::instructions(entry)) {
    if (std::string wrong = check_instruction(instruction); !wrong.empty()) return wrong;
    if (auto* memory = llvm::dyn_cast<llvm::AllocaInst>(&instruction)) {
      if (memory->getParent() != &entry->getEntryBlock() || !memory->isStaticAlloca()) {
        return "private arrays must have a constant size";
      }
      private_bytes +=
          module.getDataLayout().getTypeAllocSize(memory->getAllocatedType()).getFixedValue();
    }
  }
  if (private_bytes > most_private_bytes) {
    return "a thread has " + std::to_string(private_bytes) + " bytes of private arrays, at most " +
           std::to_string(most_private_bytes) + " are possible";
  }
  for (const llvm::GlobalVariable& global : module.globals()) {
    if (std::string wrong = check_global(global); !wrong.empty()) return wrong;
  }
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (llvm::verifyModule(module, &stream)) return "the IR is broken: " + stream.str();
  return {};
}

}  // namespace holdfast::msl
