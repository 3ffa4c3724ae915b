#include "lm/text/utf8.h"

#include <algorithm>

namespace holdfast::lm::tokenizing {

ByteSequence sequence_at(std::string_view text, size_t position) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[position + i]); };
  unsigned char lead = byte(0);
  if (lead < 0x80) return {ByteSequence::whole, 1};
  if (lead < 0xc2 || lead > 0xf4) return {ByteSequence::ill_formed, 1};
  size_t length = character_length(text[position]), available = text.size() - position;
  // Overlong forms, surrogates and what is beyond U+10FFFF are excluded by their second byte.
  unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  for (size_t i = 1; i < length; ++i, low = 0x80, high = 0xbf) {
    if (i == available) return {ByteSequence::unfinished, i};
    if (byte(i) < low || byte(i) > high) return {ByteSequence::ill_formed, i};
  }
  return {ByteSequence::whole, length};
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_valid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    ByteSequence sequence = sequence_at(text, i);
    if (sequence.kind != ByteSequence::whole) return false;
    i += sequence.length;
  }
  return true;
}

std::string valid_utf8(std::string_view text) {
  if (is_valid_utf8(text)) return std::string(text);
  std::string result;
  for (size_t i = 0; i < text.size();) {
    ByteSequence sequence = sequence_at(text, i);
    if (sequence.kind == ByteSequence::whole) {
      result.append(text, i, sequence.length);
    } else {
      append_code_point(result, replacement_character);
    }
    i += sequence.length;
  }
  return result;
}

size_t finished_length(std::string_view text) {
  // A character has at most 4 bytes, so an unfinished one begins among the last 3.
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    bool unfinished = sequence_at(text, text.size() - back).kind == ByteSequence::unfinished;
    return unfinished ? text.size() - back : text.size();
  }
  return text.size();
}

char32_t next_code_point(std::string_view text, size_t& position) {
  auto byte = [&](size_t i) {
    return char32_t(static_cast<unsigned char>(text[position + i]) & 0x3f);
  };
  size_t length = character_length(text[position]);
  char32_t c;
  if (length == 1) {
    c = static_cast<unsigned char>(text[position]);
  } else if (length == 2) {
    c = (byte(0) & 0x1f) << 6 | byte(1);
  } else if (length == 3) {
    c = (byte(0) & 0x0f) << 12 | byte(1) << 6 | byte(2);
  } else {
    c = (byte(0) & 0x07) << 18 | byte(1) << 12 | byte(2) << 6 | byte(3);
  }
  position += length;
  return c;
}

void append_code_point(std::string& text, char32_t c) {
  auto continued = [&](int shift) { text += static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xc0 | c >> 6);
    continued(0);
  } else if (c < 0x10000) {
    text += static_cast<char>(0xe0 | c >> 12);
    continued(6), continued(0);
  } else {
    text += static_cast<char>(0xf0 | c >> 18);
    continued(12), continued(6), continued(0);
  }
}

std::u32string code_points(std::string_view text) {
  std::u32string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size();) result += next_code_point(text, i);
  return result;
}

std::string to_utf8(std::u32string_view code_points) {
  std::string result;
  result.reserve(code_points.size());
  for (char32_t c : code_points) append_code_point(result, c);
  return result;
}

size_t count_code_points(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace holdfast::lm::tokenizing
