// The machine code of one kernel, mapped and ready to be called. No LLVM: objects come from the
// disk cache as often as from the compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::jit {

// A relocatable ELF object in memory of its own, that nothing can write to once it is made: code is
// readable and executable, data readable.
//
// The bytes are not trusted: every offset, size and index is checked, and std::runtime_error says
// what is wrong. (What the code does when it runs cannot be checked: a cache has a checksum for
// that.)
class Image {
 public:
  explicit Image(std::span<const char> object);
  Image(Image&& other) noexcept;
  Image& operator=(Image&&) = delete;
  ~Image();

  // The address of a function of this name in the object's code; null when there is none.
  const void* find(std::string_view name) const;
  // Whether the address lies in the code. Safe in a signal handler.
  bool contains(const void* address) const {
    return address >= code_ && address < code_ + code_bytes_;
  }
  const char* code() const { return code_; }
  size_t code_bytes() const { return code_bytes_; }

 private:
  char* memory_ = nullptr;
  size_t bytes_ = 0;
  const char* code_ = nullptr;
  size_t code_bytes_ = 0;
  std::vector<std::pair<std::string, const char*>> functions_;
};

}  // namespace holdfast::jit
