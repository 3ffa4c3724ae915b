// What makes tokens of a word: the "model" of tokenizer.json.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lm/text/json_view.h"
#include "lm/text/vocabulary.h"

namespace holdfast::lm::tokenizing {

// Any thread may call it.
class Model {
 public:
  virtual ~Model() = default;
  // Appends the tokens of a word, which is valid UTF-8 and not empty.
  virtual void encode(std::string_view word, std::vector<int32_t>& ids) const = 0;
};

// What is made of characters that the vocabulary does not have.
struct Unknown {
  int32_t id = Vocabulary::none;  // none: nothing
  bool fused = false;             // several in a row are one token
  bool as_bytes = false;          // as the tokens <0x00> to <0xFF>, where they are all there
};

// A pair of tokens that is merged into `result`; smaller ranks first, and of equal ones that which
// is further left.
struct Merge {
  int32_t left, right, result, rank;
};

struct BpeOptions {
  Unknown unknown;
  bool ignores_merges = false;  // a word that is a token is that token
  std::string continuing_prefix, end_suffix;
};

// The vocabulary must outlive the model.
std::unique_ptr<Model> make_bpe(const Vocabulary& vocabulary, const std::vector<Merge>& merges,
                                BpeOptions options);
// The best sum of the tokens' scores, which are indexed by number.
std::unique_ptr<Model> make_unigram(const Vocabulary& vocabulary, std::vector<double> scores,
                                    Unknown unknown);

// Adds the tokens of the model to the vocabulary, which must outlive it.
std::unique_ptr<Model> read_model(const JsonView& json, Vocabulary& vocabulary);

// The tokens of bytes, or an empty list when any is missing.
std::vector<int32_t> byte_tokens(const Vocabulary& vocabulary);
std::string byte_token(unsigned char byte);

}  // namespace holdfast::lm::tokenizing
