// Models: their weights, what they remember of sequences, and one step of computing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/dtype.h>
#include <holdfast/stream.h>

#include <holdfast/lm/config.h>

namespace holdfast::lm {

struct LoadProgress {
  size_t bytes = 0, total_bytes = 0;  // of the files
  std::string tensor;                 // the one that was loaded last
};

struct LoadOptions {
  // What is computed in, and what unquantised weights are kept in. By default that of the file's
  // embeddings.
  std::optional<Dtype> dtype = {};
  std::function<void(const LoadProgress&)> progress = {};
  StreamOrDevice stream = {};
};

// How a model of random weights is made.
struct RandomOptions {
  Dtype dtype = float32;
  int bits = 0;  // of the weights: 0 for unquantised, else affine in groups of `group_size`
  int group_size = 64;
  uint64_t seed = 0;
  StreamOrDevice stream = {};
};

// How sequences are remembered: keys and values in blocks, states of delta nets in rows.
struct CacheOptions {
  int blocks = 0;
  int block_size = 32;  // tokens; a power of two from 16 to 256
  int states = 0;       // sequences with states at one time
  // "dense" (the model's dtype), "affine8", "turbo4v2" and the other schemes of fast::KvScheme.
  std::string scheme = "dense";
  // With turbo keys, or values of 2 bits, the first two and last two attention layers use affine8.
  bool protects_edges = true;
};

// Where tokens go: a step computes tokens of several sequences, one sequence after the other.
struct Step {
  std::vector<int> tokens;
  std::vector<int> positions;  // of each token in its sequence
  std::vector<int> slots;      // of each token: block * block size + place; below 0: kept nowhere
  std::vector<int> starts;     // of each sequence's tokens, and the end of the last
  std::vector<int> lengths;    // of each sequence, these tokens included
  std::vector<std::vector<int>> blocks;  // of each sequence, in order
  std::vector<int> states;               // of each sequence: the row of its states
  std::vector<bool> fresh;               // of each sequence: begins with states of zeros
  std::vector<int> outputs;              // the tokens (indices) whose logits are wanted
};

class Cache;

// Immutable once it is loaded: any number of threads may use it.
class Model {
 public:
  // `path`: a Hugging Face folder (config.json, safetensors, maybe with an index) or a GGUF file.
  // Quantised weights of MLX, Q4_0, Q4_1 and Q8_0 stay as they are; Q5_0, Q5_1 and the K types
  // become the dtype that is computed in. ModelError says what is wrong with the files.
  static std::shared_ptr<const Model> load(const std::string& path,
                                           const LoadOptions& options = {});
  static std::shared_ptr<const Model> random(const Config& config,
                                             const RandomOptions& options = {});
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Config& config() const;
  Dtype dtype() const;
  size_t bytes() const;         // of the weights
  size_t active_bytes() const;  // of those that one token meets
  // With at least so many tokens in each step, what a token gets does not depend, by a bit, on the
  // others.
  int steady_tokens() const;

  // The logits (outputs, vocabulary) in float32, not evaluated. The cache's arrays are replaced by
  // those after the step. Only one thread at a time may use a cache.
  array forward(const Step& step, Cache& cache) const;
  // The logits of all tokens of one sequence: (tokens, vocabulary).
  array logits(const std::vector<int>& tokens) const;

  struct Parts;
  explicit Model(std::unique_ptr<Parts> parts);
  const Parts& parts() const { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

class Cache {
 public:
  Cache(const Model& model, const CacheOptions& options);
  ~Cache();
  Cache(Cache&&) noexcept;
  Cache& operator=(Cache&&) noexcept;

  const CacheOptions& options() const { return options_; }
  // All arrays, for evaluation together with logits.
  std::vector<array> arrays() const;
  size_t bytes() const;
  // Of a block in all layers, and of a row of states.
  static size_t block_bytes(const Model& model, const CacheOptions& options);
  static size_t state_bytes(const Model& model);
  // After a step that failed: arrays that hold an error are made anew, of zeros, which loses what
  // all sequences had. True when there were such.
  bool repair();

  struct Layer;
  std::vector<Layer>& layers() { return layers_; }

 private:
  void make(size_t layer);

  CacheOptions options_;
  Config config_;
  Dtype dtype_;
  std::vector<Layer> layers_;
};

}  // namespace holdfast::lm
