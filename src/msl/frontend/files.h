// The files that clang may see: our embedded headers, one precompiled prelude, and, of a source
// that came from a file, whatever it includes. Other sources cannot include a file of the machine.
#pragma once

#include <llvm/ADT/IntrusiveRefCntPtr.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "msl/frontend/token_pass.h"

namespace holdfast::msl {

// A header of src/msl/include, as bytes in the module. `text` ends with a zero that it does not
// count.
struct EmbeddedFile {
  const char* name;  // "metal_stdlib", "holdfast/language.h"
  llvm::StringRef text;
};
const std::vector<EmbeddedFile>& embedded_files();

inline constexpr const char* include_folder = "/holdfast/include";
inline constexpr const char* user_folder = "/holdfast/user";
inline constexpr const char* precompiled_file = "/holdfast/prelude.pch";

// The operands that rewrite_tokens lets meet their casts, by the path of the file in KernelFiles;
// of the main text under "".
using CastOperands = std::map<std::string, std::set<TextRange>>;

class KernelFiles : public llvm::vfs::FileSystem {
 public:
  // Of `source`: where it came from (KernelSource::directory, else no file can be read), and its
  // function constants.
  KernelFiles(const KernelSource& source, const CastOperands& met);
  void set_precompiled(llvm::MemoryBufferRef prelude) { precompiled_ = prelude; }

  // A file that was included, by its path.
  struct UserFile {
    std::string name;      // as diagnostics print it
    std::string original;  // its contents
    RewrittenText rewritten;
  };
  const UserFile* user_file(llvm::StringRef path) const;

  llvm::ErrorOr<llvm::vfs::Status> status(const llvm::Twine& path) override;
  llvm::ErrorOr<std::unique_ptr<llvm::vfs::File>> openFileForRead(const llvm::Twine& path) override;
  llvm::vfs::directory_iterator dir_begin(const llvm::Twine& path, std::error_code& error) override;
  std::error_code setCurrentWorkingDirectory(const llvm::Twine&) override { return {}; }
  llvm::ErrorOr<std::string> getCurrentWorkingDirectory() const override {
    return std::string("/");
  }

 private:
  // The content of the file at `path`; false when there is none.
  bool find(const llvm::Twine& path, std::string& normal, llvm::StringRef& content);
  const UserFile* load_user_file(const std::string& path);
  std::string shown_name(const std::string& path) const;

  const KernelSource& source_;
  const CastOperands& met_;
  llvm::MemoryBufferRef precompiled_;
  std::map<std::string, UserFile> user_files_;
};

}  // namespace holdfast::msl
