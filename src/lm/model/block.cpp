#include <holdfast/ops.h>

#include "lm/model/layers.h"
#include "lm/support.h"

namespace holdfast::lm {
namespace {

std::variant<Attention, DeltaNet> mixer_of(const Loader& from, const std::string& stem, Mixer kind,
                                           const Rope& rope, const Rope& sliding_rope) {
  if (kind == Mixer::delta_net) return DeltaNet(from, stem + "linear_attn.");
  return Attention(from, stem + "self_attn.", kind,
                   kind == Mixer::sliding_attention ? sliding_rope : rope);
}

std::variant<FeedForward, Experts> feed_forward_of(const Loader& from, const std::string& stem,
                                                   bool sparse) {
  if (sparse) return Experts(from, stem + "mlp.");
  return FeedForward(from, stem + "mlp.", from.config.feed_forward);
}

std::string stem_of(int index) { return "layers." + std::to_string(index) + "."; }

}  // namespace

array Loader::norm(const std::string& name, int size) const {
  array weight = weights.take_floats(name, {size}, config.offset_norms ? float32 : dtype);
  if (config.offset_norms) weight = astype(add(weight, array(1.0f)), dtype);
  return weights.keep(std::move(weight), name);
}

Block::Block(const Loader& from, int index, const Rope& rope, const Rope& sliding_rope)
    : mixer(mixer_of(from, stem_of(index), from.config.layers[static_cast<size_t>(index)], rope,
                     sliding_rope)),
      feed_forward(
          feed_forward_of(from, stem_of(index), from.config.sparse[static_cast<size_t>(index)])),
      norm(from.norm(stem_of(index) + "input_layernorm.weight", from.config.hidden)),
      feed_forward_norm(from.norm(
          stem_of(index) + (from.config.sandwich_norms ? "pre_feedforward_layernorm.weight"
                                                       : "post_attention_layernorm.weight"),
          from.config.hidden)) {
  if (!from.config.sandwich_norms) return;
  after_mixer = from.norm(stem_of(index) + "post_attention_layernorm.weight", from.config.hidden);
  after_feed_forward =
      from.norm(stem_of(index) + "post_feedforward_layernorm.weight", from.config.hidden);
}

array Block::operator()(array x, const StepArrays& step, Cache::Layer& cache, float epsilon) const {
  array y = fast::rms_norm(x, norm, epsilon);
  y = std::visit([&](const auto& mix) { return mix(y, step, cache); }, mixer);
  if (after_mixer) y = fast::rms_norm(y, *after_mixer, epsilon);
  x = add(std::move(x), std::move(y));
  y = fast::rms_norm(x, feed_forward_norm, epsilon);
  y = std::visit([&](const auto& forward) { return forward(y); }, feed_forward);
  if (after_feed_forward) y = fast::rms_norm(y, *after_feed_forward, epsilon);
  return add(std::move(x), std::move(y));
}

}  // namespace holdfast::lm
