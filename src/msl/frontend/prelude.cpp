#include "msl/frontend/prelude.h"

#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendActions.h>
#include <clang/Lex/HeaderSearch.h>
#include <clang/Lex/Preprocessor.h>
#include <clang/Sema/Sema.h>
#include <clang/Serialization/ASTWriter.h>
#include <clang/Serialization/PCHContainerOperations.h>
#include <dlfcn.h>
#include <llvm/Support/MemoryBuffer.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <system_error>

#include "msl/frontend/compiler_options.h"
#include "msl/frontend/frontend.h"
#include "msl/frontend/guard.h"

namespace holdfast::msl {
namespace {

// A file is the bytes that clang wrote and the version of the front-end that they belong to.
struct Trailer {
  uint64_t size = 0;
  char version[120] = {};
  char magic[8] = {'h', 'f', 'p', 'r', 'e', 'l', '0', '1'};
};

Trailer make_trailer(size_t size) {
  Trailer trailer;
  trailer.size = size;
  const std::string& version = frontend_version();
  std::memcpy(trailer.version, version.data(), std::min(version.size(), sizeof trailer.version));
  return trailer;
}

const char* file_name(Prelude prelude) {
  return prelude == Prelude::custom_kernel ? "holdfast-custom-kernel.pch"
                                           : "holdfast-metal-file.pch";
}

// The way to a private member of Sema that C++ leaves open: an explicit instantiation may name it.
template <auto member>
struct Reach {
  friend auto& deferred_checks(clang::Sema& sema) { return sema.*member; }
};
template struct Reach<&clang::Sema::DeclsToCheckForDeferredDiags>;
auto& deferred_checks(clang::Sema& sema);

// Writes what clang has read. SYCL mode notes every function for a check at the end of the
// translation unit; loading all of them again for each kernel would cost more than the kernel.
class PreludeWriter : public clang::PCHGenerator {
 public:
  using PCHGenerator::PCHGenerator;
  void InitializeSema(clang::Sema& sema) override {
    sema_ = &sema;
    PCHGenerator::InitializeSema(sema);
  }
  void HandleTranslationUnit(clang::ASTContext& context) override {
    deferred_checks(*sema_).clear();
    PCHGenerator::HandleTranslationUnit(context);
  }

 private:
  clang::Sema* sema_ = nullptr;
};

class MakePrelude : public clang::ASTFrontendAction {
 public:
  std::shared_ptr<clang::PCHBuffer> buffer = std::make_shared<clang::PCHBuffer>();

 protected:
  clang::TranslationUnitKind getTranslationUnitKind() override { return clang::TU_Prefix; }
  bool hasASTFileSupport() const override { return false; }
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler,
                                                        llvm::StringRef) override {
    return std::make_unique<PreludeWriter>(
        compiler.getPreprocessor(), compiler.getModuleCache(), precompiled_file, "", buffer,
        llvm::ArrayRef<std::shared_ptr<clang::ModuleFileExtension>>(), false, false);
  }
};

std::string make(Prelude prelude) {
  std::string result;
  run_guarded([&] {
    KernelSource source;
    source.kernel = prelude_header(prelude);
    source.text = std::string("#include <") + prelude_header(prelude) + ">\n";
    const RewrittenText main;
    const CastOperands met;
    llvm::IntrusiveRefCntPtr<KernelFiles> files(new KernelFiles(source, met));
    Diagnostics diagnostics(source, main, *files);
    clang::CompilerInstance compiler;
    set_up(compiler, *files, diagnostics);
    compiler.getLangOpts().PCHInstantiateTemplates = true;
    const auto buffer = llvm::MemoryBuffer::getMemBuffer(source.text, "/holdfast/prelude.h");
    compiler.getFrontendOpts().Inputs = {clang::FrontendInputFile(
        buffer->getMemBufferRef(), clang::InputKind(clang::Language::CXX))};
    MakePrelude action;
    const bool succeeded = compiler.ExecuteAction(action);
    if (diagnostics.has_errors()) throw std::runtime_error(diagnostics.text());
    if (!succeeded || !action.buffer->IsComplete) {
      throw std::runtime_error("[prelude] clang wrote nothing");
    }
    result.assign(action.buffer->Data.begin(), action.buffer->Data.end());
  });
  return result;
}

// Beside the module, or beside the program that it is linked into, or in the lib folder next to
// that.
std::unique_ptr<llvm::MemoryBuffer> load(Prelude prelude) {
  Dl_info own{};
  if (!dladdr(reinterpret_cast<const void*>(&prelude_header), &own) || own.dli_fname == nullptr) {
    return nullptr;
  }
  std::error_code error;
  std::filesystem::path module = own.dli_fname;
  if (module.is_relative()) module = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = module.parent_path();
  for (const auto& place : {folder, folder.parent_path() / "lib"}) {
    // Mapped, not read: clang looks at a small part of it.
    auto file = llvm::MemoryBuffer::getFile((place / file_name(prelude)).string(), false, false);
    if (!file || (*file)->getBufferSize() < sizeof(Trailer)) continue;
    const llvm::StringRef bytes = (*file)->getBuffer();
    const Trailer expected = make_trailer(bytes.size() - sizeof(Trailer));
    if (std::memcmp(bytes.data() + expected.size, &expected, sizeof expected) == 0) {
      return std::move(*file);
    }
  }
  return nullptr;
}

struct Slot {
  std::mutex mutex;
  std::unique_ptr<llvm::MemoryBuffer> bytes;  // guarded by mutex, kept for ever once set
  size_t size = 0;
  bool has_failed = false;
};

}  // namespace

Prelude prelude_of(const std::string& text) {
  const std::string first = std::string("#include <") + prelude_header(Prelude::custom_kernel);
  return text.rfind(first, 0) == 0 ? Prelude::custom_kernel : Prelude::metal_file;
}

const char* prelude_header(Prelude prelude) {
  return prelude == Prelude::custom_kernel ? "holdfast/custom_kernel.h" : "holdfast/metal_file.h";
}

llvm::MemoryBufferRef precompiled_prelude(Prelude prelude, bool may_make) {
  static Slot slots[2];
  Slot& slot = slots[static_cast<int>(prelude)];
  std::lock_guard lock(slot.mutex);
  if (slot.bytes == nullptr && !slot.has_failed) {
    slot.bytes = load(prelude);
    if (slot.bytes != nullptr) slot.size = slot.bytes->getBufferSize() - sizeof(Trailer);
    if (slot.bytes == nullptr && may_make) {
      try {
        slot.bytes = llvm::MemoryBuffer::getMemBufferCopy(make(prelude), precompiled_file);
        slot.size = slot.bytes->getBufferSize();
      } catch (const std::runtime_error&) {
        slot.has_failed = true;  // the kernel's own compilation will say what is wrong
      }
    }
  }
  if (slot.bytes == nullptr) return {};
  return llvm::MemoryBufferRef(slot.bytes->getBuffer().take_front(slot.size), precompiled_file);
}

void write_preludes(const std::string& folder) {
  for (Prelude prelude : {Prelude::custom_kernel, Prelude::metal_file}) {
    const std::string bytes = make(prelude);
    const Trailer trailer = make_trailer(bytes.size());
    const std::string path = folder + "/" + file_name(prelude);
    // Whole or not at all: another process may be reading the old one.
    std::ofstream file(path + ".new", std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.write(reinterpret_cast<const char*>(&trailer), sizeof trailer);
    file.close();
    if (!file) throw std::runtime_error("[prelude] cannot write " + path);
    std::filesystem::rename(path + ".new", path);
  }
}

}  // namespace holdfast::msl

__attribute__((visibility("default"))) int holdfast_jit_write_preludes(const char* folder) {
  try {
    holdfast::msl::write_preludes(folder);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
