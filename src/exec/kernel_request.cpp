#include "exec/kernel_request.h"

#include <fstream>
#include <iterator>
#include <set>
#include <string_view>

#include "exec/byte_stream.h"

namespace holdfast::exec {
namespace {

// The files that `#include "file"` may bring in, with their contents: by the text alone, so that a
// file in a branch that is not compiled counts too. A file that is not there counts as absent.
class IncludedFiles {
 public:
  IncludedFiles(const std::string& directory, ByteWriter& key) : directory_(directory), key_(key) {}

  // False when an include is computed.
  bool add(std::string_view text) {
    for (size_t at = 0; (at = text.find('#', at)) != std::string_view::npos; ++at) {
      std::string_view rest = skip_blanks(text.substr(at + 1));
      if (!rest.starts_with("include")) continue;
      rest = skip_blanks(rest.substr(7));
      if (rest.starts_with('<')) continue;
      size_t end = rest.starts_with('"') ? rest.find_first_of("\"\n", 1) : std::string_view::npos;
      if (end == std::string_view::npos || rest[end] != '"') return false;
      if (!add_file(std::string(rest.substr(1, end - 1)))) return false;
    }
    return true;
  }

 private:
  static std::string_view skip_blanks(std::string_view text) {
    size_t first = text.find_first_not_of(" \t\\\r\n");
    return first == std::string_view::npos ? std::string_view{} : text.substr(first);
  }

  bool add_file(const std::string& name) {
    if (!seen_.insert(name).second) return true;
    key_.text(name);
    std::ifstream file(directory_ + "/" + name, std::ios::binary);
    key_.value(static_cast<uint8_t>(file.good()));
    std::string contents(std::istreambuf_iterator<char>(file), {});
    key_.text(contents);
    return add(contents);
  }

  const std::string& directory_;
  ByteWriter& key_;
  std::set<std::string> seen_;
};

}  // namespace

KernelRequest::KernelRequest(msl::KernelSource source, jit::CompileOptions options,
                             const std::string& compiler_version,
                             std::optional<Hash128> forced_hash)
    : source_(std::move(source)), options_(std::move(options)) {
  ByteWriter key;
  key.value(jit::abi_version);
  key.text(compiler_version);
  key.value(options_.instruction_set);
  key.value(options_.lowering);
  key.value(source_.math);
  key.text(source_.entry);
  key.text(source_.text);
  key.value(static_cast<uint64_t>(source_.constants.size()));
  for (const msl::FunctionConstant& constant : source_.constants) {
    key.value(constant.index);
    key.text(constant.name);
    key.text(constant.type);
    key.value(constant.bits);
  }
  if (!source_.directory.empty())
    is_cacheable_ = IncludedFiles(source_.directory, key).add(source_.text);
  key_ = key.take();
  hash_ = forced_hash ? *forced_hash : hash_bytes(key_);
}

}  // namespace holdfast::exec
