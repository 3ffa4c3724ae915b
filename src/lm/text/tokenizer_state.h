// The parts of a tokenizer, and who reads them from which file.
#pragma once

#include <holdfast/lm/tokenizer.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lm/text/added_tokens.h"
#include "lm/text/decoder.h"
#include "lm/text/model.h"
#include "lm/text/normalizer.h"
#include "lm/text/pre_tokenizer.h"
#include "lm/text/vocabulary.h"

namespace holdfast::lm::tokenizing {

// Not changed after it was read.
struct TokenizerState {
  Vocabulary vocabulary;  // of the model
  AddedTokens added;
  std::unique_ptr<Normalizer> normalizer;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // may be null
  std::unique_ptr<Model> model;
  std::vector<DecodeStep> decoder;
  std::vector<int32_t> before, after;  // what add_special_tokens puts around a text
  std::map<std::string, std::string> special_tokens;
  std::vector<int32_t> eos;
  std::map<std::string, std::string> chat_templates;

  void encode(std::string_view text, bool with_special, std::vector<int32_t>& ids) const;
  // Of the model, or added; none where there is no such token.
  int32_t find(std::string_view token) const;
  // Makes the token a special one of that use; does nothing where it is not in the vocabulary.
  void set_special(const std::string& use, const std::string& token);
  void add_eos(int32_t id);
  // To be called when everything was read.
  void prepare();
};

void read_tokenizer_files(const Tokenizer::Files& files, TokenizerState& state);
void read_gguf_tokenizer(const std::unordered_map<std::string, GGUFMetaData>& metadata,
                         TokenizerState& state);

// Throws ModelError where the text is no JSON.
nlohmann::json parse_json(const std::string& text, const char* name);

}  // namespace holdfast::lm::tokenizing
