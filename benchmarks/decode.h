// A small transformer that decodes token by token, from public ops only: what the benchmark of
// retaining and the demonstration run. Its weights are random; its arithmetic is real.
#pragma once

#include <holdfast/holdfast.h>

#include <cmath>
#include <utility>
#include <vector>

namespace holdfast::bench {

struct DecodeSizes {
  int width;       // of the residual stream
  int layers;      // 36 ops each
  int window;      // tokens that attention looks back on
  int vocabulary;  // tokens to choose from
};

struct DecodeLayer {
  array query, key, value, output, up, down, attention_scale, feed_scale;
};

// Shared by any number of threads; never written after it was made.
struct DecodeModel {
  DecodeSizes sizes;
  array embedding;  // vocabulary x width
  std::vector<DecodeLayer> layers;
  // Constants of the ops below, made once: a scalar operand would allocate in each step.
  array per_width, epsilon, score_scale, one, half, root_half;
};

// What one sequence remembers: keys and values of the last `window` tokens of each layer.
struct DecodeState {
  std::vector<array> keys, values;
};

inline DecodeModel make_decode_model(DecodeSizes sizes, uint64_t seed) {
  uint64_t next = seed;
  auto weight = [&](int rows, int columns) {
    float scale = 1.0f / std::sqrt(static_cast<float>(rows));
    array w = random::normal({rows, columns}, 0.0f, scale, random::key(next++));
    eval(w);
    return w;
  };
  auto constant = [](double value) { return array({static_cast<float>(value)}, {1, 1}); };
  int d = sizes.width;
  DecodeModel model{sizes,
                    weight(sizes.vocabulary, d),
                    {},
                    constant(1.0 / d),
                    constant(1e-5),
                    constant(1.0 / std::sqrt(d)),
                    constant(1),
                    constant(0.5),
                    constant(std::sqrt(0.5))};
  for (int i = 0; i < sizes.layers; ++i) {
    array ones_row = ones({1, d});
    eval(ones_row);
    model.layers.push_back({weight(d, d), weight(d, d), weight(d, d), weight(d, d),
                            weight(d, 2 * d), weight(2 * d, d), ones_row, ones_row});
  }
  return model;
}

inline DecodeState make_decode_state(const DecodeModel& model) {
  DecodeState state;
  for (int i = 0; i < model.sizes.layers; ++i) {
    state.keys.push_back(zeros({model.sizes.window, model.sizes.width}));
    state.values.push_back(zeros({model.sizes.window, model.sizes.width}));
    eval(state.keys.back(), state.values.back());
  }
  return state;
}

// One step for one token's vector x (1 x width): its new vector. Calls made(array&) with each array
// it makes, as soon as it is made; nothing but `state` and the caller holds an array longer than
// its last use here.
template <class Made>
array decode_step(const DecodeModel& model, DecodeState& state, array x, Made&& made) {
  auto normalised = [&](const array& in, const array& scale) {
    array t = square(in);
    made(t);
    t = sum(t, 1, true);
    made(t);
    t = t * model.per_width;
    made(t);
    t = t + model.epsilon;
    made(t);
    t = rsqrt(t);
    made(t);
    t = in * t;
    made(t);
    t = t * scale;
    made(t);
    return t;
  };
  // The window without its oldest row, and the new row behind it.
  auto remember = [&](array& window, array row) {
    array kept = slice(window, {1, 0}, {model.sizes.window, model.sizes.width});
    made(kept);
    window = concatenate({std::move(kept), std::move(row)}, 0);
    made(window);
  };
  auto product = [&](const array& a, const array& b) {
    array t = matmul(a, b);
    made(t);
    return t;
  };
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const DecodeLayer& layer = model.layers[i];
    {
      array h = normalised(x, layer.attention_scale);
      remember(state.keys[i], product(h, layer.key));
      remember(state.values[i], product(h, layer.value));
      h = product(h, layer.query);
      array t = transpose(state.keys[i]);
      made(t);
      h = product(h, t);
      t = h * model.score_scale;
      made(t);
      h = softmax(t, 1);
      made(h);
      t = product(h, state.values[i]);
      h = product(t, layer.output);
      x = x + h;
    }
    made(x);
    {
      array h = normalised(x, layer.feed_scale);
      h = product(h, layer.up);
      array t = h * model.root_half;
      made(t);
      t = erf(t);
      made(t);
      t = t + model.one;
      made(t);
      h = h * t;
      made(h);
      h = h * model.half;
      made(h);
      t = product(h, layer.down);
      x = x + t;
    }
    made(x);
  }
  return x;
}

}  // namespace holdfast::bench
