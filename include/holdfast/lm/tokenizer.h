// Text to tokens and back: byte-level BPE, BPE and unigram models as SentencePiece makes them,
// WordPiece.
//
// Text is UTF-8. Bytes that are not are replaced before anything else, each maximal ill-formed part
// by one U+FFFD, as the Unicode standard recommends; the same is done with the bytes of tokens when
// these are made text. So decode(encode(text)) has U+FFFD where the text was wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <holdfast/io.h>
#include <holdfast/lm/errors.h>

namespace holdfast::lm {

namespace tokenizing {
struct TokenizerState;
class DecodeStream;
}  // namespace tokenizing

struct EncodeOptions {
  // Adds what the model expects around every text, such as <s> before it. A chat template writes
  // these itself.
  bool add_special_tokens = true;
  // Special tokens that the text spells out become these tokens. Without it they are text like any
  // other, which is what text from outside should be.
  bool recognise_special_tokens = true;
};

// Immutable: copies share everything, and any number of threads may use one at once. What is wrong
// with its files is a ModelError that says where.
class Tokenizer {
 public:
  // Reads tokenizer.json and, where they exist, tokenizer_config.json, special_tokens_map.json,
  // generation_config.json and chat_template.jinja.
  static Tokenizer from_folder(const std::string& folder);
  // The contents of such files; only the first is needed.
  struct Files {
    std::string tokenizer{}, tokenizer_config{}, special_tokens_map{}, generation_config{},
        chat_template{};
  };
  static Tokenizer from_files(const Files& files);
  // The metadata of a GGUF file, as load_gguf returns it.
  static Tokenizer from_gguf(const std::unordered_map<std::string, GGUFMetaData>& metadata);

  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;
  // A number that no token has decodes to nothing, since models often have more outputs than
  // tokens; a negative one throws RequestError.
  std::string decode(const std::vector<int32_t>& ids, bool skip_special_tokens = false) const;

  // One more than the greatest number of a token.
  int32_t size() const;
  std::optional<int32_t> id_of(std::string_view token) const;
  // The token as the vocabulary writes it, which is not its text ("Ġthe"); empty where there is
  // none.
  std::string token(int32_t id) const;
  bool is_special(int32_t id) const;

  // The tokens that end a text or a turn: those that the files name, and special tokens that are
  // known to end a turn (<|im_end|>,
  // <|eot_id|>, <end_of_turn> and others).
  const std::vector<int32_t>& eos_ids() const;
  bool is_eos(int32_t id) const;
  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> pad_id() const;
  // The special tokens by their use, as chat templates name them: "bos_token", "eos_token",
  // "unk_token", "pad_token".
  const std::map<std::string, std::string>& special_tokens() const;
  // The model's chat template of that name; empty when it has none.
  std::string chat_template(const std::string& name = "default") const;

 private:
  friend class Detokenizer;
  explicit Tokenizer(std::shared_ptr<const tokenizing::TokenizerState> state);
  std::shared_ptr<const tokenizing::TokenizerState> state_;
};

// The text of tokens that come one after the other. What it has returned never changes any more:
// the bytes of a character are held back until it is whole, so that all that it returns, put
// together, is what `decode` makes of all tokens. Owned by one thread at a time.
//
// Some tokenizers drop a space at the beginning of a text: it is dropped from the first token here,
// not from later ones. Some drop text at its end: it is held back until `finish`.
class Detokenizer {
 public:
  explicit Detokenizer(Tokenizer tokenizer, bool skip_special_tokens = true);
  ~Detokenizer();
  Detokenizer(Detokenizer&&) noexcept;
  Detokenizer& operator=(Detokenizer&&) noexcept;

  // The text that this token finishes, often none.
  std::string add(int32_t id);
  // What was held back, with an unfinished character as U+FFFD. A new text begins afterwards.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  bool skip_special_tokens_;
  std::unique_ptr<tokenizing::DecodeStream> stream_;
};

// Finds the first of some strings in a text that comes in parts, wherever the parts begin: of
// several, that which ends first, and of those the longest. Owned by one thread at a time.
class StopMatcher {
 public:
  // An empty string is a RequestError.
  explicit StopMatcher(std::vector<std::string> stops);

  // The text that is certain not to belong to a stop string. After one was found, nothing more.
  std::string add(std::string_view text);
  // What was held back, as the text ends without a stop string.
  std::string finish();
  // Which of the strings was found.
  std::optional<size_t> found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::optional<size_t> found_;
};

}  // namespace holdfast::lm
