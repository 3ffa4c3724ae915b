#include "msl/frontend/compiler_options.h"

#include <clang/Basic/TargetInfo.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Lex/HeaderSearchOptions.h>
#include <llvm/Support/raw_ostream.h>

#include <filesystem>

namespace holdfast::msl {

void set_up(clang::CompilerInstance& compiler, KernelFiles& files, Diagnostics& diagnostics) {
  static constexpr const char* options[] = {
      "-triple", "nvptx64-nvidia-cuda", "-aux-triple", "x86_64-unknown-linux-gnu",
      // The language.
      "-x", "c++", "-std=c++17", "-fsycl-is-device", "-ffake-address-space-map",
      "-ffloat16-excess-precision=none", "-fbfloat16-excess-precision=none", "-ffp-contract=off",
      "-fdeclspec", "-ffreestanding", "-fno-builtin", "-fno-rtti", "-fno-threadsafe-statics",
      "-fgnuc-version=4.2.1",
      // What C++ leaves undefined and kernels do: aliasing by casts, loops without an end, a
      // missing return.
      "-relaxed-aliasing", "-fno-finite-loops", "-fno-strict-return",
      // No file of this machine.
      "-nostdsysteminc", "-nobuiltininc", "-internal-isystem", include_folder,
      // Our passes run instead of clang's. Bounds for sources that do not end.
      "-O2", "-disable-llvm-passes", "-ftemplate-depth=512", "-fconstexpr-steps=1000000",
      "-ferror-limit", "50", "-w", "-fno-caret-diagnostics"};
  compiler.setVerboseOutputStream(std::make_unique<llvm::raw_null_ostream>());
  compiler.createDiagnostics(&diagnostics, false);
  clang::CompilerInvocation::CreateFromArgs(compiler.getInvocation(), options,
                                            compiler.getDiagnostics());
  // CreateFromArgs sets its own options for diagnostics: the engine was made before.
  compiler.getDiagnostics().setErrorLimit(50);
  compiler.getDiagnostics().setIgnoreAllWarnings(true);
  compiler.createFileManager(&files);
  compiler.createSourceManager(compiler.getFileManager());
}

void set_search_path(clang::CompilerInstance& compiler, const KernelSource& source) {
  if (source.directory.empty()) return;
  auto add = [&](const std::string& folder, clang::frontend::IncludeDirGroup group) {
    compiler.getHeaderSearchOpts().AddPath(
        std::filesystem::absolute(folder).lexically_normal().string(), group, false, true);
  };
  add(source.directory, clang::frontend::Quoted);
  for (const std::string& folder : source.include_directories) add(folder, clang::frontend::Angled);
}

std::string source_preamble(const KernelSource& source) {
  std::string text;
  if (source.math == MathMode::fast) text += "#define __FAST_MATH__ 1\n";
  if (source.math != MathMode::safe) {
    text += "#pragma clang fp reassociate(on) reciprocal(on)\n";
  }
  if (source.assume_missing_constants) {
    text +=
        "template<unsigned I>struct __hf_missing_constant<I,true>"
        "{static constexpr unsigned long bits(){return 0;}};\n";
  }
  for (const FunctionConstant& constant : source.constants) {
    text += "template<>struct __hf_function_constant_value<" + std::to_string(constant.index) +
            ">{static constexpr bool defined=true;static constexpr unsigned long bits[]={";
    for (uint64_t word : constant.bits) text += std::to_string(word) + "ul,";
    text += "};};\n";
  }
  return text;
}

}  // namespace holdfast::msl
