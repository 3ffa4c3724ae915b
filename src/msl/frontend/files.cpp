#include "msl/frontend/files.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/Support/Path.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace holdfast::msl {
namespace {

constexpr uintmax_t largest_file = uintmax_t{16} << 20;

llvm::vfs::Status make_status(const std::string& path, size_t size, llvm::sys::fs::file_type type) {
  // Names decide identity; no two files share one.
  return llvm::vfs::Status(path, llvm::sys::fs::UniqueID(1, llvm::hash_value(path)), {}, 0, 0, size,
                           type, llvm::sys::fs::all_read);
}

class ContentFile : public llvm::vfs::File {
 public:
  ContentFile(std::string path, llvm::StringRef content)
      : path_(std::move(path)), content_(content) {}
  llvm::ErrorOr<llvm::vfs::Status> status() override {
    return make_status(path_, content_.size(), llvm::sys::fs::file_type::regular_file);
  }
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> getBuffer(const llvm::Twine& name, int64_t,
                                                               bool needs_end, bool) override {
    return llvm::MemoryBuffer::getMemBuffer(content_, name.str(), needs_end);
  }
  std::error_code close() override { return {}; }

 private:
  std::string path_;
  llvm::StringRef content_;
};

}  // namespace

KernelFiles::KernelFiles(const KernelSource& source, const CastOperands& met)
    : source_(source), met_(met) {}

const KernelFiles::UserFile* KernelFiles::user_file(llvm::StringRef path) const {
  auto found = user_files_.find(path.str());
  return found == user_files_.end() ? nullptr : &found->second;
}

// From the folder that it was found from; else the whole path.
std::string KernelFiles::shown_name(const std::string& path) const {
  auto below = [&](const std::string& folder) {
    const std::string start = std::filesystem::absolute(folder).lexically_normal().string() + "/";
    return llvm::StringRef(path).starts_with(start) ? path.substr(start.size()) : std::string();
  };
  std::string name = below(source_.directory);
  for (const std::string& folder : source_.include_directories) {
    if (name.empty()) name = below(folder);
  }
  return name.empty() ? path : name;
}

const KernelFiles::UserFile* KernelFiles::load_user_file(const std::string& path) {
  if (source_.directory.empty()) return nullptr;
  if (auto found = user_files_.find(path); found != user_files_.end()) return &found->second;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || error) return nullptr;
  if (std::filesystem::file_size(path, error) > largest_file || error) return nullptr;
  std::ifstream stream(path, std::ios::binary);
  UserFile loaded;
  loaded.name = shown_name(path);
  loaded.original.assign(std::istreambuf_iterator<char>(stream), {});
  if (stream.bad()) return nullptr;
  const auto met = met_.find(path);
  loaded.rewritten = rewrite_tokens(loaded.original, source_.constants,
                                    met == met_.end() ? std::set<TextRange>{} : met->second);
  return &user_files_.emplace(path, std::move(loaded)).first->second;
}

bool KernelFiles::find(const llvm::Twine& path, std::string& normal, llvm::StringRef& content) {
  llvm::SmallString<128> clean;
  path.toVector(clean);
  llvm::sys::path::remove_dots(clean, true, llvm::sys::path::Style::posix);
  normal = clean.str().str();
  const llvm::StringRef name(normal);
  if (name == precompiled_file && precompiled_.getBufferSize() > 0) {
    content = precompiled_.getBuffer();
    return true;
  }
  if (name.starts_with(llvm::StringRef(include_folder).str() + "/")) {
    const llvm::StringRef rest = name.substr(llvm::StringRef(include_folder).size() + 1);
    for (const EmbeddedFile& file : embedded_files()) {
      if (rest == file.name) {
        content = file.text;
        return true;
      }
    }
    return false;
  }
  // The folder of the main text is a name, not a folder.
  if (name.starts_with(llvm::StringRef(user_folder).str() + "/")) return false;
  if (const UserFile* file = load_user_file(normal)) {
    content = file->rewritten.text;
    return true;
  }
  return false;
}

llvm::ErrorOr<llvm::vfs::Status> KernelFiles::status(const llvm::Twine& path) {
  std::string normal;
  llvm::StringRef content;
  if (find(path, normal, content)) {
    return make_status(normal, content.size(), llvm::sys::fs::file_type::regular_file);
  }
  // Folders on the way to our files exist.
  const std::string prefix = normal == "/" ? normal : normal + "/";
  const std::string includes = std::string(include_folder) + "/";
  std::error_code error;
  bool is_folder = llvm::StringRef(includes).starts_with(prefix) || normal == user_folder ||
                   (!source_.directory.empty() && std::filesystem::is_directory(normal, error));
  for (const EmbeddedFile& file : embedded_files()) {
    is_folder = is_folder || llvm::StringRef(includes + file.name).starts_with(prefix);
  }
  if (is_folder) {
    return make_status(normal, 0, llvm::sys::fs::file_type::directory_file);
  }
  return std::make_error_code(std::errc::no_such_file_or_directory);
}

llvm::ErrorOr<std::unique_ptr<llvm::vfs::File>> KernelFiles::openFileForRead(
    const llvm::Twine& path) {
  std::string normal;
  llvm::StringRef content;
  if (!find(path, normal, content)) {
    return std::make_error_code(std::errc::no_such_file_or_directory);
  }
  return std::make_unique<ContentFile>(normal, content);
}

llvm::vfs::directory_iterator KernelFiles::dir_begin(const llvm::Twine&, std::error_code& error) {
  error = {};
  return {};
}

}  // namespace holdfast::msl
