// Bytes in memory as a Reader.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/io.h>

namespace holdfast::io {

class MemoryReader final : public Reader {
 public:
  MemoryReader(std::vector<char> bytes, std::string label)
      : bytes_(std::move(bytes)), label_(std::move(label)) {}
  bool is_open() const override { return true; }
  bool good() const override { return true; }
  size_t tell() override { return position_; }
  void seek(int64_t off, std::ios_base::seekdir way = std::ios_base::beg) override {
    int64_t from = way == std::ios_base::end   ? static_cast<int64_t>(bytes_.size())
                   : way == std::ios_base::cur ? static_cast<int64_t>(position_)
                                               : 0;
    if (from + off < 0)
      throw std::runtime_error("[seek] a position before the beginning of " + label_);
    position_ = static_cast<size_t>(from + off);
  }
  void read(char* data, size_t n) override {
    read(data, n, position_);
    position_ += n;
  }
  void read(char* data, size_t n, size_t offset) override {
    if (offset > bytes_.size() || n > bytes_.size() - offset) {
      throw std::runtime_error("[read] " + label_ + " ends before byte " +
                               std::to_string(offset + n));
    }
    if (n > 0) std::memcpy(data, bytes_.data() + offset, n);
  }
  std::string label() const override { return label_; }
  bool reads_in_parallel() const override { return true; }

 private:
  std::vector<char> bytes_;
  std::string label_;
  size_t position_ = 0;
};

}  // namespace holdfast::io
