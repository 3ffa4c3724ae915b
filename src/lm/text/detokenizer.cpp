#include <holdfast/lm/tokenizer.h>

#include <algorithm>

#include "lm/text/tokenizer_state.h"

namespace holdfast::lm {

using tokenizing::DecodeStream;

Detokenizer::Detokenizer(Tokenizer tokenizer, bool skip_special_tokens)
    : tokenizer_(std::move(tokenizer)),
      skip_special_tokens_(skip_special_tokens),
      stream_(std::make_unique<DecodeStream>(tokenizer_.state_->decoder)) {}

Detokenizer::~Detokenizer() = default;
Detokenizer::Detokenizer(Detokenizer&&) noexcept = default;
Detokenizer& Detokenizer::operator=(Detokenizer&&) noexcept = default;

std::string Detokenizer::add(int32_t id) {
  if (id < 0) throw RequestError(message("[decode] a token has the number ", id));
  const tokenizing::TokenizerState& state = *tokenizer_.state_;
  if (const tokenizing::AddedToken* added = state.added.find(id)) {
    if (added->is_special && skip_special_tokens_) return "";
    return stream_->add(added->content);
  }
  return state.vocabulary.has(id) ? stream_->add(state.vocabulary.token(id)) : "";
}

std::string Detokenizer::finish() { return stream_->finish(); }

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  if (std::find(stops_.begin(), stops_.end(), "") != stops_.end())
    throw RequestError("[StopMatcher] a stop string is empty");
}

std::string StopMatcher::add(std::string_view text) {
  if (found_) return "";
  held_ += text;
  size_t begin = 0, end = std::string::npos;
  for (size_t i = 0; i < stops_.size(); ++i) {
    size_t at = held_.find(stops_[i]);
    if (at == std::string::npos) continue;
    size_t at_end = at + stops_[i].size();
    if (at_end < end || (at_end == end && at < begin)) begin = at, end = at_end, found_ = i;
  }
  size_t kept = 0;  // what may be the beginning of a stop string
  if (!found_) {
    for (const std::string& stop : stops_) {
      size_t length = std::min(held_.size(), stop.size() - 1);
      while (length > kept && !held_.ends_with(std::string_view(stop).substr(0, length))) --length;
      kept = std::max(kept, length);
    }
    begin = held_.size() - kept;
  }
  std::string certain = held_.substr(0, begin);
  held_.erase(0, found_ ? std::string::npos : begin);
  return certain;
}

std::string StopMatcher::finish() { return std::exchange(held_, {}); }

}  // namespace holdfast::lm
