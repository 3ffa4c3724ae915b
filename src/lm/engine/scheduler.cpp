#include "lm/engine/scheduler.h"

#include <algorithm>
#include <map>

namespace holdfast::lm::engine {
namespace {

constexpr int smallest_chunk = 16;  // tokens of a prompt in a step, where several share one

}  // namespace

Scheduler::Scheduler(const EngineOptions& options, int blocks, bool has_states, bool has_attention,
                     int steady_tokens)
    : options_(options),
      block_size_(static_cast<size_t>(options.block_size)),
      has_states_(has_states),
      has_attention_(has_attention),
      steady_tokens_(steady_tokens),
      blocks_(blocks, options.block_size) {
  for (int state = options.batch; state-- > 0;) free_states_.push_back(state);
}

void Scheduler::add(std::unique_ptr<Sequence> sequence) {
  // What ran before is older than what arrived since.
  auto at = std::find_if(waiting_.begin(), waiting_.end(),
                         [&](const auto& other) { return other->number > sequence->number; });
  waiting_.insert(at, std::move(sequence));
}

std::vector<std::unique_ptr<Sequence>> Scheduler::take_cancelled() {
  std::vector<std::unique_ptr<Sequence>> cancelled;
  auto take_from = [&](auto& sequences) {
    for (auto& sequence : sequences) {
      if (!sequence->channel->is_cancelled()) continue;
      release(*sequence);
      cancelled.push_back(std::move(sequence));
    }
    std::erase(sequences, nullptr);
  };
  take_from(waiting_);
  take_from(running_);
  return cancelled;
}

// Of those that wait, the oldest of the owner who has the fewest running comes first.
void Scheduler::admit() {
  std::map<std::string, int> running_of;
  for (const auto& sequence : running_) ++running_of[sequence->request.owner];
  while (!waiting_.empty() && running_.size() < static_cast<size_t>(options_.batch)) {
    auto next =
        std::min_element(waiting_.begin(), waiting_.end(), [&](const auto& a, const auto& b) {
          return running_of[a->request.owner] < running_of[b->request.owner];
        });
    Sequence& sequence = **next;
    reuse_prefix(sequence);
    // All of what it has to compute, so that it does not take blocks away soon after.
    size_t needed = blocks_for(sequence.tokens.size() + 1) - sequence.blocks.size();
    if (!blocks_.can_take(static_cast<int>(needed))) {
      release(sequence);
      return;
    }
    if (has_states_) {
      sequence.state = free_states_.back();
      free_states_.pop_back();
    }
    if (!sequence.has_started) {
      sequence.channel->count_prompt(static_cast<int>(sequence.prompt_size),
                                     static_cast<int>(sequence.computed));
      reused_tokens_ += sequence.computed;
    }
    sequence.has_started = true;
    ++running_of[sequence.request.owner];
    auto place = std::find_if(running_.begin(), running_.end(),
                              [&](const auto& other) { return other->number > sequence.number; });
    running_.insert(place, std::move(*next));
    waiting_.erase(next);
    // Now, since the next that is admitted counts on those that are left.
    reserve(sequence, sequence.tokens.size() + 1);
  }
}

// States are not kept, so models that have some compute each prompt.
void Scheduler::reuse_prefix(Sequence& sequence) {
  if (!options_.reuses_prefixes || has_states_ || !has_attention_) return;
  // The last token is computed anyway: its logits are wanted.
  while ((sequence.published + 1) * block_size_ < sequence.tokens.size()) {
    std::span<const int> tokens(sequence.tokens.data() + sequence.published * block_size_,
                                block_size_);
    int block = blocks_.find(sequence.chain, tokens);
    if (block < 0) break;
    sequence.blocks.push_back(block);
    ++sequence.published;
  }
  sequence.computed = sequence.published * block_size_;
}

bool Scheduler::reserve(Sequence& sequence, size_t tokens) {
  while (sequence.blocks.size() < blocks_for(tokens)) {
    int block = blocks_.take();
    if (block >= 0) {
      sequence.blocks.push_back(block);
    } else if (!preempt_younger(sequence)) {
      return false;
    }
  }
  return true;
}

bool Scheduler::preempt_younger(const Sequence& sequence) {
  if (running_.back().get() == &sequence) return false;
  to_waiting(running_.size() - 1);
  ++preempted_;
  return true;
}

void Scheduler::to_waiting(size_t index) {
  std::unique_ptr<Sequence> sequence = std::move(running_[index]);
  running_.erase(running_.begin() + static_cast<int64_t>(index));
  release(*sequence);
  add(std::move(sequence));
}

void Scheduler::release(Sequence& sequence) {
  // The last first: of a prefix that is kept, its end is given away before its beginning.
  while (!sequence.blocks.empty()) {
    blocks_.release(sequence.blocks.back());
    sequence.blocks.pop_back();
  }
  if (sequence.state >= 0) free_states_.push_back(sequence.state);
  sequence.state = -1;
  sequence.computed = sequence.published = 0;
  sequence.chain = 0;
}

void Scheduler::add_part(Plan& plan, Sequence& sequence, int tokens) {
  Step& step = plan.step;
  const bool reaches_end = static_cast<size_t>(tokens) == sequence.remaining();
  step.starts.push_back(static_cast<int>(step.tokens.size()));
  for (int i = 0; i < tokens; ++i) {
    size_t position = sequence.computed + static_cast<size_t>(i);
    step.tokens.push_back(sequence.tokens[position]);
    step.positions.push_back(static_cast<int>(position));
    step.slots.push_back(has_attention_ ? sequence.blocks[position / block_size_] *
                                                  static_cast<int>(block_size_) +
                                              static_cast<int>(position % block_size_)
                                        : -1);
  }
  step.lengths.push_back(static_cast<int>(sequence.computed) + tokens);
  step.blocks.push_back(sequence.blocks);
  step.states.push_back(sequence.state);
  step.fresh.push_back(sequence.computed == 0);
  plan.parts.push_back(
      {&sequence, tokens, reaches_end ? static_cast<int>(step.outputs.size()) : -1});
  if (reaches_end) step.outputs.push_back(static_cast<int>(step.tokens.size()) - 1);
}

// With tokens that are kept nowhere and see nothing.
void Scheduler::pad(Step& step) const {
  while (static_cast<int>(step.tokens.size()) < steady_tokens_) {
    step.starts.push_back(static_cast<int>(step.tokens.size()));
    step.tokens.push_back(0);
    step.positions.push_back(0);
    step.slots.push_back(-1);
    step.lengths.push_back(0);
    step.blocks.emplace_back();
    step.states.push_back(-1);
    step.fresh.push_back(false);
  }
  while (!step.outputs.empty() && static_cast<int>(step.outputs.size()) < steady_tokens_)
    step.outputs.push_back(step.outputs.back());
}

Plan Scheduler::plan() {
  admit();
  // Room for the next token of each, the oldest first; the youngest make it, if need be.
  for (size_t i = 0; i < running_.size(); ++i) {
    if (!reserve(*running_[i], running_[i]->tokens.size() + 1)) to_waiting(i--);
  }
  Plan plan;
  int prompts = 0;
  for (const auto& sequence : running_) prompts += sequence->remaining() > 1;
  int budget = options_.prefill_tokens;
  for (const auto& sequence : running_) {
    auto remaining = static_cast<int>(sequence->remaining());
    if (remaining == 1) {
      add_part(plan, *sequence, 1);
      continue;
    }
    if (budget == 0) continue;
    int share = std::max(smallest_chunk, options_.prefill_tokens / prompts);
    int chunk = std::min({remaining, share, budget});
    budget -= chunk;
    add_part(plan, *sequence, chunk);
  }
  if (plan.parts.empty()) return plan;
  pad(plan.step);
  plan.step.starts.push_back(static_cast<int>(plan.step.tokens.size()));
  if (!has_states_) {
    plan.step.states.clear();
    plan.step.fresh.clear();
  }
  return plan;
}

void Scheduler::advance(const Plan& plan) {
  for (const Plan::Part& part : plan.parts) {
    Sequence& sequence = *part.sequence;
    sequence.computed += static_cast<size_t>(part.tokens);
    if (!options_.reuses_prefixes || has_states_ || !has_attention_) continue;
    while ((sequence.published + 1) * block_size_ <= sequence.computed) {
      std::span<const int> tokens(sequence.tokens.data() + sequence.published * block_size_,
                                  block_size_);
      sequence.chain = blocks_.publish(sequence.blocks[sequence.published], sequence.chain, tokens);
      ++sequence.published;
    }
  }
}

std::unique_ptr<Sequence> Scheduler::remove(Sequence* sequence) {
  auto at = std::find_if(running_.begin(), running_.end(),
                         [&](const auto& each) { return each.get() == sequence; });
  std::unique_ptr<Sequence> removed = std::move(*at);
  running_.erase(at);
  release(*removed);
  return removed;
}

void Scheduler::restart(const Plan& plan, bool lost) {
  if (lost) blocks_.forget();
  for (size_t i = running_.size(); i-- > 0;) {
    Sequence* sequence = running_[i].get();
    bool was_in_step = std::any_of(plan.parts.begin(), plan.parts.end(),
                                   [&](const auto& part) { return part.sequence == sequence; });
    if (was_in_step) ++sequence->failed_steps;
    if (was_in_step || lost) to_waiting(i);
  }
}

std::vector<std::unique_ptr<Sequence>> Scheduler::take_waiting(
    const std::vector<Sequence*>& sequences) {
  std::vector<std::unique_ptr<Sequence>> taken;
  for (auto& sequence : waiting_) {
    if (std::find(sequences.begin(), sequences.end(), sequence.get()) != sequences.end())
      taken.push_back(std::move(sequence));
  }
  std::erase(waiting_, nullptr);
  return taken;
}

std::vector<std::unique_ptr<Sequence>> Scheduler::take_all() {
  std::vector<std::unique_ptr<Sequence>> all;
  for (auto& sequence : running_) all.push_back(std::move(sequence));
  for (auto& sequence : waiting_) all.push_back(std::move(sequence));
  running_.clear();
  waiting_.clear();
  for (auto& sequence : all) release(*sequence);
  return all;
}

void Scheduler::count(Metrics& metrics) const {
  metrics.queued = static_cast<int>(waiting_.size());
  metrics.running = static_cast<int>(running_.size());
  metrics.blocks = blocks_.count();
  metrics.free_blocks = blocks_.free();
  metrics.kept_blocks = blocks_.kept();
  metrics.preempted = preempted_;
  metrics.reused_tokens = reused_tokens_;
}

}  // namespace holdfast::lm::engine
