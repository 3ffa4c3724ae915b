// A small causal transformer over characters, and the Adam optimiser: plain functions of arrays, so
// that transforms (value_and_grad, checkpoint, compile) apply to them as they are.
#pragma once

#include <cmath>
#include <vector>

#include <holdfast/holdfast.h>

namespace transformer {

namespace hf = holdfast;

struct Config {
  int vocabulary = 64;
  int context = 64;  // tokens in a sequence
  int width = 64;
  int heads = 4;
  int layers = 2;
  bool checkpoint = false;  // keep only the input of each layer for the backward pass
};

// Where the parameters of a layer begin in the list, and how many there are.
enum LayerParameter { norm1, query_key_value, attention_out, norm2, up, down, per_layer };
inline size_t layer_start(int layer) { return 2 + static_cast<size_t>(layer) * per_layer; }

// Embeddings of tokens and of positions, the layers, the last norm, the output matrix.
inline std::vector<hf::array> make_parameters(const Config& c, uint64_t seed = 0) {
  hf::array key = hf::random::key(seed);
  auto matrix = [&](int rows, int columns, float scale) {
    auto [next, own] = hf::random::split(key);
    key = next;
    return hf::random::normal({rows, columns}, hf::float32, 0.0f, scale, own);
  };
  int d = c.width;
  float scale = 1 / std::sqrt(static_cast<float>(d));
  float residual = scale / std::sqrt(2.0f * static_cast<float>(c.layers));
  std::vector<hf::array> p = {matrix(c.vocabulary, d, 0.1f), matrix(c.context, d, 0.1f)};
  for (int i = 0; i < c.layers; ++i) {
    p.push_back(hf::ones({d}));
    p.push_back(matrix(d, 3 * d, scale));
    p.push_back(matrix(d, d, residual));
    p.push_back(hf::ones({d}));
    p.push_back(matrix(d, 4 * d, scale));
    p.push_back(matrix(4 * d, d, residual / 2));
  }
  p.push_back(hf::ones({d}));
  p.push_back(matrix(d, c.vocabulary, scale));
  return p;
}

inline hf::array gelu(const hf::array& x) {
  return x * 0.5f * (1.0f + hf::erf(x * static_cast<float>(M_SQRT1_2)));
}

// `x`: (batch, tokens, width); p: the parameters of the layer.
inline hf::array layer(const Config& c, const hf::array& x, const std::vector<hf::array>& p) {
  int batch = x.shape(0), tokens = x.shape(1), size = c.width / c.heads;
  auto heads = [&](const hf::array& a) {
    return hf::transpose(hf::reshape(a, {batch, tokens, c.heads, size}), {0, 2, 1, 3});
  };
  hf::array normed = hf::fast::rms_norm(x, p[norm1], 1e-5f);
  std::vector<hf::array> qkv = hf::split(hf::matmul(normed, p[query_key_value]), 3, -1);
  hf::array mixed =
      hf::fast::scaled_dot_product_attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]),
                                             1 / std::sqrt(static_cast<float>(size)), "causal");
  mixed = hf::reshape(hf::transpose(mixed, {0, 2, 1, 3}), x.shape());
  hf::array y = x + hf::matmul(mixed, p[attention_out]);
  hf::array inner = hf::matmul(hf::fast::rms_norm(y, p[norm2], 1e-5f), p[up]);
  return y + hf::matmul(gelu(inner), p[down]);
}

// tokens: (batch, tokens) integers; the result: (batch, tokens, vocabulary).
inline hf::array logits(const Config& c, const std::vector<hf::array>& p, const hf::array& tokens) {
  hf::array positions = hf::slice(p[1], {0, 0}, {tokens.shape(1), c.width});
  hf::array x = hf::take(p[0], tokens, 0) + positions;
  auto run = [c](const std::vector<hf::array>& in) {
    return std::vector<hf::array>{layer(c, in[0], {in.begin() + 1, in.end()})};
  };
  std::function<std::vector<hf::array>(const std::vector<hf::array>&)> step = run;
  if (c.checkpoint) step = hf::checkpoint(run);
  for (int i = 0; i < c.layers; ++i) {
    auto first = p.begin() + static_cast<std::ptrdiff_t>(layer_start(i));
    std::vector<hf::array> in = {x};
    in.insert(in.end(), first, first + per_layer);
    x = step(in)[0];
  }
  size_t last = layer_start(c.layers);
  return hf::matmul(hf::fast::rms_norm(x, p[last], 1e-5f), p[last + 1]);
}

// The mean cross entropy of the next token.
inline hf::array loss(const Config& c, const std::vector<hf::array>& p, const hf::array& tokens,
                      const hf::array& next) {
  hf::array scores = logits(c, p, tokens);
  hf::array picked = hf::take_along_axis(scores, hf::expand_dims(next, -1), -1);
  return hf::mean(hf::logsumexp(scores, -1, true) - picked);
}

// What training changes: the parameters, then Adam's two averages of each gradient.
inline std::vector<hf::array> make_state(std::vector<hf::array> parameters) {
  size_t count = parameters.size();
  for (int average = 0; average < 2; ++average) {
    for (size_t i = 0; i < count; ++i) parameters.push_back(hf::zeros_like(parameters[i]));
  }
  return parameters;
}

// One step: from the state, the step's number (from 1), tokens and next tokens to the new state and
// the loss. Everything that changes is an argument, so that it can be compiled.
inline std::vector<hf::array> train_step(const Config& c, const std::vector<hf::array>& in,
                                         float rate) {
  constexpr float beta1 = 0.9f, beta2 = 0.99f, epsilon = 1e-8f;
  size_t count = (in.size() - 3) / 3;
  const hf::array &number = in[3 * count], &tokens = in[3 * count + 1], &next = in[3 * count + 2];
  std::vector<hf::array> p(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<int> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = static_cast<int>(i);
  auto [value, gradients] = hf::value_and_grad(
      [&](const std::vector<hf::array>& q) { return loss(c, q, tokens, next); }, all)(p);

  hf::array correction1 = 1.0f - hf::power(hf::array(beta1), number);
  hf::array correction2 = 1.0f - hf::power(hf::array(beta2), number);
  std::vector<hf::array> out, means, squares;
  for (size_t i = 0; i < count; ++i) {
    const hf::array& g = gradients[i];
    means.push_back(in[count + i] * beta1 + g * (1 - beta1));
    squares.push_back(in[2 * count + i] * beta2 + g * g * (1 - beta2));
    hf::array direction = (means[i] / correction1) / (hf::sqrt(squares[i] / correction2) + epsilon);
    out.push_back(p[i] - rate * direction);
  }
  out.insert(out.end(), means.begin(), means.end());
  out.insert(out.end(), squares.begin(), squares.end());
  out.push_back(value);
  return out;
}

}  // namespace transformer
