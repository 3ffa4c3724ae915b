#include "support/stderr_text.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>

namespace holdfast::testing {

StderrText::StderrText() : file_(memfd_create("stderr", 0)), before_(dup(STDERR_FILENO)) {
  std::fflush(stderr);
  if (file_ < 0 || before_ < 0 || dup2(file_, STDERR_FILENO) < 0)
    throw std::runtime_error("stderr cannot be redirected");
}

std::string StderrText::take() {
  if (file_ < 0) return "";
  std::fflush(stderr);
  dup2(before_, STDERR_FILENO);
  close(before_);
  std::string text(static_cast<size_t>(lseek(file_, 0, SEEK_END)), '\0');
  const ssize_t got = pread(file_, text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<size_t>(got));
  close(file_);
  file_ = -1;
  return text;
}

}  // namespace holdfast::testing
