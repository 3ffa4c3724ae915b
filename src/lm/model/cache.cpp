#include <holdfast/eval.h>
#include <holdfast/ops.h>

#include "lm/model/layers.h"
#include "lm/support.h"

namespace holdfast::lm {
namespace {

constexpr int edge_layers = 2;

bool is_fragile(const fast::KvScheme& scheme) {
  auto turbo = [](int bits) { return bits > 0 && bits < 8; };
  return turbo(scheme.keys.bits) || scheme.values.bits == 2;
}

// The scheme of each layer's cache; those of delta nets are not looked at.
std::vector<fast::KvScheme> schemes_of(const Config& config, const CacheOptions& options) {
  fast::KvScheme inner = fast::KvScheme::named(options.scheme, config.head_dims);
  fast::KvScheme outer = inner;
  if (options.protects_edges && is_fragile(inner))
    outer = fast::KvScheme::named("affine8", config.head_dims);
  int count = static_cast<int>(config.layers.size()) - config.count(Mixer::delta_net), at = 0;
  std::vector<fast::KvScheme> schemes;
  for (Mixer mixer : config.layers) {
    bool is_edge = at < edge_layers || at >= count - edge_layers;
    schemes.push_back(is_edge ? outer : inner);
    if (mixer != Mixer::delta_net) ++at;
  }
  return schemes;
}

bool is_lost(std::optional<array>& value) {
  if (!value) return true;
  try {
    value->eval();
    value->wait();
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

size_t row_bytes(const fast::KvFormat& format, Dtype dtype) {
  return static_cast<size_t>(format.width()) * (format.bits == 0 ? dtype.size() : sizeof(uint32_t));
}

}  // namespace

Cache::Cache(const Model& model, const CacheOptions& options)
    : options_(options), config_(model.config()), dtype_(model.dtype()) {
  for (const fast::KvScheme& scheme : schemes_of(config_, options))
    layers_.push_back({scheme, {}, {}, {}, {}});
  for (size_t i = 0; i < layers_.size(); ++i) make(i);
  eval(arrays());
}

void Cache::make(size_t index) {
  Layer& layer = layers_[index];
  if (config_.layers[index] != Mixer::delta_net) {
    std::tie(layer.keys, layer.values) = fast::kv_pools(
        layer.scheme, options_.blocks, config_.key_heads, options_.block_size, dtype_);
    return;
  }
  int channels = 2 * config_.delta_key_heads * config_.delta_key_dims +
                 config_.delta_value_heads * config_.delta_value_dims;
  layer.inputs = zeros({options_.states, config_.conv_width - 1, channels}, dtype_);
  layer.states = zeros({options_.states, config_.delta_value_heads, config_.delta_value_dims,
                        config_.delta_key_dims},
                       float32);
}

bool Cache::repair() {
  bool was_lost = false;
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    bool is_attention = config_.layers[i] != Mixer::delta_net;
    if (!is_lost(is_attention ? layer.keys : layer.inputs) &&
        !is_lost(is_attention ? layer.values : layer.states))
      continue;
    layer.keys = layer.values = layer.inputs = layer.states = std::nullopt;
    make(i);
    was_lost = true;
  }
  if (was_lost) eval(arrays());
  return was_lost;
}

Cache::~Cache() = default;
Cache::Cache(Cache&&) noexcept = default;
Cache& Cache::operator=(Cache&&) noexcept = default;

std::vector<array> Cache::arrays() const {
  std::vector<array> all;
  for (const Layer& layer : layers_) {
    for (const auto* each : {&layer.keys, &layer.values, &layer.inputs, &layer.states}) {
      if (*each) all.push_back(**each);
    }
  }
  return all;
}

size_t Cache::bytes() const {
  size_t sum = 0;
  for (const array& each : arrays()) sum += each.nbytes();
  return sum;
}

size_t Cache::block_bytes(const Model& model, const CacheOptions& options) {
  const Config& config = model.config();
  std::vector<fast::KvScheme> schemes = schemes_of(config, options);
  size_t sum = 0;
  for (size_t i = 0; i < schemes.size(); ++i) {
    if (config.layers[i] == Mixer::delta_net) continue;
    sum += row_bytes(schemes[i].keys, model.dtype()) + row_bytes(schemes[i].values, model.dtype());
  }
  return sum * static_cast<size_t>(config.key_heads) * static_cast<size_t>(options.block_size);
}

size_t Cache::state_bytes(const Model& model) {
  const Config& config = model.config();
  if (!config.has(Mixer::delta_net)) return 0;
  size_t keys = static_cast<size_t>(config.delta_key_heads * config.delta_key_dims);
  size_t values = static_cast<size_t>(config.delta_value_heads * config.delta_value_dims);
  size_t of_layer =
      values * static_cast<size_t>(config.delta_key_dims) * sizeof(float) +
      (2 * keys + values) * static_cast<size_t>(config.conv_width - 1) * model.dtype().size();
  return of_layer * static_cast<size_t>(config.count(Mixer::delta_net));
}

}  // namespace holdfast::lm
