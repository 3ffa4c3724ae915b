// Values as bytes, for keys and for files: fixed widths, lengths before contents, so that no two
// different sequences of values have the same bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace holdfast {

class ByteWriter {
 public:
  template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void value(T v) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &v, sizeof(T));
    bytes_.append(bytes, sizeof(T));
  }
  void text(std::string_view s) {
    value(static_cast<uint64_t>(s.size()));
    bytes_.append(s);
  }
  std::string take() { return std::exchange(bytes_, {}); }
  void reserve(size_t size) { bytes_.reserve(size); }
  size_t size() const { return bytes_.size(); }

 private:
  std::string bytes_;
};

// Reads what a ByteWriter wrote; what it cannot trust it does not return: `ok` is false from the
// first thing that does not fit on, and everything after it is zero or empty.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
    requires std::is_arithmetic_v<T>
  T value() {
    T v{};
    std::string_view bytes = take(sizeof(T));
    if (ok_) std::memcpy(&v, bytes.data(), sizeof(T));
    return v;
  }
  // One byte that must be 0 or 1.
  bool boolean() { return value_up_to<uint8_t>(1) != 0; }
  // An integer that must not exceed `largest`.
  template <class T>
  T value_up_to(T largest) {
    T v = value<T>();
    if (v > largest) ok_ = false;
    return ok_ ? v : T{};
  }
  std::string_view text() { return take(value<uint64_t>()); }
  // The number of elements that follow, each of at least `least_bytes`.
  size_t count(size_t least_bytes) {
    uint64_t n = value<uint64_t>();
    if (n > bytes_.size() / least_bytes) ok_ = false;
    return ok_ ? static_cast<size_t>(n) : 0;
  }
  bool ok() const { return ok_; }
  // Everything was read, and nothing is left.
  bool is_done() const { return ok_ && bytes_.empty(); }

 private:
  std::string_view take(uint64_t size) {
    if (!ok_ || size > bytes_.size()) {
      ok_ = false;
      return {};
    }
    std::string_view front = bytes_.substr(0, static_cast<size_t>(size));
    bytes_.remove_prefix(static_cast<size_t>(size));
    return front;
  }

  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace holdfast
