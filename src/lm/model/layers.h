// The blocks that models are composed of.
//
// All work on the tokens of a step in one row: (tokens, features), whatever sequences they belong
// to.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/fast.h>

#include <holdfast/lm/config.h>
#include <holdfast/lm/model.h>

#include "lm/model/linear.h"
#include "lm/model/rope.h"
#include "lm/model/weights.h"

namespace holdfast::lm {

// What a layer remembers of sequences.
struct Cache::Layer {
  fast::KvScheme scheme;
  std::optional<array> keys, values;    // attention: blocks
  std::optional<array> inputs, states;  // delta net: of the convolution, and of the recurrence
};

// A step's numbers as arrays, shared by all layers.
struct StepArrays {
  explicit StepArrays(const Step& step);
  array tokens, positions, slots, lengths, blocks, outputs;
  std::optional<array> starts;  // left out when each sequence has one token
  fast::Sequences sequences;
};

// Loading: the files' tensors, what the config says, and the dtype of the result.
struct Loader {
  Weights& weights;
  const Config& config;
  Dtype dtype;

  array norm(const std::string& name, int size) const;
  Linear linear(const std::string& stem, int outputs, int inputs, bool has_bias = false) const {
    return take_linear(weights, stem, outputs, inputs, has_bias, dtype);
  }
};

class Attention {
 public:
  Attention(const Loader& from, const std::string& stem, Mixer kind, const Rope& rope);
  array operator()(const array& x, const StepArrays& step, Cache::Layer& cache) const;
  size_t bytes() const { return inputs_.bytes() + output_.bytes(); }

 private:
  int heads_, key_heads_, dims_, window_;
  bool has_gate_;
  float scale_, epsilon_;
  Rope rope_;
  JoinedLinear inputs_;  // queries, keys, values
  Linear output_;
  std::optional<array> query_norm_, key_norm_;
};

// Gated delta net: a convolution over the last tokens, then a recurrence with a matrix per head.
class DeltaNet {
 public:
  DeltaNet(const Loader& from, const std::string& stem);
  array operator()(const array& x, const StepArrays& step, Cache::Layer& cache) const;
  size_t bytes() const { return inputs_.bytes() + output_.bytes(); }

 private:
  int key_heads_, value_heads_, key_dims_, value_dims_;
  float epsilon_;
  JoinedLinear inputs_;  // queries, keys and values in one; the gate; beta; decay
  Linear output_;
  array convolution_;           // (channels, width)
  array rate_, offset_, norm_;  // rate: -exp(A_log)
};

// down(act(gate(x)) * up(x))
class FeedForward {
 public:
  FeedForward(const Loader& from, const std::string& stem, int size);
  array operator()(const array& x) const;
  size_t bytes() const { return gate_up_.bytes() + down_.bytes(); }

 private:
  Activation activation_;
  JoinedLinear gate_up_;
  Linear down_;
};

// The best experts of each token, weighted, and one that all tokens share.
class Experts {
 public:
  Experts(const Loader& from, const std::string& stem);
  array operator()(const array& x) const;
  size_t bytes() const;
  size_t active_bytes() const;

 private:
  int count_, chosen_;
  bool normalised_;
  Activation activation_;
  Linear router_;
  JoinedLinear gate_up_;
  Linear down_;
  std::optional<FeedForward> shared_;
  std::optional<Linear> shared_gate_;
};

array activate(const array& x, Activation activation);

struct Block {
  std::variant<Attention, DeltaNet> mixer;
  std::variant<FeedForward, Experts> feed_forward;
  array norm, feed_forward_norm;
  std::optional<array> after_mixer, after_feed_forward;  // sandwich norms

  Block(const Loader& from, int index, const Rope& rope, const Rope& sliding_rope);
  array operator()(array x, const StepArrays& step, Cache::Layer& cache, float epsilon) const;
};

struct Model::Parts {
  Config config;
  Dtype dtype;
  bool quantised;  // any of its weights
  Linear embedding;
  std::optional<Linear> head;
  array norm;
  std::vector<Block> blocks;
};

}  // namespace holdfast::lm
