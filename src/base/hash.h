// A fast hash of bytes with 128 bits: for tables whose keys are compared in full afterwards, and
// for checksums against damage. It does not resist someone who makes collisions on purpose.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace holdfast {

struct Hash128 {
  uint64_t low = 0, high = 0;
  auto operator<=>(const Hash128&) const = default;
};

namespace detail {

inline uint64_t multiply_fold(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t load_word(const char* bytes, size_t count) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, count);
  return word;
}

}  // namespace detail

inline Hash128 hash_bytes(std::string_view bytes) {
  // Odd constants without structure (digits of π and e).
  constexpr uint64_t p0 = 0x243f6a8885a308d3, p1 = 0x13198a2e03707345, p2 = 0xa4093822299f31d1,
                     p3 = 0xb7e151628aed2a6b, p4 = 0xbf7158809cf4f3c7;
  uint64_t a = p0 ^ bytes.size(), b = p1 + bytes.size();
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 16; at += 16, left -= 16) {
    uint64_t x = detail::load_word(at, 8), y = detail::load_word(at + 8, 8);
    // Two chains that mix the words differently; the rotation keeps their order in them.
    a = detail::multiply_fold(a ^ x, p2 ^ y);
    b = detail::multiply_fold(b + y, p3 + x) ^ (b << 23 | b >> 41);
  }
  uint64_t x = detail::load_word(at, left < 8 ? left : 8);
  uint64_t y = left > 8 ? detail::load_word(at + 8, left - 8) : 0;
  a = detail::multiply_fold(a ^ x, p2 ^ y ^ left);
  b = detail::multiply_fold(b + y, p3 + x + left) ^ (b << 23 | b >> 41);
  return {detail::multiply_fold(a ^ p4, b ^ p0), detail::multiply_fold(a + p1, b + p4) ^ a};
}

// 32 hexadecimal digits.
inline std::string to_hex(const Hash128& hash) {
  std::string text(32, '0');
  for (int i = 0; i < 16; ++i) {
    text[static_cast<size_t>(15 - i)] = "0123456789abcdef"[(hash.high >> (4 * i)) & 15];
    text[static_cast<size_t>(31 - i)] = "0123456789abcdef"[(hash.low >> (4 * i)) & 15];
  }
  return text;
}

}  // namespace holdfast
