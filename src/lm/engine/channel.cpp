#include "lm/engine/channel.h"

#include <stdexcept>

#include <holdfast/lm/errors.h>

namespace holdfast::lm {
namespace engine {

void Channel::push(Piece piece) {
  {
    std::lock_guard lock(mutex_);
    if (finish_) return;
    if (piece.token >= 0 && usage_.generated_tokens++ == 0)
      usage_.first_token = Clock::now() - begin_;
    pieces_.push_back(std::move(piece));
  }
  changed_.notify_all();
}

void Channel::end(Finish finish, const std::string& error) {
  {
    std::lock_guard lock(mutex_);
    if (finish_) return;
    finish_ = finish;
    error_ = error;
    usage_.total = Clock::now() - begin_;
  }
  changed_.notify_all();
}

void Channel::count_prompt(int tokens, int reused) {
  std::lock_guard lock(mutex_);
  usage_.prompt_tokens = tokens;
  usage_.reused_tokens = reused;
}

bool Channel::next(std::optional<Clock::time_point> deadline, std::optional<Piece>& piece) {
  std::unique_lock lock(mutex_);
  auto is_ready = [&] { return !pieces_.empty() || finish_; };
  if (!deadline) {
    changed_.wait(lock, is_ready);
  } else if (!changed_.wait_until(lock, *deadline, is_ready)) {
    return false;
  }
  piece.reset();
  if (!pieces_.empty()) {
    piece = std::move(pieces_.front());
    pieces_.pop_front();
  } else if (*finish_ == Finish::failed) {
    throw RequestError(error_);
  }
  return true;
}

std::optional<Finish> Channel::finish() const {
  std::lock_guard lock(mutex_);
  return finish_;
}

Usage Channel::usage() const {
  std::lock_guard lock(mutex_);
  return usage_;
}

}  // namespace engine

const char* name_of(Finish finish) {
  switch (finish) {
    case Finish::end_token:
      return "end_token";
    case Finish::stop:
      return "stop";
    case Finish::length:
      return "length";
    case Finish::cancelled:
      return "cancelled";
    case Finish::failed:
      return "failed";
  }
  return "?";
}

Generation::~Generation() { cancel(); }

Generation& Generation::operator=(Generation&& other) noexcept {
  if (this != &other) {
    cancel();
    channel_ = std::move(other.channel_);
  }
  return *this;
}

engine::Channel& Generation::channel() const {
  if (!channel_) throw std::invalid_argument("[lm::Generation] it was moved from");
  return *channel_;
}

std::optional<Piece> Generation::next() {
  std::optional<Piece> piece;
  channel().next(std::nullopt, piece);
  return piece;
}

bool Generation::next_for(std::chrono::nanoseconds timeout, std::optional<Piece>& piece) {
  return channel().next(engine::Channel::Clock::now() + timeout, piece);
}

std::string Generation::text() {
  std::string all;
  while (std::optional<Piece> piece = next()) all += piece->text;
  return all;
}

std::vector<int> Generation::tokens() {
  std::vector<int> all;
  while (std::optional<Piece> piece = next()) {
    if (piece->token >= 0) all.push_back(piece->token);
  }
  return all;
}

void Generation::cancel() noexcept {
  if (channel_) channel_->cancel();
}

std::optional<Finish> Generation::finish() const { return channel().finish(); }
Usage Generation::usage() const { return channel().usage(); }

}  // namespace holdfast::lm
