// UTF-8, and what becomes of bytes that are not.
//
// The rule for ill-formed bytes is the one that the Unicode standard recommends (and that browsers
// follow): each maximal part that could have begun a character, or else each single byte, is
// replaced by one U+FFFD.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::lm::tokenizing {

constexpr char32_t replacement_character = 0xfffd;

// What begins at a position of a text: a character of `length` bytes; or ill-formed bytes, `length`
// of them; or the beginning of a character that the text ends in.
struct ByteSequence {
  enum Kind { whole, ill_formed, unfinished } kind;
  size_t length;
};
ByteSequence sequence_at(std::string_view text, size_t position);

// The text with ill-formed bytes replaced.
std::string valid_utf8(std::string_view text);
bool is_valid_utf8(std::string_view text);

// How many bytes at the front of the text can no longer change their meaning, whatever follows: all
// but an unfinished character.
size_t finished_length(std::string_view text);

// The functions below take valid UTF-8.
char32_t next_code_point(std::string_view text, size_t& position);
void append_code_point(std::string& text, char32_t c);
std::u32string code_points(std::string_view text);
std::string to_utf8(std::u32string_view code_points);
size_t count_code_points(std::string_view text);
// The length in bytes of the character that begins with this byte.
inline size_t character_length(char first) {
  auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}
bool is_ascii(std::string_view text);

}  // namespace holdfast::lm::tokenizing
