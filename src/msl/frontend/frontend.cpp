#include "msl/frontend/frontend.h"

#include <clang/CodeGen/ModuleBuilder.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendAction.h>
#include <clang/Frontend/MultiplexConsumer.h>
#include <clang/Lex/PreprocessorOptions.h>
#include <holdfast_jit_version.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SHA256.h>
#include <llvm/Support/raw_ostream.h>

#include <set>
#include <stdexcept>

#include "msl/frontend/compiler_options.h"
#include "msl/frontend/entries.h"
#include "msl/frontend/guard.h"
#include "msl/frontend/limits.h"
#include "msl/frontend/missing_constants.h"
#include "msl/frontend/prelude.h"
#include "msl/frontend/scalar_pipeline.h"

namespace holdfast::msl {
namespace {

constexpr uint32_t most_threadgroup_bytes = 32768;

// Ends the parsing once no more errors are reported: clang would go on, in a time that grows with
// the square of what was declared wrongly.
class EndAfterLastError : public clang::ASTConsumer {
 public:
  explicit EndAfterLastError(const clang::DiagnosticsEngine& diagnostics)
      : diagnostics_(diagnostics) {}
  bool HandleTopLevelDecl(clang::DeclGroupRef) override {
    return !diagnostics_.hasFatalErrorOccurred();
  }

 private:
  const clang::DiagnosticsEngine& diagnostics_;
};

// Parses a source; with an LLVM context it emits code as well.
class ParseKernels : public clang::ASTFrontendAction {
 public:
  ParseKernels(llvm::LLVMContext* context, Wrappers wrappers, const AttributeTable& attributes,
               Diagnostics& diagnostics, const KernelSource& source, KernelFiles& files)
      : context_(context),
        wrappers_(wrappers),
        attributes_(attributes),
        diagnostics_(diagnostics),
        source_(source),
        files_(files) {}

  std::unique_ptr<llvm::Module> take_module() { return std::move(module_); }
  const EntryBuilder* entries() const { return entries_.get(); }
  // Of each kernel that has a wrapper, what its interface says and the constants that it assumes.
  std::vector<KernelInterface> take_interfaces() { return std::move(interfaces_); }

 protected:
  bool BeginSourceFileAction(clang::CompilerInstance& compiler) override {
    entries_ =
        std::make_unique<EntryBuilder>(compiler, attributes_, diagnostics_, source_, wrappers_);
    entries_->install();
    limit_preprocessor(compiler, diagnostics_);
    return true;
  }
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler,
                                                        llvm::StringRef) override {
    std::vector<std::unique_ptr<clang::ASTConsumer>> consumers;
    consumers.push_back(std::make_unique<EndAfterLastError>(compiler.getDiagnostics()));
    if (context_ == nullptr) return std::move(consumers[0]);
    auto* generator = clang::CreateLLVMCodeGen(
        compiler.getDiagnostics(), source_.kernel, &compiler.getVirtualFileSystem(),
        compiler.getHeaderSearchOpts(), compiler.getPreprocessorOpts(), compiler.getCodeGenOpts(),
        *context_);
    generator_ = generator;
    consumers.emplace_back(generator);
    return std::make_unique<clang::MultiplexConsumer>(std::move(consumers));
  }
  void ExecuteAction() override {
    // The precompiled prelude is loaded: no #include may read it as text.
    files_.set_precompiled({});
    clang::CompilerInstance& compiler = getCompilerInstance();
    if (!compiler.hasSema()) compiler.createSema(getTranslationUnitKind(), nullptr);
    limit_templates(compiler.getSema(), diagnostics_);
    ASTFrontendAction::ExecuteAction();
  }
  void EndSourceFileAction() override {
    // The last moment at which clang's tree is there, and templates are instantiated by now.
    if (entries_ != nullptr && !getCompilerInstance().getDiagnostics().hasErrorOccurred()) {
      if (wrappers_ == Wrappers::selected && entries_->selected() != nullptr)
        add_interface(*entries_->selected());
      if (wrappers_ == Wrappers::every) {
        for (const Kernel& kernel : entries_->kernels()) add_interface(kernel);
      }
    }
    if (generator_ != nullptr) module_.reset(generator_->ReleaseModule());
  }

 private:
  void add_interface(const Kernel& kernel) {
    KernelInterface& interface = interfaces_.emplace_back(kernel.interface);
    if (source_.assume_missing_constants)
      interface.assumed_constants = missing_constants_of(*kernel.function, source_);
  }

  llvm::LLVMContext* context_;
  const Wrappers wrappers_;
  const AttributeTable& attributes_;
  Diagnostics& diagnostics_;
  const KernelSource& source_;
  KernelFiles& files_;
  std::unique_ptr<EntryBuilder> entries_;
  clang::CodeGenerator* generator_ = nullptr;
  std::unique_ptr<llvm::Module> module_;
  std::vector<KernelInterface> interfaces_;
};

[[noreturn]] void fail(const std::string& kernel, const std::string& message) {
  throw CompileError("[" + kernel + "] " + message);
}

// Runs clang over `source`. `use` gets what came of it, while clang still lives. False when clang
// refused casts and choices that __hf_meet makes possible: `met` has gained their operands for
// another try.
template <typename Use>
bool try_parse(const KernelSource& source, llvm::LLVMContext* context, Wrappers wrappers,
               bool with_lines, CastOperands& met, Use use) {
  RewrittenText main = rewrite_tokens(source.text, source.constants, met[""]);
  llvm::IntrusiveRefCntPtr<KernelFiles> files(new KernelFiles(source, met));
  Diagnostics diagnostics(source, main, *files);
  AttributeTable attributes;
  AttributeScope scope(attributes);

  const Prelude prelude = prelude_of(source.text);
  const llvm::MemoryBufferRef precompiled = precompiled_prelude(prelude);
  std::string preamble = source_preamble(source);
  if (precompiled.getBufferSize() == 0) {
    preamble = std::string("#include <") + prelude_header(prelude) + ">\n" + preamble;
  }
  if (with_lines) preamble += "#line 1\n";
  const std::string text = preamble + main.text + entries_pragma;
  // Positions count from the start of the user's text.
  for (RewrittenText::Stretch& stretch : main.stretches) stretch.at += preamble.size();
  main.stretches.insert(main.stretches.begin(), {0, 0, false});

  clang::CompilerInstance compiler;
  set_up(compiler, *files, diagnostics);
  set_search_path(compiler, source);
  if (with_lines) compiler.getCodeGenOpts().setDebugInfo(llvm::codegenoptions::LocTrackingOnly);
  if (precompiled.getBufferSize() > 0) {
    files->set_precompiled(precompiled);
    compiler.getPreprocessorOpts().ImplicitPCHInclude = precompiled_file;
    // It belongs to this build: its trailer was compared.
    compiler.getPreprocessorOpts().DisablePCHOrModuleValidation =
        clang::DisableValidationForModuleKind::All;
  }
  const auto buffer = llvm::MemoryBuffer::getMemBuffer(text, source_file);
  compiler.getFrontendOpts().Inputs = {
      clang::FrontendInputFile(buffer->getMemBufferRef(), clang::InputKind(clang::Language::CXX))};
  ParseKernels action(context, wrappers, attributes, diagnostics, source, *files);
  const bool succeeded = compiler.ExecuteAction(action);
  if (diagnostics.add_operands(met)) return false;
  if (diagnostics.has_errors()) throw CompileError(diagnostics.text());
  if (!succeeded || action.entries() == nullptr || !action.entries()->was_reached()) {
    fail(source.kernel, "error: clang could not read the source");
  }
  use(action);
  return true;
}

template <typename Use>
void parse(const KernelSource& source, llvm::LLVMContext* context, Wrappers wrappers,
           bool with_lines, Use use) {
  CastOperands met;
  while (!try_parse(source, context, wrappers, with_lines, met, use)) {
  }
}

// What clang emitted, as scalar IR.
void make_scalar(llvm::Module& module, const std::string& kernel, const std::string& symbol,
                 MathMode math, ScalarForm form, const LoweringTraits& traits,
                 KernelInterface& interface) {
  const std::string problem = make_scalar(module, symbol.c_str(), math, form, traits, interface);
  if (!problem.empty()) fail(kernel, "error: " + problem);
  if (interface.threadgroup_bytes > most_threadgroup_bytes) {
    fail(kernel, "error: threadgroup variables take " +
                     std::to_string(interface.threadgroup_bytes) + " bytes, at most " +
                     std::to_string(most_threadgroup_bytes) + " are possible");
  }
}

// The function `symbol` of the module `bitcode` and all that it refers to; what else there is, is
// not even read.
std::unique_ptr<llvm::Module> extract(const std::string& bitcode, const std::string& symbol,
                                      llvm::LLVMContext& context) {
  auto check = [](llvm::Error error) {
    if (error) throw std::logic_error("[jit] " + llvm::toString(std::move(error)));
  };
  auto read = llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(bitcode, symbol), context);
  check(read ? llvm::Error::success() : read.takeError());
  std::unique_ptr<llvm::Module> module = std::move(*read);
  std::vector<llvm::Function*> open;
  if (llvm::Function* entry = module->getFunction(symbol)) open.push_back(entry);
  std::set<const llvm::Value*> seen(open.begin(), open.end());
  std::vector<const llvm::User*> users;
  auto refer = [&](const llvm::Value* value) {
    auto* user = llvm::dyn_cast<llvm::Constant>(value);
    if (user == nullptr || !seen.insert(user).second) return;
    if (auto* function = llvm::dyn_cast<llvm::Function>(user)) {
      open.push_back(const_cast<llvm::Function*>(function));
    } else {
      users.push_back(user);
    }
  };
  for (const llvm::GlobalVariable& global : module->globals()) refer(&global);
  while (!open.empty() || !users.empty()) {
    if (!users.empty()) {
      const llvm::User* user = users.back();
      users.pop_back();
      for (const llvm::Use& use : user->operands()) refer(use);
      continue;
    }
    llvm::Function* function = open.back();
    open.pop_back();
    check(function->materialize());
    for (const llvm::Instruction& instruction : llvm::instructions(*function)) {
      for (const llvm::Use& use : instruction.operands()) refer(use);
    }
  }
  for (llvm::Function& function : *module) {
    if (!function.isMaterializable()) continue;
    function.deleteBody();
    function.setComdat(nullptr);
  }
  check(module->materializeAll());
  for (llvm::Function& function : llvm::make_early_inc_range(*module)) {
    if (function.isDeclaration() && function.use_empty()) function.eraseFromParent();
  }
  // Tables of other kernels, which may refer to each other.
  for (bool is_done = false; !is_done;) {
    is_done = true;
    for (llvm::GlobalVariable& global : llvm::make_early_inc_range(module->globals())) {
      global.removeDeadConstantUsers();
      if (!global.use_empty() || global.getName().starts_with("llvm.")) continue;
      global.eraseFromParent();
      is_done = false;
    }
  }
  return module;
}

}  // namespace

std::unique_ptr<llvm::Module> to_scalar_ir(const KernelSource& source, llvm::LLVMContext& context,
                                           KernelInterface& result, ScalarForm form,
                                           const LoweringTraits& traits) {
  std::unique_ptr<llvm::Module> module;
  run_guarded([&] {
    parse(source, &context, Wrappers::selected, form != ScalarForm::optimised,
          [&](ParseKernels& action) {
            std::vector<KernelInterface> interfaces = action.take_interfaces();
            if (interfaces.empty())
              fail(source.kernel, "error: " + action.entries()->missing_kernel());
            result = std::move(interfaces[0]);
            module = action.take_module();
          });
    if (module == nullptr) fail(source.kernel, "error: clang made no code");
    make_scalar(*module, source.kernel, entry_symbol, source.math, form, traits, result);
  });
  return module;
}

ParsedSource::ParsedSource(const KernelSource& source) : name_(source.kernel), math_(source.math) {
  run_guarded([&] {
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> module;
    parse(source, &context, Wrappers::every, true, [&](ParseKernels& action) {
      kernels_ = action.take_interfaces();
      module = action.take_module();
    });
    if (module == nullptr) fail(name_, "error: clang made no code");
    llvm::raw_string_ostream stream(bitcode_);
    // Predecessors of blocks are in the order of uses, and passes go by it: a kernel is compiled to
    // the same code as by itself.
    llvm::WriteBitcodeToFile(*module, stream, /*ShouldPreserveUseListOrder=*/true);
  });
}

ParsedSource::~ParsedSource() = default;

std::unique_ptr<llvm::Module> ParsedSource::to_scalar_ir(size_t number, llvm::LLVMContext& context,
                                                         KernelInterface& result, ScalarForm form,
                                                         const LoweringTraits& traits) const {
  std::unique_ptr<llvm::Module> module;
  run_guarded([&] {
    const std::string symbol = entry_symbol + std::to_string(number);
    module = extract(bitcode_, symbol, context);
    module->setSourceFileName(kernels_[number].entry);  // a part of objects
    if (form == ScalarForm::optimised) llvm::StripDebugInfo(*module);
    result = kernels_[number];
    make_scalar(*module, result.entry, symbol, math_, form, traits, result);
  });
  return module;
}

std::string ParsedSource::identity(size_t number) const {
  std::string digest;
  run_guarded([&] {
    llvm::LLVMContext context;
    const std::string symbol = entry_symbol + std::to_string(number);
    std::unique_ptr<llvm::Module> module = extract(bitcode_, symbol, context);
    module->getFunction(symbol)->setName(entry_symbol);
    module->setSourceFileName("");
    llvm::StripDebugInfo(*module);
    std::string text(1, static_cast<char>(math_));
    llvm::raw_string_ostream stream(text);
    llvm::WriteBitcodeToFile(*module, stream, /*ShouldPreserveUseListOrder=*/true);
    digest = llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)));
  });
  return digest;
}

std::vector<KernelInterface> list_kernels(const KernelSource& source) {
  std::vector<KernelInterface> result;
  run_guarded([&] {
    parse(source, nullptr, Wrappers::none, false, [&](ParseKernels& action) {
      for (const Kernel& kernel : action.entries()->kernels()) result.push_back(kernel.interface);
    });
  });
  return result;
}

const std::string& frontend_version() {
  static const std::string version = HOLDFAST_JIT_VERSION;
  return version;
}

}  // namespace holdfast::msl
