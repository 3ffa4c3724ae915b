// Readers and writers of files.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "base/fault.h"
#include "base/replaced_file.h"
#include "io/support.h"

namespace holdfast::io {
namespace {

std::string reason() { return std::strerror(errno); }

int64_t seek_file(int descriptor, int64_t position, int64_t off, std::ios_base::seekdir way) {
  int64_t from = way == std::ios_base::cur ? position : 0;
  if (way == std::ios_base::end) {
    struct stat state;
    if (fstat(descriptor, &state) == 0) from = state.st_size;
  }
  if (from + off < 0)
    throw std::runtime_error("[seek] a position before the beginning of the file");
  return from + off;
}

void write_all(int descriptor, const char* data, size_t n, const std::string& label) {
  if (fault::hit(fault::Point::file)) {
    throw std::runtime_error("[write] " + label + ": injected failure of a file");
  }
  while (n > 0) {
    ssize_t put = ::write(descriptor, data, n);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw std::runtime_error("[write] " + label + ": " + reason());
    data += put;
    n -= static_cast<size_t>(put);
  }
}

}  // namespace

ParallelFileReader::ParallelFileReader(std::string file_path)
    : path_(std::move(file_path)), descriptor_(open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat state;
  // A directory opens, and a device or a pipe has no length: neither can be read at a position.
  if (descriptor_ >= 0 && (fstat(descriptor_, &state) != 0 || !S_ISREG(state.st_mode))) {
    close(descriptor_);
    descriptor_ = -1;
    errno = EINVAL;
  }
}

ParallelFileReader::~ParallelFileReader() {
  if (descriptor_ >= 0) close(descriptor_);
}

void ParallelFileReader::seek(int64_t off, std::ios_base::seekdir way) {
  position_ = seek_file(descriptor_, position_, off, way);
}

void ParallelFileReader::read(char* data, size_t n) {
  read(data, n, static_cast<size_t>(position_));
  position_ += static_cast<int64_t>(n);
}

void ParallelFileReader::read(char* data, size_t n, size_t offset) {
  if (fault::hit(fault::Point::file)) {
    throw std::runtime_error("[read] " + label() + ": injected failure of a file");
  }
  while (n > 0) {
    ssize_t got = pread(descriptor_, data, n, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::runtime_error("[read] " + label() + ": " + reason());
    if (got == 0) {
      throw std::runtime_error("[read] " + label() + " ends at byte " + std::to_string(offset) +
                               ", " + std::to_string(n) + " bytes too early");
    }
    data += got;
    offset += static_cast<size_t>(got);
    n -= static_cast<size_t>(got);
  }
}

FileWriter::FileWriter(std::string file_path)
    : path_(std::move(file_path)),
      descriptor_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) close(descriptor_);
}

size_t FileWriter::tell() { return static_cast<size_t>(lseek(descriptor_, 0, SEEK_CUR)); }

void FileWriter::seek(int64_t off, std::ios_base::seekdir way) {
  int64_t to = seek_file(descriptor_, static_cast<int64_t>(tell()), off, way);
  if (lseek(descriptor_, to, SEEK_SET) < 0)
    throw std::runtime_error("[seek] " + label() + ": " + reason());
}

void FileWriter::write(const char* data, size_t n) { write_all(descriptor_, data, n, label()); }

namespace {

// Writes front to back: a pipe has no positions, so they are counted here.
class ReplacementWriter final : public Writer {
 public:
  explicit ReplacementWriter(const base::ReplacedFile& file) : file_(file) {}
  bool is_open() const override { return true; }
  bool good() const override { return true; }
  size_t tell() override { return position_; }
  void seek(int64_t off, std::ios_base::seekdir way) override {
    int64_t to = seek_file(file_.descriptor(), static_cast<int64_t>(position_), off, way);
    if (lseek(file_.descriptor(), to, SEEK_SET) < 0)
      throw std::runtime_error("[seek] " + label() + ": " + reason());
    position_ = static_cast<size_t>(to);
  }
  void write(const char* data, size_t n) override {
    write_all(file_.descriptor(), data, n, label());
    position_ += n;
  }
  std::string label() const override { return "file " + file_.path(); }

 private:
  const base::ReplacedFile& file_;
  size_t position_ = 0;
};

}  // namespace

void write_whole_file(const char* op, const std::string& path,
                      const std::function<void(Writer&)>& write) {
  base::ReplacedFile file(op, path);
  ReplacementWriter writer(file);
  write(writer);
  file.commit();
}

}  // namespace holdfast::io
