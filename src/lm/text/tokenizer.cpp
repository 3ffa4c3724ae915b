#include <holdfast/lm/tokenizer.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "lm/text/tokenizer_state.h"
#include "lm/text/utf8.h"

namespace holdfast::lm {
namespace tokenizing {
namespace {

// Tokens that end a turn whatever the files say: models are published with files that forget one.
constexpr std::array<const char*, 12> turn_ends{
    "<|im_end|>",    "<|eot_id|>",      "<|eom_id|>", "<end_of_turn>", "<|end|>",
    "<|endoftext|>", "<|end_of_text|>", "<eos>",      "</s>",          "<|END_OF_TURN_TOKEN|>",
    "<|eot|>",       "<|return|>"};

}  // namespace

void TokenizerState::encode(std::string_view text, bool with_special,
                            std::vector<int32_t>& ids) const {
  auto encode_word = [&](const Piece& word) {
    if (!word.text.empty()) model->encode(word.text, ids);
  };
  auto add_token = [&](int32_t id) { ids.push_back(id); };
  std::string normalised_text;
  added.split(
      text, false, with_special,
      [&](std::string_view part, bool part_is_first) {
        if (normalizer) part = normalised_text = normalizer->apply(std::string(part));
        added.split(
            part, true, with_special,
            [&](std::string_view piece, bool is_first) {
              Piece whole{piece, part_is_first && is_first};
              if (pre_tokenizer) {
                pre_tokenizer->split(whole, encode_word);
              } else {
                encode_word(whole);
              }
            },
            add_token);
      },
      add_token);
}

int32_t TokenizerState::find(std::string_view token) const {
  if (const AddedToken* known = added.find(token)) return known->id;
  return vocabulary.find(token);
}

void TokenizerState::set_special(const std::string& use, const std::string& token) {
  int32_t id = find(token);
  if (id == Vocabulary::none) return;
  special_tokens.emplace(use, token);
  if (!added.find(id)) added.add({.id = id, .content = token, .is_special = true});
}

void TokenizerState::add_eos(int32_t id) {
  if (id >= 0 && std::find(eos.begin(), eos.end(), id) == eos.end()) eos.push_back(id);
}

void TokenizerState::prepare() {
  for (const char* name : turn_ends) {
    const AddedToken* token = added.find(std::string_view(name));
    if (token && token->is_special) add_eos(token->id);
  }
  added.prepare(normalizer.get());
}

}  // namespace tokenizing

using tokenizing::AddedToken;
using tokenizing::TokenizerState;
using tokenizing::Vocabulary;

Tokenizer::Tokenizer(std::shared_ptr<const TokenizerState> state) : state_(std::move(state)) {}

Tokenizer Tokenizer::from_files(const Files& files) {
  auto state = std::make_shared<TokenizerState>();
  tokenizing::read_tokenizer_files(files, *state);
  return Tokenizer(std::move(state));
}

Tokenizer Tokenizer::from_folder(const std::string& folder) {
  auto path = [&](const char* name) { return (std::filesystem::path(folder) / name).string(); };
  auto read_if_there = [&](const char* name) {
    std::error_code error;
    return std::filesystem::exists(path(name), error) ? read_text_file(path(name)) : "";
  };
  Files files;
  files.tokenizer = read_text_file(path("tokenizer.json"));
  files.tokenizer_config = read_if_there("tokenizer_config.json");
  files.special_tokens_map = read_if_there("special_tokens_map.json");
  files.generation_config = read_if_there("generation_config.json");
  files.chat_template = read_if_there("chat_template.jinja");
  try {
    return from_files(files);
  } catch (const ModelError& error) {
    throw ModelError(message("[Tokenizer] ", folder, ": ", error.what()));
  }
}

Tokenizer Tokenizer::from_gguf(const std::unordered_map<std::string, GGUFMetaData>& metadata) {
  auto state = std::make_shared<TokenizerState>();
  tokenizing::read_gguf_tokenizer(metadata, *state);
  return Tokenizer(std::move(state));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4 + 8);
  if (options.add_special_tokens)
    ids.insert(ids.end(), state_->before.begin(), state_->before.end());
  std::string replaced;
  if (!tokenizing::is_valid_utf8(text)) text = replaced = tokenizing::valid_utf8(text);
  state_->encode(text, options.recognise_special_tokens, ids);
  if (options.add_special_tokens) ids.insert(ids.end(), state_->after.begin(), state_->after.end());
  return ids;
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const {
  Detokenizer stream(*this, skip_special_tokens);
  std::string text;
  for (int32_t id : ids) text += stream.add(id);
  return text += stream.finish();
}

int32_t Tokenizer::size() const {
  int32_t size = state_->vocabulary.size();
  for (const AddedToken& token : state_->added.all()) size = std::max(size, token.id + 1);
  return size;
}

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  int32_t id = state_->find(token);
  return id == Vocabulary::none ? std::nullopt : std::optional(id);
}

std::string Tokenizer::token(int32_t id) const {
  const AddedToken* added = state_->added.find(id);
  return added ? added->content : state_->vocabulary.token(id);
}

bool Tokenizer::is_special(int32_t id) const {
  const AddedToken* added = state_->added.find(id);
  return added && added->is_special;
}

const std::vector<int32_t>& Tokenizer::eos_ids() const { return state_->eos; }

bool Tokenizer::is_eos(int32_t id) const {
  return std::find(state_->eos.begin(), state_->eos.end(), id) != state_->eos.end();
}

std::optional<int32_t> Tokenizer::bos_id() const {
  auto found = state_->special_tokens.find("bos_token");
  return found == state_->special_tokens.end() ? std::nullopt : id_of(found->second);
}

std::optional<int32_t> Tokenizer::pad_id() const {
  auto found = state_->special_tokens.find("pad_token");
  return found == state_->special_tokens.end() ? std::nullopt : id_of(found->second);
}

const std::map<std::string, std::string>& Tokenizer::special_tokens() const {
  return state_->special_tokens;
}

std::string Tokenizer::chat_template(const std::string& name) const {
  auto found = state_->chat_templates.find(name);
  return found == state_->chat_templates.end() ? "" : found->second;
}

}  // namespace holdfast::lm
