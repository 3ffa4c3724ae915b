#include "lm/text/decoder.h"

#include <algorithm>

#include "lm/text/normalizer.h"
#include "lm/text/pre_tokenizer.h"
#include "lm/text/utf8.h"

namespace holdfast::lm::tokenizing {
namespace {

std::string replaced(std::string text, std::string_view searched, std::string_view with) {
  for (size_t at = text.find(searched); at != std::string::npos;
       at = text.find(searched, at + with.size()))
    text.replace(at, searched.size(), with);
  return text;
}

// The spaces that word pieces leave before punctuation and in contractions of English.
std::string cleaned_up(std::string text) {
  constexpr std::pair<const char*, const char*> changes[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : changes) text = replaced(std::move(text), from, to);
  return text;
}

// Characters that stand for bytes as these bytes; a token that has others is kept as it is.
std::string bytes_of_characters(const std::string& token) {
  std::string bytes;
  for (size_t i = 0; i < token.size();) {
    int byte = byte_of_character(next_code_point(token, i));
    if (byte < 0) return token;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

int hexadecimal_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if ((c | 32) >= 'a' && (c | 32) <= 'f') return (c | 32) - 'a' + 10;
  return -1;
}

std::string byte_of_token(std::string token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return token;
  int high = hexadecimal_digit(token[3]), low = hexadecimal_digit(token[4]);
  return high < 0 || low < 0 ? token : std::string(1, static_cast<char>(high << 4 | low));
}

// How much of the end of `text` is the beginning of `searched`, but not all of it.
size_t begun_at_end(std::string_view text, std::string_view searched) {
  size_t length = std::min(text.size(), searched.size() - 1);
  while (length > 0 && !text.ends_with(searched.substr(0, length))) --length;
  return length;
}

DecodeStep read_replace(const JsonView& json, bool after_fusion) {
  JsonView pattern = json["pattern"];
  DecodeStep step{.kind = DecodeStep::replace, .content = json["content"].string()};
  if (pattern.has("Regex")) {
    if (after_fusion)
      pattern["Regex"].fail("a string, as this step comes after the tokens were made one text");
    step.pattern = Pattern::expression(pattern["Regex"].string(), pattern.path());
  } else {
    step.searched = pattern["String"].string();
    step.pattern = Pattern::literal(step.searched);
  }
  return step;
}

DecodeStep read_strip(const JsonView& json) {
  DecodeStep step{.kind = DecodeStep::strip, .content = json["content"].string()};
  if (step.content.empty()) json["content"].fail("a character");
  step.start = static_cast<size_t>(json["start"].integer(0, 1 << 20));
  step.stop = static_cast<size_t>(json["stop"].integer(0, 1 << 20));
  return step;
}

void read_steps(const JsonView& json, int depth, std::vector<DecodeStep>& steps) {
  const std::string& type = json["type"].string();
  bool fused =
      !steps.empty() && (steps.back().after_fusion || steps.back().kind == DecodeStep::fuse ||
                         steps.back().kind == DecodeStep::byte_level);
  if (type == "Sequence") {
    if (depth == deepest_sequence)
      throw ModelError(
          message(json.path(), ": more than ", deepest_sequence, " sequences inside each other"));
    JsonView list = json["decoders"];
    for (size_t i = 0; i < list.size(); ++i) read_steps(list[i], depth + 1, steps);
    return;
  }
  if (steps.size() == 64) throw ModelError(message(json.path(), ": more than 64 steps"));
  DecodeStep step{.kind = DecodeStep::fuse};
  if (type == "ByteLevel") {
    step.kind = DecodeStep::byte_level;
  } else if (type == "ByteFallback") {
    step.kind = DecodeStep::byte_fallback;
  } else if (type == "Fuse") {
    if (fused) return;
  } else if (type == "Replace") {
    step = read_replace(json, fused);
  } else if (type == "Strip") {
    step = read_strip(json);
  } else if (type == "Metaspace") {
    bool prefixed = json.string_or("prepend_scheme", "always") != "never";
    step = {.kind = DecodeStep::metaspace,
            .content = json.string_or("replacement", metaspace),
            .drops_first = prefixed && json.boolean_or("add_prefix_space", true)};
    if (step.content.empty()) json["replacement"].fail("a character");
  } else if (type == "WordPiece") {
    step = {.kind = DecodeStep::word_piece,
            .content = json.string_or("prefix", "##"),
            .cleans_up = json.boolean_or("cleanup", true)};
  } else if (type == "BPEDecoder") {
    step = {.kind = DecodeStep::end_suffix, .content = json.string_or("suffix", "</w>")};
  } else {
    json["type"].fail(
        "ByteLevel, ByteFallback, Metaspace, Fuse, Strip, Replace, WordPiece, BPEDecoder or "
        "Sequence");
  }
  step.after_fusion = fused;
  if (fused && step.kind != DecodeStep::strip && step.kind != DecodeStep::replace)
    throw ModelError(message(
        json.path(), ": ", type,
        " works on tokens, but they were made one text before; only Strip and Replace can follow"));
  steps.push_back(std::move(step));
}

}  // namespace

std::vector<DecodeStep> read_decoder(const JsonView& json) {
  std::vector<DecodeStep> steps;
  read_steps(json, 0, steps);
  return steps;
}

std::vector<DecodeStep> no_decoder() { return {{.kind = DecodeStep::separate}}; }

void DecodeStream::start() {
  states_.assign(steps_->size(), State{});
  bytes_.clear();
}

std::string DecodeStream::add(std::string_view token) {
  pass(0, std::string(token));
  size_t length = finished_length(bytes_);
  std::string text = valid_utf8(std::string_view(bytes_).substr(0, length));
  bytes_.erase(0, length);
  return text;
}

std::string DecodeStream::finish() {
  for (size_t i = 0; i < states_.size(); ++i) {
    std::string last = last_of((*steps_)[i], states_[i]);
    if (!last.empty()) pass(i + 1, std::move(last));
  }
  std::string text = valid_utf8(bytes_);
  start();
  return text;
}

void DecodeStream::pass(size_t step, std::string token) {
  for (; step < steps_->size(); ++step) {
    const DecodeStep& next = (*steps_)[step];
    token = next.after_fusion ? apply_to_text(next, states_[step], std::move(token))
                              : apply(next, states_[step], std::move(token));
    states_[step].any = true;
  }
  bytes_ += token;
}

std::string DecodeStream::apply(const DecodeStep& step, State& state, std::string token) {
  switch (step.kind) {
    case DecodeStep::byte_level:
      return is_valid_utf8(token) ? bytes_of_characters(token) : token;
    case DecodeStep::byte_fallback:
      return byte_of_token(std::move(token));
    case DecodeStep::fuse:
      return token;
    case DecodeStep::replace:
      // A byte by itself, made by an earlier step, is nothing that a pattern of characters could
      // match.
      return is_valid_utf8(token) ? step.pattern.replace_all(token, step.content) : token;
    case DecodeStep::strip: {
      std::string_view rest = token;
      for (size_t i = 0; i < step.start && rest.starts_with(step.content); ++i)
        rest.remove_prefix(step.content.size());
      for (size_t i = 0; i < step.stop && rest.ends_with(step.content); ++i)
        rest.remove_suffix(step.content.size());
      return std::string(rest);
    }
    case DecodeStep::metaspace:
      return replaced(std::move(token), step.content, !state.any && step.drops_first ? "" : " ");
    case DecodeStep::word_piece: {
      if (state.any) {
        if (token.starts_with(step.content)) {
          token.erase(0, step.content.size());
        } else {
          token.insert(0, " ");
        }
      }
      return step.cleans_up ? cleaned_up(std::move(token)) : token;
    }
    case DecodeStep::end_suffix: {
      std::string before = std::move(state.held);
      state.held = std::move(token);
      return replaced(std::move(before), step.content, " ");
    }
    case DecodeStep::separate:
      return state.any ? " " + token : token;
  }
  return token;
}

std::string DecodeStream::apply_to_text(const DecodeStep& step, State& state, std::string part) {
  std::string text = std::move(state.held) + part;
  state.held.clear();
  if (step.kind == DecodeStep::replace) {
    if (step.searched.empty()) return text;
    std::string result;
    size_t done = 0;
    for (size_t at; (at = text.find(step.searched, done)) != std::string::npos;
         done = at + step.searched.size()) {
      result.append(text, done, at - done);
      result += step.content;
    }
    std::string_view rest = std::string_view(text).substr(done);
    size_t kept = begun_at_end(rest, step.searched);
    result += rest.substr(0, rest.size() - kept);
    state.held = rest.substr(rest.size() - kept);
    return result;
  }
  std::string_view rest = text;
  size_t kept = 0;
  if (state.stripping) {
    for (; state.stripped < step.start && rest.starts_with(step.content); ++state.stripped)
      rest.remove_prefix(step.content.size());
    // An unfinished character may be one more.
    if (state.stripped < step.start && step.content.starts_with(rest)) {
      kept = rest.size();
    } else {
      state.stripping = rest.empty();
    }
  }
  if (step.stop > 0) {
    size_t begun = begun_at_end(rest, step.content), end = rest.size() - begun, times = 0;
    for (; times < step.stop && rest.substr(0, end).ends_with(step.content); ++times)
      end -= step.content.size();
    kept = std::max(kept, rest.size() - end);
  }
  state.held = rest.substr(rest.size() - kept);
  return std::string(rest.substr(0, rest.size() - kept));
}

std::string DecodeStream::last_of(const DecodeStep& step, State& state) {
  std::string held = std::move(state.held);
  state.held.clear();
  if (step.kind == DecodeStep::end_suffix) return replaced(std::move(held), step.content, "");
  if (step.kind == DecodeStep::strip) {
    for (size_t i = 0; i < step.stop && held.ends_with(step.content); ++i)
      held.resize(held.size() - step.content.size());
  }
  return held;
}

}  // namespace holdfast::lm::tokenizing
