#include "lm/text/normalizer.h"

#include <array>
#include <vector>

#include "lm/text/regex.h"
#include "lm/text/unicode.h"
#include "lm/text/utf8.h"

namespace holdfast::lm::tokenizing {
namespace {

using NormalizerPtr = std::unique_ptr<Normalizer>;

// A step that is a function of the text.
template <typename Function>
class FunctionNormalizer : public Normalizer {
 public:
  explicit FunctionNormalizer(Function function) : function_(std::move(function)) {}
  std::string apply(std::string text) const override { return function_(std::move(text)); }

 private:
  Function function_;
};

template <typename Function>
NormalizerPtr make_normalizer(Function function) {
  return std::make_unique<FunctionNormalizer<Function>>(std::move(function));
}

// The characters that a function keeps.
template <typename Keep>
std::string filtered(const std::string& text, Keep keep) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    if (keep(next_code_point(text, i))) result.append(text, begin, i - begin);
  }
  return result;
}

bool is_ideograph(char32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
         (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
         (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

// What BERT's tokenizers do first.
NormalizerPtr read_bert(const JsonView& json) {
  bool clean = json.boolean_or("clean_text", true);
  bool spaces = json.boolean_or("handle_chinese_chars", true);
  bool lower = json.boolean_or("lowercase", true);
  bool strip = json.boolean_or("strip_accents", lower);
  return make_normalizer([=](std::string text) {
    if (clean || spaces) {
      std::string result;
      for (size_t i = 0; i < text.size();) {
        char32_t c = next_code_point(text, i);
        bool is_line =
            c == '\t' || c == '\n' || c == '\r';  // control characters that separate words
        if (clean && !is_line && (c == replacement_character || is_control(c))) continue;
        if (clean && is_whitespace(c)) c = ' ';
        bool alone = spaces && is_ideograph(c);
        if (alone) result += ' ';
        append_code_point(result, c);
        if (alone) result += ' ';
      }
      text = std::move(result);
    }
    if (strip)
      text = filtered(normalised(text, NormalForm::nfd),
                      [](char32_t c) { return !is_nonspacing_mark(c); });
    return lower ? lowercase(text) : text;
  });
}

NormalizerPtr read_normalizer_step(const JsonView& json, int depth) {
  const std::string& type = json["type"].string();
  if (type == "Sequence") {
    if (depth == deepest_sequence)
      throw ModelError(
          message(json.path(), ": more than ", deepest_sequence, " sequences inside each other"));
    JsonView list = json["normalizers"];
    auto steps = std::make_shared<std::vector<NormalizerPtr>>();
    for (size_t i = 0; i < list.size(); ++i)
      steps->push_back(read_normalizer_step(list[i], depth + 1));
    return make_normalizer([steps](std::string text) {
      for (const NormalizerPtr& step : *steps) text = step->apply(std::move(text));
      return text;
    });
  }
  if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    NormalForm form = type == "NFC"    ? NormalForm::nfc
                      : type == "NFD"  ? NormalForm::nfd
                      : type == "NFKC" ? NormalForm::nfkc
                                       : NormalForm::nfkd;
    return make_normalizer([=](std::string text) { return normalised(text, form); });
  }
  if (type == "Lowercase") return make_normalizer([](std::string text) { return lowercase(text); });
  if (type == "Strip") {
    bool left = json.boolean_or("strip_left", true), right = json.boolean_or("strip_right", true);
    return make_normalizer([=](std::string text) {
      std::string_view rest = text;
      if (left) rest = without_leading_whitespace(rest);
      if (right) rest = without_trailing_whitespace(rest);
      return std::string(rest);
    });
  }
  if (type == "StripAccents")
    return make_normalizer(
        [](std::string text) { return filtered(text, [](char32_t c) { return !is_mark(c); }); });
  if (type == "Prepend") {
    std::string prefix = json["prepend"].string();
    return make_normalizer(
        [prefix](std::string text) { return text.empty() ? text : prefix + text; });
  }
  if (type == "Replace") {
    JsonView pattern = json["pattern"];
    std::string content = json["content"].string();
    Pattern searched = pattern.has("Regex")
                           ? Pattern::expression(pattern["Regex"].string(), pattern.path())
                           : Pattern::literal(pattern["String"].string());
    return make_normalizer([=](std::string text) { return searched.replace_all(text, content); });
  }
  if (type == "ByteLevel")
    return make_normalizer([](std::string text) {
      std::string result;
      append_byte_characters(text, result);
      return result;
    });
  if (type == "BertNormalizer") return read_bert(json);
  json["type"].fail(
      "NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Prepend, Replace, ByteLevel, "
      "BertNormalizer or Sequence");
}

bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct ByteCharacters {
  std::array<std::string, 256> text;
  std::array<int, 0x180> byte;  // by character

  ByteCharacters() {
    byte.fill(-1);
    char32_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      char32_t c = stands_for_itself(b) ? static_cast<char32_t>(b) : next++;
      append_code_point(text[static_cast<size_t>(b)], c);
      byte[c] = b;
    }
  }
};

const ByteCharacters& byte_characters() {
  static const ByteCharacters characters;
  return characters;
}

}  // namespace

void append_byte_characters(std::string_view bytes, std::string& out) {
  const ByteCharacters& characters = byte_characters();
  for (unsigned char byte : bytes) out += characters.text[byte];
}

int byte_of_character(char32_t c) {
  const ByteCharacters& characters = byte_characters();
  return c < characters.byte.size() ? characters.byte[c] : -1;
}

NormalizerPtr read_normalizer(const JsonView& json) { return read_normalizer_step(json, 0); }

}  // namespace holdfast::lm::tokenizing
