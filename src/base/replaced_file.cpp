#include "base/replaced_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace holdfast::base {
namespace {

constexpr int most_links = 40;  // as Linux follows

std::string folder_of(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The text of a link; std::nullopt, and errno.
std::optional<std::string> text_of_link(const std::string& path) {
  std::error_code error;
  std::filesystem::path text = std::filesystem::read_symlink(path, error);
  if (!error) return text.string();
  errno = error.value();
  return std::nullopt;
}

bool is_link(const std::string& path) {
  struct stat state;
  return lstat(path.c_str(), &state) == 0 && S_ISLNK(state.st_mode);
}

bool is_in_proc(const std::string& path) {
  struct statfs state;
  return statfs(folder_of(path).c_str(), &state) == 0 && state.f_type == PROC_SUPER_MAGIC;
}

// /dev/stdout and its like, which share the position of the open file: its number, or -1.
int open_descriptor_of(std::string path) {
  for (int i = 0; i < most_links; ++i) {
    for (const std::string& folder : {std::string("/proc/self/fd/"), std::string("/dev/fd/"),
                                      "/proc/" + std::to_string(getpid()) + "/fd/"}) {
      if (!path.starts_with(folder)) continue;
      int number = -1;
      const char* end = path.data() + path.size();
      auto [stop, error] = std::from_chars(path.data() + folder.size(), end, number);
      return error == std::errc() && stop == end ? number : -1;
    }
    std::optional<std::string> text = is_link(path) ? text_of_link(path) : std::nullopt;
    if (!text) return -1;
    path = text->starts_with('/') ? *text : folder_of(path) + "/" + *text;
  }
  return -1;
}

// The owner first: changing it clears bits of the mode.
void take_over_attributes(int descriptor, const struct stat& old) {
  if (fchown(descriptor, old.st_uid, old.st_gid) != 0) {
    [[maybe_unused]] int ignored = fchown(descriptor, static_cast<uid_t>(-1), old.st_gid);
  }
  fchmod(descriptor, old.st_mode & 07777);
}

}  // namespace

std::optional<std::string> followed_links(std::string path) {
  for (int i = 0; i < most_links; ++i) {
    if (!is_link(path)) return path;
    if (is_in_proc(path)) {
      errno = 0;
      return std::nullopt;
    }
    std::optional<std::string> text = text_of_link(path);
    if (!text) return std::nullopt;
    path = text->starts_with('/') ? *text : folder_of(path) + "/" + *text;
  }
  errno = ELOOP;
  return std::nullopt;
}

ReplacedFile::ReplacedFile(std::string op, std::string path)
    : op_(std::move(op)), path_(std::move(path)) {
  if (int number = open_descriptor_of(path_); number >= 0) {
    descriptor_ = fcntl(number, F_DUPFD_CLOEXEC, 0);
    if (descriptor_ < 0) fail(path_, errno);
    return;
  }
  struct stat old;
  const bool exists = stat(path_.c_str(), &old) == 0;
  if (!exists && errno != ENOENT) fail(path_, errno);
  std::optional<std::string> target = followed_links(path_);
  if (!target && errno != 0) fail(path_, errno);
  if (exists && (!S_ISREG(old.st_mode) || !target)) {
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail(path_, errno);
    return;
  }
  if (!target) fail(path_, ENOENT);
  // Replacing a file needs the folder's permission only: one that may not be written is not.
  if (exists && faccessat(AT_FDCWD, target->c_str(), W_OK, AT_EACCESS) != 0) fail(path_, errno);
  open_temporary(*target);
  target_ = *target;
  if (exists) take_over_attributes(descriptor_, old);
}

void ReplacedFile::open_temporary(const std::string& target) {
  static std::atomic<unsigned> counter{0};
  struct stat state;
  // Of a file that others may not read they do not see the new contents either.
  const mode_t mode = stat(target.c_str(), &state) == 0 ? 0600 : 0666;
  do {
    temporary_ = target + "." + std::to_string(getpid()) + "." + std::to_string(counter++) + ".tmp";
    descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) fail(temporary_, errno);
}

void ReplacedFile::commit() {
  // Some file systems say only here that there was no space.
  const int closed = close(std::exchange(descriptor_, -1));
  if (closed != 0) fail(path_, errno);
  if (target_.empty()) return;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail(path_, errno);
  target_.clear();
}

ReplacedFile::~ReplacedFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!target_.empty()) unlink(temporary_.c_str());
}

void ReplacedFile::fail(const std::string& path, int error) const {
  throw std::runtime_error("[" + op_ + "] cannot write " + path + ": " + std::strerror(error));
}

}  // namespace holdfast::base
