// Tokenizers as the metadata of GGUF files describes them: the vocabulary is in the file, how a
// text is cut into words goes by name.
#include <holdfast/ops.h>
#include <holdfast/transforms.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "lm/text/tokenizer_state.h"
#include "lm/text/utf8.h"

namespace holdfast::lm::tokenizing {
namespace {

using Metadata = std::unordered_map<std::string, GGUFMetaData>;

// What the numbers in tokenizer.ggml.token_type mean.
enum TokenType {
  normal = 1,
  unknown_token = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte_type = 6
};

const GGUFMetaData* find_value(const Metadata& metadata, const std::string& key) {
  auto found = metadata.find("tokenizer." + key);
  return found == metadata.end() ? nullptr : &found->second;
}

[[noreturn]] void fail(const std::string& key, const std::string& expected) {
  throw ModelError(message("[Tokenizer] GGUF metadata tokenizer.", key, ": expected ", expected));
}

std::optional<std::string> find_string(const Metadata& metadata, const std::string& key) {
  const GGUFMetaData* value = find_value(metadata, key);
  if (!value) return std::nullopt;
  if (const auto* string = std::get_if<std::string>(value)) return valid_utf8(*string);
  fail(key, "a string");
}

std::vector<std::string> find_strings(const Metadata& metadata, const std::string& key) {
  const GGUFMetaData* value = find_value(metadata, key);
  if (!value) return {};
  if (const auto* strings = std::get_if<std::vector<std::string>>(value)) {
    std::vector<std::string> valid;
    for (const std::string& string : *strings) valid.push_back(valid_utf8(string));
    return valid;
  }
  // An empty list has no strings to be recognised by.
  if (const auto* numbers = std::get_if<array>(value); numbers && numbers->size() == 0) return {};
  fail(key, "a list of strings");
}

template <typename T>
std::vector<T> find_numbers(const Metadata& metadata, const std::string& key, Dtype dtype,
                            size_t count) {
  const GGUFMetaData* value = find_value(metadata, key);
  if (!value) return {};
  const auto* numbers = std::get_if<array>(value);
  if (!numbers || numbers->size() != count)
    fail(key, message(count, " numbers, as many as there are tokens"));
  array converted = astype(*numbers, dtype, Device::cpu);
  converted.eval();
  return std::vector<T>(converted.data<T>(), converted.data<T>() + count);
}

std::optional<int64_t> find_integer(const Metadata& metadata, const std::string& key) {
  const GGUFMetaData* value = find_value(metadata, key);
  if (!value) return std::nullopt;
  const auto* number = std::get_if<array>(value);
  bool is_integer = number && number->size() == 1 &&
                    (number->dtype() == bool_ || issubdtype(number->dtype(), integer));
  if (!is_integer) fail(key, "an integer");
  array converted = astype(*number, int64, Device::cpu);
  return converted.item<int64_t>();
}

bool find_boolean(const Metadata& metadata, const std::string& key, bool otherwise) {
  return find_integer(metadata, key).value_or(otherwise) != 0;
}

// --- byte-level BPE ---

// How names in tokenizer.ggml.pre cut text: one expression after the other, each match a word.
struct Words {
  const char* names;  // with a space around each
  std::vector<const char*> expressions;
  bool ignores_merges = false;
  bool composes = false;       // the normal form NFC comes first
  bool single_digits = false;  // cut apart before the expressions
};

// The alternatives that many of them end in.
#define HOLDFAST_REST R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define HOLDFAST_CONTRACTIONS R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?)"
#define HOLDFAST_CASED \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
#define HOLDFAST_CAPITALS \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
#define HOLDFAST_ENDINGS R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"

constexpr const char* gpt2_words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

const std::vector<Words>& all_words() {
  static const std::vector<Words> rows{
      {" default gpt-2 gpt2 mpt olmo jais exaone phi-2 roberta-bpe gigachat ", {gpt2_words}},
      {" smollm starcoder refact command-r codeshell ", {gpt2_words}, false, false, true},
      {" llama-bpe llama3 llama-v3 falcon3 pixtral lfm2 ",
       {HOLDFAST_CONTRACTIONS R"(\p{L}+|\p{N}{1,3})" HOLDFAST_REST},
       true},
      {" dbrx smaug-bpe chatglm-bpe glm4 ",
       {HOLDFAST_CONTRACTIONS R"(\p{L}+|\p{N}{1,3})" HOLDFAST_REST}},
      {" qwen2 deepseek-r1-qwen stablelm2 megrez hunyuan ",
       {HOLDFAST_CONTRACTIONS R"(\p{L}+|\p{N})" HOLDFAST_REST},
       false,
       true},
      {" qwen35 ",
       {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
       false,
       true},
      {" tekken ",
       {HOLDFAST_CASED "|" HOLDFAST_CAPITALS
                       R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
       true},
      {" gpt-4o llama4 ",
       {HOLDFAST_CASED HOLDFAST_ENDINGS
        "|" HOLDFAST_CAPITALS HOLDFAST_ENDINGS
        R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
      {" deepseek-v3 ",
       {R"(\p{N}{1,3})", R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)",
        R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
  };
  return rows;
}

#undef HOLDFAST_REST
#undef HOLDFAST_CONTRACTIONS
#undef HOLDFAST_CASED
#undef HOLDFAST_CAPITALS
#undef HOLDFAST_ENDINGS

const Words& find_words(const std::string& name) {
  std::string known;
  for (const Words& row : all_words()) {
    if (std::string_view(row.names).find(" " + name + " ") != std::string_view::npos) return row;
    known += row.names;
  }
  fail("ggml.pre", message("one of", known, "got \"", name, "\""));
}

void read_byte_level(const Metadata& metadata, TokenizerState& state) {
  const Words& words = find_words(find_string(metadata, "ggml.pre").value_or("default"));
  nlohmann::json steps = nlohmann::json::array();
  if (words.single_digits) steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  for (const char* expression : words.expressions)
    steps.push_back(
        {{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}});
  steps.push_back({{"type", "ByteLevel"},
                   {"add_prefix_space", find_boolean(metadata, "ggml.add_space_prefix", false)},
                   {"use_regex", false}});
  nlohmann::json sequence{{"type", "Sequence"}, {"pretokenizers", steps}};
  state.pre_tokenizer = read_pre_tokenizer(JsonView(sequence, "ggml.pre"));
  if (words.composes)
    state.normalizer = read_normalizer(JsonView(nlohmann::json{{"type", "NFC"}}, "ggml.pre"));
  state.decoder = {{.kind = DecodeStep::byte_level}};

  std::vector<std::string> list = find_strings(metadata, "ggml.merges");
  std::vector<Merge> merges;
  for (size_t i = 0; i < list.size(); ++i) {
    size_t space = list[i].find(' ', 1);
    std::string left = list[i].substr(0, space);
    std::string right = space == std::string::npos ? "" : list[i].substr(space + 1);
    int32_t ids[3] = {state.vocabulary.find(left), state.vocabulary.find(right),
                      state.vocabulary.find(left + right)};
    if (right.empty() || ids[0] < 0 || ids[1] < 0 || ids[2] < 0)
      fail("ggml.merges",
           message("two tokens and a space between them at ", i, ", got \"", list[i], "\""));
    merges.push_back({ids[0], ids[1], ids[2], static_cast<int32_t>(i)});
  }
  BpeOptions options;
  options.ignores_merges = words.ignores_merges;
  state.model = make_bpe(state.vocabulary, merges, options);
}

// --- SentencePiece ---

// Every way to make a token of two others, ranked by the token's score: neighbours whose token has
// the best score are merged first.
std::vector<Merge> merges_by_score(const Vocabulary& vocabulary, const std::vector<float>& scores,
                                   const std::vector<bool>& can_merge) {
  std::vector<float> ranked;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (can_merge[i]) ranked.push_back(scores[i]);
  }
  std::sort(ranked.begin(), ranked.end(), std::greater<>());
  ranked.erase(std::unique(ranked.begin(), ranked.end()), ranked.end());
  std::vector<Merge> merges;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!can_merge[i]) continue;
    const std::string& token = vocabulary.token(static_cast<int32_t>(i));
    auto rank = std::lower_bound(ranked.begin(), ranked.end(), scores[i], std::greater<>());
    for (size_t cut = 0; cut < token.size();) {
      cut += character_length(token[cut]);
      if (cut >= token.size()) break;
      int32_t left = vocabulary.find(std::string_view(token).substr(0, cut));
      int32_t right = vocabulary.find(std::string_view(token).substr(cut));
      if (left >= 0 && right >= 0 && can_merge[static_cast<size_t>(left)] &&
          can_merge[static_cast<size_t>(right)])
        merges.push_back(
            {left, right, static_cast<int32_t>(i), static_cast<int32_t>(rank - ranked.begin())});
    }
  }
  return merges;
}

void read_sentence_piece(const Metadata& metadata, const std::vector<int32_t>& types,
                         TokenizerState& state) {
  auto count = static_cast<size_t>(state.vocabulary.size());
  std::vector<float> scores = find_numbers<float>(metadata, "ggml.scores", float32, count);
  if (scores.empty()) fail("ggml.scores", "a score for each token");
  std::vector<bool> can_merge(count);
  for (size_t i = 0; i < count; ++i) {
    if (!std::isfinite(scores[i])) fail("ggml.scores", message("finite numbers, at ", i));
    const std::string& token = state.vocabulary.token(static_cast<int32_t>(i));
    can_merge[i] = (types[i] == normal || types[i] == user_defined) && token.size() <= 1024;
  }
  bool prefixed = find_boolean(metadata, "ggml.add_space_prefix", true);
  nlohmann::json steps = nlohmann::json::array();
  if (prefixed) steps.push_back({{"type", "Prepend"}, {"prepend", " "}});
  steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", metaspace}});
  nlohmann::json normalizer{{"type", "Sequence"}, {"normalizers", steps}};
  state.normalizer = read_normalizer(JsonView(normalizer, "ggml.model"));
  state.decoder = {{.kind = DecodeStep::replace,
                    .content = " ",
                    .pattern = Pattern::literal(metaspace),
                    .searched = metaspace},
                   {.kind = DecodeStep::byte_fallback},
                   {.kind = DecodeStep::fuse}};
  if (prefixed)
    state.decoder.push_back(
        {.kind = DecodeStep::strip, .content = " ", .start = 1, .after_fusion = true});
  BpeOptions options;
  options.unknown = {.fused = true, .as_bytes = true};
  if (auto id = find_integer(metadata, "ggml.unknown_token_id");
      id && *id >= 0 && *id < static_cast<int64_t>(count))
    options.unknown.id = static_cast<int32_t>(*id);
  state.model =
      make_bpe(state.vocabulary, merges_by_score(state.vocabulary, scores, can_merge), options);
}

void read_special(const Metadata& metadata, TokenizerState& state, bool is_byte_level) {
  auto find_id = [&](const char* name) {
    std::string key = message("ggml.", name, "_token_id");
    auto id = find_integer(metadata, key);
    // Some files have -1 for none.
    if (!id || *id < 0 || *id == 0xffffffff) return Vocabulary::none;
    if (*id >= state.vocabulary.size())
      fail(key, message("a number below ", state.vocabulary.size(), ", got ", *id));
    return static_cast<int32_t>(*id);
  };
  constexpr std::array<std::pair<const char*, const char*>, 5> uses{{{"bos", "bos_token"},
                                                                     {"eos", "eos_token"},
                                                                     {"unknown", "unk_token"},
                                                                     {"padding", "pad_token"},
                                                                     {"mask", "mask_token"}}};
  for (const auto& [name, use] : uses) {
    if (int32_t id = find_id(name); id >= 0) {
      // A second token with the same text has another number; the number counts.
      state.special_tokens.emplace(use, state.vocabulary.token(id));
    }
  }
  for (const char* name : {"eos", "eot", "eom"}) state.add_eos(find_id(name));
  int32_t bos = find_id("bos"), eos = find_id("eos");
  if (bos >= 0 && find_boolean(metadata, "ggml.add_bos_token", !is_byte_level))
    state.before.push_back(bos);
  if (eos >= 0 && find_boolean(metadata, "ggml.add_eos_token", false)) state.after.push_back(eos);
}

}  // namespace

void read_gguf_tokenizer(const Metadata& metadata, TokenizerState& state) {
  std::string model = find_string(metadata, "ggml.model").value_or("");
  if (model != "gpt2" && model != "llama")
    fail("ggml.model", message("gpt2 or llama, got \"", model, "\""));
  std::vector<std::string> tokens = find_strings(metadata, "ggml.tokens");
  if (tokens.empty() || tokens.size() > static_cast<size_t>(Vocabulary::most))
    fail("ggml.tokens", message("1 to ", Vocabulary::most, " tokens, got ", tokens.size()));
  std::vector<int32_t> types =
      find_numbers<int32_t>(metadata, "ggml.token_type", int32, tokens.size());
  if (types.empty()) types.assign(tokens.size(), normal);
  for (size_t i = 0; i < tokens.size(); ++i) {
    auto id = static_cast<int32_t>(i);
    bool is_user_defined = types[i] == user_defined;
    // A text has no written spaces before it is normalised: such tokens come of merges.
    bool is_found = is_user_defined && tokens[i].find(metaspace) == std::string::npos;
    if (types[i] == control || types[i] == unknown_token || is_found)
      state.added.add({.id = id, .content = tokens[i], .is_special = !is_user_defined});
    state.vocabulary.add(tokens[i], id);
  }
  bool is_byte_level = model == "gpt2";
  if (is_byte_level) {
    read_byte_level(metadata, state);
  } else {
    read_sentence_piece(metadata, types, state);
  }
  read_special(metadata, state, is_byte_level);
  for (const auto& [key, value] : metadata) {
    constexpr std::string_view prefix = "tokenizer.chat_template";
    const auto* source = std::get_if<std::string>(&value);
    if (!source || !key.starts_with(prefix)) continue;
    bool is_default = key == prefix;
    if (is_default || key[prefix.size()] == '.')
      state.chat_templates.emplace(is_default ? "default" : key.substr(prefix.size() + 1), *source);
  }
  state.prepare();
}

}  // namespace holdfast::lm::tokenizing
