// What Unicode says about characters, and its normal forms. All texts are valid UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::lm::tokenizing {

bool is_whitespace(char32_t c);  // the property White_Space
bool is_letter(char32_t c);      // category L
bool is_number(char32_t c);      // category N
bool is_decimal(char32_t c);     // category Nd
bool is_mark(char32_t c);        // category M
bool is_nonspacing_mark(char32_t c);
bool is_punctuation(char32_t c);  // category P, and the symbols of ASCII
bool is_control(char32_t c);      // category C, but for what is not assigned
bool is_word_character(char32_t c);
bool is_uppercase(char32_t c);
bool is_lowercase(char32_t c);

enum class NormalForm { nfc, nfd, nfkc, nfkd };
std::string normalised(std::string_view text, NormalForm form);
// Each character by itself: a final sigma is not special.
std::string lowercase(std::string_view text);
std::string uppercase(std::string_view text);
// The first letter of each word as it is in a title, the others in lower case.
std::string titlecase(std::string_view text);

std::string_view without_leading_whitespace(std::string_view text);
std::string_view without_trailing_whitespace(std::string_view text);

}  // namespace holdfast::lm::tokenizing
