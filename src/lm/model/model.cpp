#include <holdfast/lm/model.h>

#include <cmath>

#include <holdfast/eval.h>
#include <holdfast/ops.h>

#include <holdfast/lm/errors.h>

#include "lm/model/layers.h"
#include "lm/support.h"

namespace holdfast::lm {
namespace {

array integers(const std::vector<int>& values) {
  return array(values.begin(), {static_cast<int>(values.size())}, int32);
}

// Rows of different lengths, filled up with zeros.
array table_of(const std::vector<std::vector<int>>& rows) {
  size_t longest = 1;
  for (const std::vector<int>& row : rows) longest = std::max(longest, row.size());
  std::vector<int> all(rows.size() * longest, 0);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(), all.begin() + static_cast<int64_t>(i * longest));
  return array(all.begin(), {static_cast<int>(rows.size()), static_cast<int>(longest)}, int32);
}

void check_step(const Step& step, const Config& config) {
  size_t tokens = step.tokens.size(), sequences = step.lengths.size();
  auto fail = [](const std::string& what) { throw std::invalid_argument("[lm::forward] " + what); };
  if (tokens == 0) fail("expected at least one token");
  if (step.positions.size() != tokens || step.slots.size() != tokens)
    fail(message("expected a position and a slot for each of ", tokens, " tokens, got ",
                 step.positions.size(), " and ", step.slots.size()));
  if (step.starts.size() != sequences + 1 || step.blocks.size() != sequences)
    fail(message("expected ", sequences, " + 1 starts and as many rows of blocks as lengths, got ",
                 step.starts.size(), " and ", step.blocks.size()));
  if (step.starts.front() != 0 || step.starts.back() != static_cast<int>(tokens))
    fail(message("starts must go from 0 to the number of tokens (", tokens, ")"));
  if (config.has(Mixer::delta_net) &&
      (step.states.size() != sequences || step.fresh.size() != sequences))
    fail(message("expected a row of states for each of ", sequences, " sequences"));
  for (int token : step.tokens) {
    if (token < 0 || token >= config.vocabulary)
      fail(message("expected tokens from 0 to ", config.vocabulary - 1, ", got ", token));
  }
  for (int output : step.outputs) {
    if (output < 0 || output >= static_cast<int>(tokens))
      fail(message("expected outputs below ", tokens, ", got ", output));
  }
}

}  // namespace

StepArrays::StepArrays(const Step& step)
    : tokens(integers(step.tokens)),
      positions(integers(step.positions)),
      slots(integers(step.slots)),
      lengths(integers(step.lengths)),
      blocks(table_of(step.blocks)),
      outputs(integers(step.outputs)) {
  if (step.tokens.size() != step.lengths.size()) starts = integers(step.starts);
  sequences.starts = starts;
  if (!step.states.empty()) {
    sequences.slots = integers(step.states);
    sequences.fresh = array(step.fresh.begin(), {static_cast<int>(step.fresh.size())}, bool_);
  }
}

Model::Model(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Model::~Model() = default;
const Config& Model::config() const { return parts_->config; }
Dtype Model::dtype() const { return parts_->dtype; }

size_t Model::bytes() const {
  size_t sum = parts_->embedding.bytes();
  if (parts_->head) sum += parts_->head->bytes();
  for (const Block& block : parts_->blocks) {
    auto bytes_of = [](const auto& part) { return part.bytes(); };
    sum += std::visit(bytes_of, block.mixer) + std::visit(bytes_of, block.feed_forward);
  }
  return sum;
}

size_t Model::active_bytes() const {
  size_t sum = parts_->head ? parts_->head->bytes() : parts_->embedding.bytes();
  for (const Block& block : parts_->blocks) {
    sum += std::visit([](const auto& part) { return part.bytes(); }, block.mixer);
    if (const auto* experts = std::get_if<Experts>(&block.feed_forward)) {
      sum += experts->active_bytes();
    } else {
      sum += std::get<FeedForward>(block.feed_forward).bytes();
    }
  }
  return sum;
}

// Products of few rows with quantised weights, and of one row with others, are computed in another
// way than those of many (quantized_matmul).
int Model::steady_tokens() const { return parts_->quantised ? 7 : 2; }

array Model::forward(const Step& step, Cache& cache) const {
  const Config& config = parts_->config;
  check_step(step, config);
  StepArrays arrays(step);
  array x = parts_->embedding.rows(arrays.tokens, parts_->dtype);
  if (config.scaled_embeddings) {
    // As the models were trained: the root rounded to bfloat16.
    array root = astype(array(std::sqrt(static_cast<float>(config.hidden))), bfloat16);
    x = multiply(x, astype(root, x.dtype()));
  }
  for (size_t i = 0; i < parts_->blocks.size(); ++i)
    x = parts_->blocks[i](std::move(x), arrays, cache.layers()[i], config.norm_epsilon);
  x = fast::rms_norm(take(x, arrays.outputs, 0), parts_->norm, config.norm_epsilon);
  return astype((parts_->head ? *parts_->head : parts_->embedding)(x), float32);
}

array Model::logits(const std::vector<int>& tokens) const {
  const int count = static_cast<int>(tokens.size()), block_size = 64;
  const int blocks = (count + block_size - 1) / block_size;
  Cache cache(*this, {.blocks = blocks, .block_size = block_size, .states = 1});
  Step step;
  step.tokens = tokens;
  step.starts = {0, count};
  step.lengths = {count};
  step.states = {0};
  step.fresh = {true};
  step.blocks.emplace_back();
  for (int i = 0; i < blocks; ++i) step.blocks[0].push_back(i);
  for (int i = 0; i < count; ++i) {
    step.positions.push_back(i);
    step.slots.push_back(i);
    step.outputs.push_back(i);
  }
  return forward(step, cache);
}

}  // namespace holdfast::lm
