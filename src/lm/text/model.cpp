#include "lm/text/model.h"

#include <cmath>

#include "lm/text/utf8.h"

namespace holdfast::lm::tokenizing {
namespace {

// The longest token, at each place, that the vocabulary has; what continues a word has a prefix
// there.
class WordPiece : public Model {
 public:
  WordPiece(const Vocabulary& vocabulary, int32_t unknown, std::string prefix, size_t longest)
      : vocabulary_(vocabulary), unknown_(unknown), prefix_(std::move(prefix)), longest_(longest) {}

  void encode(std::string_view word, std::vector<int32_t>& ids) const override {
    size_t before = ids.size();
    if (count_code_points(word) > longest_ || !encode_word(word, ids)) {
      ids.resize(before);
      ids.push_back(unknown_);
    }
  }

 private:
  bool encode_word(std::string_view word, std::vector<int32_t>& ids) const {
    std::string candidate;
    for (size_t begin = 0; begin < word.size();) {
      size_t end = word.size();
      int32_t id = Vocabulary::none;
      for (; end > begin; --end) {
        if (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xc0) == 0x80) continue;
        candidate = begin == 0 ? "" : prefix_;
        candidate += word.substr(begin, end - begin);
        id = vocabulary_.find(candidate);
        if (id != Vocabulary::none) break;
      }
      if (id == Vocabulary::none) return false;
      ids.push_back(id);
      begin = end;
    }
    return true;
  }

  const Vocabulary& vocabulary_;
  int32_t unknown_;
  std::string prefix_;
  size_t longest_;  // in characters
};

// Words are tokens.
class WordLevel : public Model {
 public:
  WordLevel(const Vocabulary& vocabulary, int32_t unknown)
      : vocabulary_(vocabulary), unknown_(unknown) {}
  void encode(std::string_view word, std::vector<int32_t>& ids) const override {
    int32_t id = vocabulary_.find(word);
    ids.push_back(id == Vocabulary::none ? unknown_ : id);
  }

 private:
  const Vocabulary& vocabulary_;
  int32_t unknown_;
};

void read_vocabulary(const JsonView& json, Vocabulary& vocabulary) {
  if (!json.value().is_object()) json.fail("an object of tokens and their numbers");
  for (const auto& [token, id] : json.value().items()) {
    vocabulary.add(token,
                   static_cast<int32_t>(
                       JsonView(id, json.path() + "." + token).integer(0, Vocabulary::most - 1)));
  }
}

int32_t read_token(const JsonView& json, const Vocabulary& vocabulary) {
  int32_t id = vocabulary.find(json.string());
  if (id == Vocabulary::none) json.fail("a token of the vocabulary");
  return id;
}

std::unique_ptr<Model> read_bpe(const JsonView& json, Vocabulary& vocabulary) {
  read_vocabulary(json["vocab"], vocabulary);
  if (json.has("dropout") && json["dropout"].number() != 0)
    json["dropout"].fail("none: dropout is for training");
  BpeOptions options;
  if (json.has("unk_token")) options.unknown.id = read_token(json["unk_token"], vocabulary);
  options.unknown.fused = json.boolean_or("fuse_unk", false);
  options.unknown.as_bytes = json.boolean_or("byte_fallback", false);
  options.ignores_merges = json.boolean_or("ignore_merges", false);
  options.continuing_prefix = json.string_or("continuing_subword_prefix", "");
  options.end_suffix = json.string_or("end_of_word_suffix", "");
  JsonView list = json["merges"];
  std::vector<Merge> merges;
  for (size_t i = 0; i < list.size(); ++i) {
    std::string left, right;
    // Older files write "left right".
    const nlohmann::json& merge = list.value()[i];
    if (merge.is_string()) {
      const std::string& pair = merge.get_ref<const std::string&>();
      size_t space = pair.find(' ');
      if (space == std::string::npos || pair.find(' ', space + 1) != std::string::npos)
        list[i].fail("two tokens with a space between them");
      left = pair.substr(0, space), right = pair.substr(space + 1);
    } else if (merge.is_array() && merge.size() == 2) {
      left = list[i][size_t{0}].string(), right = list[i][size_t{1}].string();
    } else {
      list[i].fail("two tokens");
    }
    std::string result = left;
    result += right.starts_with(options.continuing_prefix)
                  ? right.substr(options.continuing_prefix.size())
                  : right;
    int32_t ids[3] = {vocabulary.find(left), vocabulary.find(right), vocabulary.find(result)};
    if (ids[0] < 0 || ids[1] < 0 || ids[2] < 0)
      list[i].fail(message("tokens of the vocabulary, as is \"", result, "\""));
    merges.push_back({ids[0], ids[1], ids[2], static_cast<int32_t>(i)});
  }
  return make_bpe(vocabulary, merges, std::move(options));
}

std::unique_ptr<Model> read_unigram(const JsonView& json, Vocabulary& vocabulary) {
  JsonView list = json["vocab"];
  std::vector<double> scores;
  for (size_t i = 0; i < list.size(); ++i) {
    JsonView entry = list[i];
    if (entry.size() != 2) entry.fail("a token and its score");
    double score = entry[size_t{1}].number();
    if (!std::isfinite(score)) entry[size_t{1}].fail("a finite number");
    vocabulary.add(entry[size_t{0}].string(), static_cast<int32_t>(i));
    scores.push_back(score);
  }
  if (scores.empty()) list.fail("at least one token");
  Unknown unknown;
  if (json.has("unk_id"))
    unknown.id =
        static_cast<int32_t>(json["unk_id"].integer(0, static_cast<int64_t>(scores.size()) - 1));
  unknown.as_bytes = json.boolean_or("byte_fallback", false);
  return make_unigram(vocabulary, std::move(scores), unknown);
}

}  // namespace

std::unique_ptr<Model> read_model(const JsonView& json, Vocabulary& vocabulary) {
  // Files of older versions do not say which model it is.
  std::string type = json.string_or("type", json.has("merges") ? "BPE" : "");
  if (type == "BPE") return read_bpe(json, vocabulary);
  if (type == "Unigram") return read_unigram(json, vocabulary);
  if (type == "WordPiece" || type == "WordLevel") {
    read_vocabulary(json["vocab"], vocabulary);
    int32_t unknown = read_token(json["unk_token"], vocabulary);
    if (type == "WordLevel") return std::make_unique<WordLevel>(vocabulary, unknown);
    int64_t longest = json.has("max_input_chars_per_word")
                          ? json["max_input_chars_per_word"].integer(0, 1 << 12)
                          : 100;
    return std::make_unique<WordPiece>(vocabulary, unknown,
                                       json.string_or("continuing_subword_prefix", "##"),
                                       static_cast<size_t>(longest));
  }
  json["type"].fail("BPE, Unigram, WordPiece or WordLevel");
}

}  // namespace holdfast::lm::tokenizing
