#include "exec/kernel_request.h"

#include "base/environment.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>

namespace holdfast::exec {
namespace {

// The files that `#include "file"` may bring in, with their contents: by the text alone, so that a
// file in a branch that is not compiled counts too. They are looked for beside the file that names
// them, beside the source and in its include directories, and count where they are and where they
// are not.
class IncludedFiles {
 public:
  IncludedFiles(const msl::KernelSource& source, ByteWriter& key)
      : root_(source.directory), folders_(source.include_directories), key_(key) {}

  // Those of a text that lies in `folder`, and theirs. False when an include is computed, or the
  // text asks for files in another way.
  bool add(std::string_view text, const std::filesystem::path& folder) {
    if (text.find("__has_include") != std::string_view::npos) return false;
    for (size_t at = 0; (at = text.find('#', at)) != std::string_view::npos; ++at) {
      std::string_view rest = skip_blanks(text.substr(at + 1));
      if (rest.starts_with("include")) {
        rest.remove_prefix(rest.starts_with("include_next") ? 12 : 7);
      } else if (rest.starts_with("import")) {
        rest.remove_prefix(6);
      } else {
        continue;
      }
      rest = skip_blanks(rest);
      char closing = rest.starts_with('"') ? '"' : '>';
      if (!rest.starts_with('"') && !rest.starts_with('<')) return false;
      size_t end = rest.find_first_of(closing == '"' ? "\"\n" : ">\n", 1);
      if (end == std::string_view::npos || rest[end] != closing) return false;
      std::string name(rest.substr(1, end - 1));
      if (!add_file(folder / name) || !add_file(root_ / name)) return false;
      for (const std::filesystem::path further : folders_) {
        if (!add_file(further / name)) return false;
      }
    }
    return true;
  }

 private:
  static std::string_view skip_blanks(std::string_view text) {
    size_t first = text.find_first_not_of(" \t\\\r\n");
    return first == std::string_view::npos ? std::string_view{} : text.substr(first);
  }

  bool add_file(const std::filesystem::path& path) {
    if (!seen_.insert(path.lexically_normal().string()).second) return true;
    // The place within the folder: the folder itself may move.
    key_.text(path.lexically_normal().lexically_relative(root_.lexically_normal()).string());
    std::ifstream file(path, std::ios::binary);
    key_.value(static_cast<uint8_t>(file.good()));
    std::string contents(std::istreambuf_iterator<char>(file), {});
    key_.text(contents);
    return add(contents, path.parent_path());
  }

  const std::filesystem::path root_;
  const std::vector<std::string>& folders_;
  ByteWriter& key_;
  std::set<std::string> seen_;
};

}  // namespace

KernelRequest::KernelRequest(msl::KernelSource source, KernelOptions options, Target& target,
                             std::optional<Hash128> forced_hash)
    : source_(std::move(source)), options_(options), target_(target) {
  if (options_.variant == 0 && !options_.is_of_library &&
      environment::settings().reference_lowering)
    options_.variant = target.reference_variant();
  ByteWriter key;
  key.text(target.identity());
  key.value(options_.variant);
  key.value(static_cast<uint8_t>(options_.guarded + 2 * options_.is_of_library));
  key.value(source_.math);
  key.text(source_.entry);
  key.text(source_.text);
  write_constants(source_.constants, key);
  if (!source_.directory.empty())
    is_cacheable_ = IncludedFiles(source_, key).add(source_.text, source_.directory);
  key_ = key.take();
  hash_ = forced_hash ? *forced_hash : hash_bytes(key_);
}

KernelOptions user_kernel_options(bool guarded) {
  KernelOptions options;
  options.guarded =
      guarded && environment::settings().guard_kernels != environment::GuardKernels::off;
  return options;
}

void write_constants(const std::vector<msl::FunctionConstant>& constants, ByteWriter& out) {
  out.value(static_cast<uint64_t>(constants.size()));
  for (const msl::FunctionConstant& constant : constants) {
    out.value(constant.index);
    out.text(constant.name);
    out.text(constant.type);
    for (uint64_t word : constant.bits) out.value(word);
  }
}

std::vector<msl::FunctionConstant> read_constants(ByteReader& in, size_t words) {
  std::vector<msl::FunctionConstant> constants;
  for (size_t i = in.count(20); i > 0 && in.ok(); --i) {
    msl::FunctionConstant& constant = constants.emplace_back();
    constant.index = in.value<uint32_t>();
    constant.name = in.text();
    constant.type = in.text();
    for (size_t word = 0; word < words; ++word) constant.bits[word] = in.value<uint64_t>();
  }
  return constants;
}

}  // namespace holdfast::exec
