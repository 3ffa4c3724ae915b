// ReplacedFile: a file that is written whole or not at all, in the place of the one before it.
//
// What is written goes to a temporary file beside the file and takes its name in `commit`: until
// then, and when anything fails, the old file is as it was. The new one has the mode of the old
// one, and its owner and group where the process may give them away; without an old one the mode is
// the umask's. Links are followed, as open(2) follows them: what a symbolic link leads to is
// replaced or made, and the link stays. Other hard links of the old file keep the old contents.
//
// What is no regular file (a pipe, a terminal, a device, /dev/stdout wherever it leads) has no old
// contents to keep: it is opened and written as it is.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace holdfast::base {

class ReplacedFile {
 public:
  // Throws std::runtime_error "[op] cannot write <path>: <reason>", as does `commit`.
  ReplacedFile(std::string op, std::string path);
  // Without `commit` nothing has happened.
  ~ReplacedFile();
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;

  // Open for writing, at the beginning. Closed by this object.
  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  void commit();

 private:
  void open_temporary(const std::string& target);
  [[noreturn]] void fail(const std::string& path, int error) const;

  std::string op_, path_;
  std::string target_, temporary_;  // empty: written as it is
  int descriptor_ = -1;
};

// The path that opening `path` leads to: links of its last component followed, also to what does
// not exist. Nothing, and errno, where there are too many; nothing and 0 for links of /proc, whose
// text may be no path.
std::optional<std::string> followed_links(std::string path);

}  // namespace holdfast::base
