#include "jit/kernel_testing.h"

#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

#include <stdexcept>

#include "devices/cpu/jit/compiler/service.h"
#include "msl/scalar_ir.h"

namespace holdfast::jit::testing {
namespace {

std::string ir_type(const std::string& type) {
  if (type == "void") return "void";
  if (type == "float") return "float";
  return type.find("64") != std::string::npos ? "i64" : "i32";
}

// "(uint32_t value, uint32_t lane)" as "(i32, i32)".
std::string ir_parameters(const std::string& text) {
  std::string result = "(";
  size_t at = 1;
  while (at < text.size() && text[at] != ')') {
    size_t end = text.find_first_of(",)", at);
    std::string one = text.substr(at, end - at);
    one.erase(0, one.find_first_not_of(' '));
    if (one.empty()) break;
    if (result.size() > 1) result += ", ";
    result += ir_type(one.substr(0, one.find(' ')));
    at = end + 1;
  }
  return result + ")";
}

}  // namespace

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets;
  for (InstructionSet set :
       {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
    if (machine::supports(set)) sets.push_back(set);
  }
  return sets;
}

std::string intrinsic_declarations() {
  std::string text;
#define X(name, result, parameters, behaviour)                                             \
  text += "declare " + ir_type(#result) + " @__hf_" #name + ir_parameters(#parameters) +   \
          (std::string(#behaviour) == "cross_lane" || std::string(#behaviour) == "barrier" \
               ? " convergent nounwind\n"                                                  \
               : " nounwind memory(none)\n");
#include "msl/intrinsics.def"
#undef X
  return text;
}

CompiledKernel compile_ir(const std::string& text, Lowering lowering, InstructionSet set) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  std::unique_ptr<llvm::Module> module =
      llvm::parseAssemblyString(text + intrinsic_declarations(), problem, context);
  if (!module) {
    std::string message;
    llvm::raw_string_ostream stream(message);
    problem.print("test", stream);
    throw std::runtime_error(message);
  }
  msl::KernelInterface interface;
  interface.entry = "kernel";
  for (llvm::Argument& argument : module->getFunction("kernel")->args()) {
    msl::KernelArgument one;
    one.name = argument.getName().str();
    one.slot = argument.getArgNo();
    one.kind = argument.getType()->getPointerAddressSpace() == msl::address_space::threadgroup
                   ? msl::KernelArgument::Kind::threadgroup
                   : msl::KernelArgument::Kind::device;
    interface.arguments.push_back(one);
  }
  CompileOptions options;
  options.lowering = lowering;
  options.instruction_set = set;
  if (const char* folder = std::getenv("HOLDFAST_DUMP_KERNELS")) options.dump_directory = folder;
  return compile_scalar_ir(std::move(module), interface, options, "kernel");
}

Ref<CpuPipeline> load_ir(const std::string& text, Lowering lowering, InstructionSet set) {
  return CpuPipeline::load("kernel", compile_ir(text, lowering, set));
}

void run(const CpuPipeline& pipeline, std::vector<void*> buffers, Size grid, Size threadgroup,
         std::vector<uint32_t> threadgroup_bytes, const std::vector<ArgumentRange>& ranges) {
  DispatchArguments arguments;
  arguments.buffers = buffers.data();
  if (!ranges.empty()) arguments.ranges = ranges.data();
  if (!threadgroup_bytes.empty()) arguments.threadgroup_bytes = threadgroup_bytes.data();
  for (int axis = 0; axis < 3; ++axis) {
    arguments.grid[axis] = grid[static_cast<size_t>(axis)];
    arguments.threadgroup[axis] = threadgroup[static_cast<size_t>(axis)];
  }
  check_dispatch(pipeline, arguments);
  begin_dispatch(arguments);
  run_groups(pipeline, arguments, 0, threadgroups(arguments));
}

}  // namespace holdfast::jit::testing
