// Which sequences run, on which blocks, and what the next step computes. Used by the engine's
// thread alone.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include <holdfast/lm/engine.h>
#include <holdfast/lm/model.h>

#include "lm/engine/blocks.h"
#include "lm/engine/sequence.h"

namespace holdfast::lm::engine {

// Of a step: the sequences that it computes, in its order, and how many of their tokens.
struct Plan {
  struct Part {
    Sequence* sequence;
    int tokens;
    int output;  // the row of its logits; -1: it does not reach its last token
  };
  Step step;
  std::vector<Part> parts;
};

class Scheduler {
 public:
  // `steady_tokens`: steps are filled up to so many.
  Scheduler(const EngineOptions& options, int blocks, bool has_states, bool has_attention,
            int steady_tokens);

  void add(std::unique_ptr<Sequence> sequence);
  bool is_idle() const { return waiting_.empty() && running_.empty(); }

  // Removes what was cancelled; gives these back, without blocks.
  std::vector<std::unique_ptr<Sequence>> take_cancelled();
  // Admits what fits, makes room for what runs, and says what to compute: nothing when nothing
  // runs.
  Plan plan();
  // After the step: its tokens are in the cache.
  void advance(const Plan& plan);
  // Ends a running sequence.
  std::unique_ptr<Sequence> remove(Sequence* sequence);
  // After a step that failed: its sequences lose what they had, and wait to be computed again. With
  // `lost`, all do, and nothing that was kept serves any more.
  void restart(const Plan& plan, bool lost);
  // Those of `sequences` that wait; they are compared, not followed.
  std::vector<std::unique_ptr<Sequence>> take_waiting(const std::vector<Sequence*>& sequences);
  // Everything, as the engine ends.
  std::vector<std::unique_ptr<Sequence>> take_all();

  void count(Metrics& metrics) const;

 private:
  void admit();
  void reuse_prefix(Sequence& sequence);
  // Blocks for so many more tokens, if need be those of younger sequences; false when there are not
  // enough.
  bool reserve(Sequence& sequence, size_t tokens);
  bool preempt_younger(const Sequence& sequence);
  void release(Sequence& sequence);
  void to_waiting(size_t index);
  void add_part(Plan& plan, Sequence& sequence, int tokens);
  void pad(Step& step) const;
  size_t blocks_for(size_t tokens) const {
    return has_attention_ ? (tokens + block_size_ - 1) / block_size_ : 0;
  }

  EngineOptions options_;
  size_t block_size_;
  bool has_states_, has_attention_;
  int steady_tokens_;
  Blocks blocks_;
  std::vector<int> free_states_;
  std::deque<std::unique_ptr<Sequence>> waiting_;   // in order of arrival
  std::vector<std::unique_ptr<Sequence>> running_;  // in order of arrival
  uint64_t preempted_ = 0, reused_tokens_ = 0;
};

}  // namespace holdfast::lm::engine
