#include "lm/text/jinja/text_functions.h"

#include <algorithm>

#include "lm/support.h"
#include "lm/text/unicode.h"
#include "lm/text/utf8.h"

namespace holdfast::lm::jinja {
namespace {

// What Python's splitlines ends lines at.
bool ends_line(char32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool is_space(char32_t c) { return tokenizing::is_whitespace(c) || (c >= 0x1c && c <= 0x1f); }

}  // namespace

std::string stripped(const std::string& text, const std::string* characters, bool left,
                     bool right) {
  std::u32string all = tokenizing::code_points(text);
  std::u32string removed = characters ? tokenizing::code_points(*characters) : std::u32string();
  auto goes = [&](char32_t c) {
    return characters ? removed.find(c) != std::u32string::npos : is_space(c);
  };
  size_t begin = 0, end = all.size();
  while (left && begin < end && goes(all[begin])) ++begin;
  while (right && end > begin && goes(all[end - 1])) --end;
  return tokenizing::to_utf8(std::u32string_view(all).substr(begin, end - begin));
}

std::vector<Value> split_at(const std::string& text, const std::string& separator, int64_t most,
                            bool from_end) {
  std::vector<Value> parts;
  if (from_end) {
    size_t end = text.size();
    while (most != 0) {
      size_t at = end < separator.size() ? std::string::npos
                                         : text.rfind(separator, end - separator.size());
      if (at == std::string::npos) break;
      parts.push_back(text.substr(at + separator.size(), end - at - separator.size()));
      end = at;
      --most;
    }
    parts.push_back(text.substr(0, end));
    std::reverse(parts.begin(), parts.end());
    return parts;
  }
  size_t begin = 0;
  for (size_t at; most != 0 && (at = text.find(separator, begin)) != std::string::npos; --most) {
    parts.push_back(text.substr(begin, at - begin));
    begin = at + separator.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::vector<Value> split_at_spaces(const std::string& text, int64_t most, bool from_end) {
  std::u32string all = tokenizing::code_points(text);
  // From the end: the same on the reversed text.
  if (from_end) std::reverse(all.begin(), all.end());
  std::vector<Value> parts;
  auto add = [&](std::u32string part) {
    if (from_end) std::reverse(part.begin(), part.end());
    parts.push_back(tokenizing::to_utf8(part));
  };
  for (size_t i = 0;;) {
    while (i < all.size() && is_space(all[i])) ++i;
    if (i == all.size()) break;
    size_t end = i;
    if (most-- == 0) {
      add(all.substr(i));
      break;
    }
    while (end < all.size() && !is_space(all[end])) ++end;
    add(all.substr(i, end - i));
    i = end;
  }
  if (from_end) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Value> split_lines(const std::string& text, bool keeps_ends) {
  std::vector<Value> lines;
  for (size_t begin = 0, i = 0; begin < text.size();) {
    size_t end = i;
    bool ends = i == text.size();
    if (!ends) {
      char32_t c = tokenizing::next_code_point(text, i);
      ends = ends_line(c);
      if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    }
    if (!ends) continue;
    lines.push_back(text.substr(begin, (keeps_ends ? i : end) - begin));
    begin = i;
  }
  return lines;
}

Value replaced(Interpreter& interpreter, const std::string& text, const std::string& from,
               const std::string& to, int64_t most) {
  std::string result;
  size_t done = 0;
  auto room = [&] {
    if (result.size() > most_output) interpreter.charge(result.size());
  };
  if (from.empty()) {
    // Before each character and at the end.
    for (; done < text.size() && most != 0; --most) {
      size_t length = tokenizing::character_length(text[done]);
      result += to;
      result.append(text, done, length);
      done += length;
      room();
    }
    result.append(text, done);
    if (most != 0) result += to;
    return interpreter.make_text(std::move(result));
  }
  for (size_t at; most != 0 && (at = text.find(from, done)) != std::string::npos; --most) {
    result.append(text, done, at - done);
    result += to;
    done = at + from.size();
    room();
  }
  result.append(text, done);
  return interpreter.make_text(std::move(result));
}

Value joined(Interpreter& interpreter, const std::vector<Value>& items,
             const std::string& separator, bool converts) {
  std::string result;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_text() && !converts)
      throw RenderError(
          message("[join] item ", i, " is a ", items[i].type_name(), ", not a string"));
    if (i) result += separator;
    result += items[i].to_text();
    if (result.size() > most_output) interpreter.charge(result.size());
  }
  return interpreter.make_text(std::move(result));
}

std::string padded(const std::string& text, int64_t width, const std::string& fill, bool left,
                   bool right) {
  auto length = static_cast<int64_t>(tokenizing::count_code_points(text));
  if (width <= length || tokenizing::count_code_points(fill) != 1) return text;
  int64_t missing = width - length;
  // In the middle as Python does it: the odd one goes left where the width is odd.
  int64_t before = left && right ? missing / 2 + (missing & width & 1) : left ? missing : 0;
  std::string result;
  for (int64_t i = 0; i < before; ++i) result += fill;
  result += text;
  for (int64_t i = before; i < missing; ++i) result += fill;
  return result;
}

std::string capitalised(const std::string& text) {
  if (text.empty()) return text;
  size_t first = tokenizing::character_length(text[0]);
  return tokenizing::titlecase(text.substr(0, first)) + tokenizing::lowercase(text.substr(first));
}

}  // namespace holdfast::lm::jinja
