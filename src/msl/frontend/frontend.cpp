#include "msl/frontend/frontend.h"

#include <clang/CodeGen/ModuleBuilder.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendAction.h>
#include <clang/Frontend/MultiplexConsumer.h>
#include <clang/Lex/PreprocessorOptions.h>
#include <holdfast_jit_version.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

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
  ParseKernels(llvm::LLVMContext* context, const AttributeTable& attributes,
               Diagnostics& diagnostics, const KernelSource& source, KernelFiles& files)
      : context_(context),
        attributes_(attributes),
        diagnostics_(diagnostics),
        source_(source),
        files_(files) {}

  std::unique_ptr<llvm::Module> take_module() { return std::move(module_); }
  const EntryBuilder* entries() const { return entries_.get(); }
  const std::vector<std::string>& assumed_constants() const { return assumed_constants_; }

 protected:
  bool BeginSourceFileAction(clang::CompilerInstance& compiler) override {
    entries_ = std::make_unique<EntryBuilder>(compiler, attributes_, diagnostics_, source_,
                                              context_ != nullptr);
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
    const Kernel* kernel = entries_ != nullptr ? entries_->selected() : nullptr;
    if (kernel != nullptr && source_.assume_missing_constants &&
        !getCompilerInstance().getDiagnostics().hasErrorOccurred()) {
      assumed_constants_ = missing_constants_of(*kernel->function, source_);
    }
    if (generator_ != nullptr) module_.reset(generator_->ReleaseModule());
  }

 private:
  llvm::LLVMContext* context_;
  const AttributeTable& attributes_;
  Diagnostics& diagnostics_;
  const KernelSource& source_;
  KernelFiles& files_;
  std::unique_ptr<EntryBuilder> entries_;
  clang::CodeGenerator* generator_ = nullptr;
  std::unique_ptr<llvm::Module> module_;
  std::vector<std::string> assumed_constants_;
};

[[noreturn]] void fail(const KernelSource& source, const std::string& message) {
  throw CompileError("[" + source.kernel + "] " + message);
}

// Runs clang over `source`. `use` gets what came of it, while clang still lives. False when clang
// refused casts that may go through float: `met` has gained their operands for another try.
template <typename Use>
bool try_parse(const KernelSource& source, llvm::LLVMContext* context, bool with_lines,
               CastOperands& met, Use use) {
  RewrittenText main = rewrite_tokens(source.text, source.constants, met[""]);
  llvm::IntrusiveRefCntPtr<KernelFiles> files(
      new KernelFiles(source.directory, source.constants, met));
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
  ParseKernels action(context, attributes, diagnostics, source, *files);
  const bool succeeded = compiler.ExecuteAction(action);
  if (diagnostics.add_operands(met)) return false;
  if (diagnostics.has_errors()) throw CompileError(diagnostics.text());
  if (!succeeded || action.entries() == nullptr || !action.entries()->was_reached()) {
    fail(source, "error: clang could not read the source");
  }
  use(action);
  return true;
}

template <typename Use>
void parse(const KernelSource& source, llvm::LLVMContext* context, bool with_lines, Use use) {
  CastOperands met;
  while (!try_parse(source, context, with_lines, met, use)) {
  }
}

}  // namespace

std::unique_ptr<llvm::Module> to_scalar_ir(const KernelSource& source, llvm::LLVMContext& context,
                                           KernelInterface& result, ScalarForm form,
                                           const LoweringTraits& traits) {
  std::unique_ptr<llvm::Module> module;
  run_guarded([&] {
    parse(source, &context, form != ScalarForm::optimised, [&](ParseKernels& action) {
      const Kernel* kernel = action.entries()->selected();
      if (kernel == nullptr) fail(source, "error: " + action.entries()->missing_kernel());
      result = kernel->interface;
      result.assumed_constants = action.assumed_constants();
      module = action.take_module();
    });
    if (module == nullptr) fail(source, "error: clang made no code");
    const std::string problem =
        make_scalar(*module, entry_symbol, source.math, form, traits, result);
    if (!problem.empty()) fail(source, "error: " + problem);
    if (result.threadgroup_bytes > most_threadgroup_bytes) {
      fail(source, "error: threadgroup variables take " + std::to_string(result.threadgroup_bytes) +
                       " bytes, at most " + std::to_string(most_threadgroup_bytes) +
                       " are possible");
    }
  });
  return module;
}

std::vector<KernelInterface> list_kernels(const KernelSource& source) {
  std::vector<KernelInterface> result;
  run_guarded([&] {
    parse(source, nullptr, false, [&](ParseKernels& action) {
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
