#include "lm/text/unicode.h"

#include <utf8proc.h>

#include <holdfast/lm/errors.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "lm/support.h"
#include "lm/text/utf8.h"

namespace holdfast::lm::tokenizing {
namespace {

bool has_category(char32_t c, utf8proc_category_t first, utf8proc_category_t last) {
  utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= first && category <= last;
}

template <typename Change>
std::string changed(std::string_view text, Change change) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size();) change(next_code_point(text, i), result);
  return result;
}

char32_t lower_of(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

void append_lower(char32_t c, std::string& result) {
  append_code_point(result, c == 0x130 ? U'i' : lower_of(c));
  if (c == 0x130) append_code_point(result, 0x307);  // the dot of a capital I with a dot stays
}

}  // namespace

bool is_whitespace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_letter(char32_t c) { return has_category(c, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO); }
bool is_number(char32_t c) { return has_category(c, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO); }
bool is_decimal(char32_t c) { return has_category(c, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_ND); }
bool is_mark(char32_t c) { return has_category(c, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME); }
bool is_nonspacing_mark(char32_t c) {
  return has_category(c, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_MN);
}
bool is_control(char32_t c) { return has_category(c, UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CO); }

bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
           (c >= 123 && c <= 126);
  return has_category(c, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}

bool is_word_character(char32_t c) {
  if (c < 0x80) return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
  return is_letter(c) || is_mark(c) || is_decimal(c) ||
         has_category(c, UTF8PROC_CATEGORY_NL, UTF8PROC_CATEGORY_NL) ||
         has_category(c, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PC) ||
         (c >= 0x24b6 && c <= 0x24e9) ||  // letters in circles
         c == 0x200c || c == 0x200d;      // joiners
}

bool is_uppercase(char32_t c) {
  return has_category(c, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LU);
}
bool is_lowercase(char32_t c) {
  return has_category(c, UTF8PROC_CATEGORY_LL, UTF8PROC_CATEGORY_LL);
}

std::string normalised(std::string_view text, NormalForm form) {
  // Nothing before the first combining mark (U+0300) changes in the composed canonical form, and no
  // ASCII in any form.
  unsigned char first_changing = form == NormalForm::nfc ? 0xcc : 0x80;
  if (std::all_of(text.begin(), text.end(),
                  [=](char c) { return static_cast<unsigned char>(c) < first_changing; }))
    return std::string(text);
  int options = UTF8PROC_STABLE;
  bool composed = form == NormalForm::nfc || form == NormalForm::nfkc;
  bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  options |= composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (compatible) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* bytes = nullptr;
  utf8proc_ssize_t length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                         static_cast<utf8proc_ssize_t>(text.size()), &bytes,
                                         static_cast<utf8proc_option_t>(options));
  std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(bytes, &std::free);
  if (length == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (length < 0)
    throw RequestError(message("[Tokenizer] cannot normalise a text of ", text.size(),
                               " bytes: ", utf8proc_errmsg(length)));
  return std::string(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
}

std::string lowercase(std::string_view text) { return changed(text, append_lower); }

std::string uppercase(std::string_view text) {
  return changed(text, [](char32_t c, std::string& result) {
    if (c == 0xdf) {
      result += "SS";  // a sharp s has no capital of its own
    } else {
      append_code_point(result,
                        static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
    }
  });
}

std::string titlecase(std::string_view text) {
  bool in_word = false;
  return changed(text, [&](char32_t c, std::string& result) {
    if (in_word) {
      append_lower(c, result);
    } else {
      append_code_point(result,
                        static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
    }
    in_word = is_letter(c);
  });
}

std::string_view without_leading_whitespace(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    size_t start = i;
    if (!is_whitespace(next_code_point(text, i))) return text.substr(start);
  }
  return {};
}

std::string_view without_trailing_whitespace(std::string_view text) {
  size_t end = 0;
  for (size_t i = text.size(); i > 0;) {
    size_t start = i - 1;
    while ((static_cast<unsigned char>(text[start]) & 0xc0) == 0x80) --start;
    size_t position = start;
    if (!is_whitespace(next_code_point(text, position))) {
      end = i;
      break;
    }
    i = start;
  }
  return text.substr(0, end);
}

}  // namespace holdfast::lm::tokenizing
