#include "devices/cpu/jit/compiler/service.h"

#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <mutex>
#include <stdexcept>

#include <holdfast_jit_version.h>

#include "devices/cpu/jit/compiler/codegen.h"
#include "devices/cpu/jit/compiler/dump.h"
#include "devices/cpu/jit/compiler/guard_accesses.h"
#include "devices/cpu/jit/compiler/instrument.h"
#include "devices/cpu/jit/compiler/outside_sites.h"
#include "devices/cpu/jit/compiler/reference.h"
#include "devices/cpu/jit/compiler/remarks.h"
#include "devices/cpu/jit/compiler/source_lines.h"
#include "devices/cpu/jit/compiler/widen/expand_math.h"
#include "devices/cpu/jit/compiler/widen/float_minimum.h"
#include "devices/cpu/jit/compiler/widen/permutes.h"
#include "devices/cpu/jit/compiler/widen/powers_of_two.h"
#include "devices/cpu/jit/compiler/widen/widen.h"
#include "devices/cuda/compiler/ptx.h"
#include "msl/frontend/frontend.h"
#include "msl/frontend/guard.h"
#include "msl/frontend/inline_calls.h"
#include "msl/frontend/threadgroup_races.h"

namespace holdfast::jit {
namespace {

// Making one takes a while, and two compilations cannot share one: those that are not in use.
class Machines {
 public:
  std::unique_ptr<llvm::TargetMachine> take(InstructionSet set) {
    std::vector<std::unique_ptr<llvm::TargetMachine>>& free = free_[static_cast<size_t>(set)];
    std::lock_guard lock(mutex_);
    if (free.empty()) return make_target_machine(set);
    std::unique_ptr<llvm::TargetMachine> machine = std::move(free.back());
    free.pop_back();
    return machine;
  }
  void give_back(InstructionSet set, std::unique_ptr<llvm::TargetMachine> machine) {
    std::lock_guard lock(mutex_);
    free_[static_cast<size_t>(set)].push_back(std::move(machine));
  }

 private:
  std::mutex mutex_;
  std::array<std::vector<std::unique_ptr<llvm::TargetMachine>>, 3> free_;
};
Machines& machines() {
  static auto* instance = new Machines;
  return *instance;
}

// The kernel of a scalar module: the others are shared functions.
llvm::Function& kernel_of(llvm::Module& module) {
  llvm::Function* found = nullptr;
  for (llvm::Function& function : module) {
    if (function.isDeclaration() || msl::is_shared_function(function)) continue;
    if (found) throw std::logic_error("[jit] the front-end left more than one function");
    found = &function;
  }
  if (!found) throw std::logic_error("[jit] the front-end left no function");
  return *found;
}

// "body:3:7": where the user wrote it.
std::string place_in(const msl::KernelSource& source, const llvm::Instruction& instruction) {
  const llvm::DILocation* place = place_of(instruction.getDebugLoc());
  if (!place) return "an unknown line";
  const SourceLine line = source_line(&source, place->getLine());
  return (line.part.empty() ? "line " : line.part + ":") + std::to_string(line.line) + ":" +
         std::to_string(place->getColumn());
}

// A barrier that seems to be missing, in a sentence (CompiledKernel::race).
std::string race_in(llvm::Module& module, const msl::KernelInterface& interface,
                    std::array<uint32_t, 3> threadgroup, const msl::KernelSource& source) {
  if (threadgroup[0] == 0) threadgroup = {std::min(256u, interface.max_threads), 1, 1};
  std::optional<msl::ThreadgroupRace> race =
      msl::find_threadgroup_race(kernel_of(module), threadgroup);
  if (!race) return "";
  auto verb = [](bool writes) { return std::string(writes ? "write" : "read"); };
  auto* argument = llvm::dyn_cast<llvm::Argument>(race->variable);
  const std::string variable = argument ? interface.arguments[argument->getArgNo()].name
                                        : variable_name(race->variable->getName());
  return "threads " + verb(race->second_writes) + " \"" + variable + "\" at " +
         place_in(source, *race->second) + " which others " + verb(race->first_writes) + " at " +
         place_in(source, *race->first) +
         ", with no threadgroup_barrier between them: results may differ from run to run";
}

// LLVM crashes on a module that is not sound; looking takes little time.
void verify(const llvm::Module& module, const char* after) {
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream))
    throw std::logic_error(std::string("broken module after ") + after + ": " +
                           problem.substr(0, problem.find('\n')));
}

void erase_unused(llvm::Module& module) {
  for (llvm::Function& function : llvm::make_early_inc_range(module)) {
    if (msl::is_shared_function(function) && function.use_empty()) function.eraseFromParent();
  }
  for (llvm::GlobalVariable& global : llvm::make_early_inc_range(module.globals())) {
    global.removeDeadConstantUsers();
    if (global.use_empty()) global.eraseFromParent();
  }
}

// How long each step took, in processor time of this thread, and how much it left for the next: a
// part of the dump.
class Steps {
 public:
  void done(const char* step, const llvm::Module& module) {
    char line[120];
    std::snprintf(line, sizeof(line), "%8.2f ms  %s: %u instructions\n", (clock() - last_) * 1e3,
                  step, module.getInstructionCount());
    text_ += line;
    skip();
  }
  // What was done since is no step of the compilation.
  void skip() { last_ = clock(); }
  const std::string& text() const { return text_; }

 private:
  static double clock() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }
  double last_ = clock();
  std::string text_;
};

// One compilation, from scalar IR on.
class Job {
 public:
  Job(const msl::KernelInterface& interface, const CompileOptions& options, const std::string& name,
      const Dump& dump, Steps& steps, const msl::KernelSource* source)
      : interface_(interface),
        options_(options),
        name_(name),
        dump_(dump),
        owned_machine_(machines().take(options.instruction_set)),
        machine_(*owned_machine_),
        steps_(steps),
        source_(source) {}
  ~Job() { machines().give_back(options_.instruction_set, std::move(owned_machine_)); }

  CompiledKernel run(std::unique_ptr<llvm::Module> module) {
    set_target(*module, machine_);
    if (dump_) {
      std::unique_ptr<llvm::Module> plain = llvm::CloneModule(*module);
      llvm::StripDebugInfo(*plain);
      dump_.module("scalar.ll", *plain);
      steps_.skip();
    }
    verify(*module, "the front-end");
    for (llvm::Function& function : *module) {
      if (function.isDeclaration()) continue;
      define_arithmetic(function);
      expand_math(function, options_.instruction_set);
    }
    CompiledKernel kernel;
    kernel.interface = interface_;
    if (options_.lowering == Lowering::checked) {
      kernel.has_fences = instrument(kernel_of(*module), interface_, source_);
      to_reference(std::move(module), kernel);
      kernel.lowering = Lowering::checked;
    } else if (options_.lowering == Lowering::reference) {
      to_reference(std::move(module), kernel);
    } else {
      to_widened(std::move(module), kernel);
    }
    kernel.interface.threadgroup_bytes = kernel.threadgroup_bytes;
    if (dump_) {
      dump_.text("remarks", (kernel.remark.empty() ? "" : "not widened: " + kernel.remark + "\n") +
                                remarks_ + steps_.text());
    }
    return kernel;
  }

 private:
  void to_reference(std::unique_ptr<llvm::Module> module, CompiledKernel& kernel) {
    kernel.lowering = Lowering::reference;
    msl::inline_shared_functions(*module);
    if (options_.guarded && options_.lowering != Lowering::checked)
      guard_accesses(kernel_of(*module), {interface_, source_});
    llvm::StripDebugInfo(*module);
    bool parks = false;
    kernel.symbol =
        lower_to_thread(kernel_of(*module), kernel.threadgroup_bytes, &parks)->getName().str();
    set_target(*module, machine_);
    steps_.done("one thread at a time", *module);
    verify(*module, "the reference lowering");
    uint32_t stack = emit(*module, kernel);
    kernel.register_bytes = parks ? stack : 0;
  }

  void to_widened(std::unique_ptr<llvm::Module> module, CompiledKernel& kernel) {
    std::unique_ptr<llvm::Module> untouched = llvm::CloneModule(*module);
    std::string declined;
    try {
      declined = try_to_widen(*module, kernel);
    } catch (const std::logic_error& error) {
      // A bug of ours must not keep a kernel from running.
      declined = std::string("internal error: ") + error.what();
    }
    if (declined.empty()) return;
    if (options_.lowering == Lowering::widened)
      throw CompileError("[" + name_ + "] cannot be widened: " + declined);
    kernel = {};
    kernel.interface = interface_;
    to_reference(std::move(untouched), kernel);
    kernel.remark = declined;
  }

  // Why not; empty when it was widened.
  std::string try_to_widen(llvm::Module& module, CompiledKernel& kernel) {
    llvm::Function& scalar = kernel_of(module);
    const GuardedKernel guarded{interface_, source_};
    WidenResult result = widen(scalar, options_.instruction_set, static_cast<bool>(dump_),
                               options_.guarded ? &guarded : nullptr);
    steps_.done("widening", module);
    llvm::StripDebugInfo(module);
    if (dump_) remarks_ = in_source_order(result.remarks, source_);
    if (!result.group) return result.declined;
    kernel.lowering = Lowering::widened;
    kernel.symbol = result.group->getName().str();
    kernel.frame_bytes = result.frame_bytes;
    kernel.threadgroup_bytes = result.threadgroup_bytes;
    scalar.eraseFromParent();
    erase_unused(module);
    set_target(module, machine_);
    verify(module, "widening");
    emit(module, kernel);
    return "";
  }

  // Returns the stack that the code needs, at least 1.
  uint32_t emit(llvm::Module& module, CompiledKernel& kernel) {
    const char* lowered = kernel.lowering == Lowering::reference ? "reference.ll" : "widened.ll";
    if (dump_) {
      dump_.module(lowered, module);
      steps_.skip();
    }
    optimise(module, machine_);
    // The optimiser finds its way back to half precision, and the back-end from there to libraries.
    for (llvm::Function& function : module) {
      if (function.isDeclaration()) continue;
      expand_math(function, options_.instruction_set);
      expand_powers_of_two(function, options_.instruction_set);
      form_float_minimum(function);
      simplify_permutes(function);
    }
    steps_.done("optimising", module);
    if (dump_) {
      dump_.module((std::string("optimised.") + lowered).c_str(), module);
      dump_.text("s", assembly_of(module, machine_));
      steps_.skip();
    }
    ObjectCode code = emit_object(module, machine_);
    steps_.done("code generation", module);
    kernel.object = std::move(code.bytes);
    return std::max<uint32_t>(code.stack_bytes, 1);
  }

  const msl::KernelInterface& interface_;
  const CompileOptions& options_;
  const std::string& name_;
  const Dump& dump_;
  std::unique_ptr<llvm::TargetMachine> owned_machine_;
  llvm::TargetMachine& machine_;
  Steps& steps_;
  const msl::KernelSource* source_;  // null: IR from elsewhere
  std::string remarks_;
};

// Compiles a kernel of `source` whose scalar IR is what `read` gives.
template <typename Read>
CompiledKernel compile_kernel(const msl::KernelSource& source, const CompileOptions& options,
                              Read read) {
  char identity[20];
  std::snprintf(identity, sizeof(identity), "%08zx",
                std::hash<std::string>()(source.text) & 0xffffffff);
  Dump dump(options.dump_directory, source.kernel,
            std::string(identity) + "." + instruction_set_name(options.instruction_set));
  dump.text("metal", source.text);
  Steps steps;
  llvm::LLVMContext context;
  msl::KernelInterface interface;
  std::unique_ptr<llvm::Module> module =
      read(context, interface,
           options.lowering == Lowering::checked ? msl::ScalarForm::as_written
                                                 : msl::ScalarForm::with_lines);
  steps.done("the front-end", *module);
  std::string race;
  if (options.lowering != Lowering::checked) {
    race = race_in(*module, interface, options.threadgroup, source);
    steps.done("the look for missing barriers", *module);
  }
  CompiledKernel kernel =
      Job(interface, options, source.kernel, dump, steps, &source).run(std::move(module));
  kernel.race = std::move(race);
  return kernel;
}

class Parsed final : public ParsedKernels {
 public:
  explicit Parsed(msl::KernelSource source) : source_(std::move(source)), parsed_(source_) {}

  const std::vector<msl::KernelInterface>& kernels() const override { return parsed_.kernels(); }
  std::string identity(size_t number) const override { return parsed_.identity(number); }

  CompiledKernel compile(size_t number, const CompileOptions& options) const override {
    CompiledKernel kernel;
    msl::run_guarded([&] {
      msl::KernelSource source = source_;
      source.kernel = source.entry = kernels()[number].entry;
      kernel = compile_kernel(source, options, [&](auto& context, auto& interface, auto form) {
        return parsed_.to_scalar_ir(number, context, interface, form);
      });
    });
    return kernel;
  }

  std::vector<cuda::PtxKernel> compile_to_ptx(
      size_t number, const std::vector<cuda::PtxOptions>& options) const override {
    std::vector<cuda::PtxKernel> kernels;
    msl::run_guarded([&] {
      llvm::LLVMContext context;
      msl::KernelInterface interface;
      std::unique_ptr<llvm::Module> module = parsed_.to_scalar_ir(
          number, context, interface, msl::ScalarForm::optimised, cuda::traits_of(options.at(0)));
      kernels = cuda::compile_to_ptx(*module, interface, options);
    });
    return kernels;
  }

 private:
  const msl::KernelSource source_;
  const msl::ParsedSource parsed_;
};

class Service final : public Compiler {
 public:
  const std::string& version() const override {
    static const std::string text = HOLDFAST_JIT_VERSION;
    return text;
  }

  std::vector<msl::KernelInterface> list(const msl::KernelSource& source) override {
    return msl::list_kernels(source);
  }

  CompiledKernel compile(const msl::KernelSource& source, const CompileOptions& options) override {
    CompiledKernel kernel;
    // All that the compilation owns is on the guarded thread: when LLVM gives up, it stays there.
    msl::run_guarded([&] {
      kernel = compile_kernel(source, options, [&](auto& context, auto& interface, auto form) {
        return msl::to_scalar_ir(source, context, interface, form);
      });
    });
    return kernel;
  }

  std::vector<cuda::PtxKernel> compile_to_ptx(
      const msl::KernelSource& source, const std::vector<cuda::PtxOptions>& options) override {
    return cuda::compile_to_ptx(source, options);
  }

  std::unique_ptr<const ParsedKernels> parse(const msl::KernelSource& source) override {
    msl::KernelSource all = source;
    all.assume_missing_constants = true;
    return std::make_unique<Parsed>(std::move(all));
  }
};

}  // namespace

CompiledKernel compile_scalar_ir(std::unique_ptr<llvm::Module> module,
                                 const msl::KernelInterface& interface,
                                 const CompileOptions& options, const std::string& name) {
  Dump dump(options.dump_directory, name, instruction_set_name(options.instruction_set));
  Steps steps;
  return Job(interface, options, name, dump, steps, nullptr).run(std::move(module));
}

Compiler& service() {
  static auto* instance = new Service;
  return *instance;
}

}  // namespace holdfast::jit

__attribute__((visibility("default"))) holdfast::jit::Compiler* holdfast_jit_compiler(
    const char* version) {
  holdfast::jit::Compiler& service = holdfast::jit::service();
  return service.version() == version ? &service : nullptr;
}
