// fast::gated_delta and fast::causal_conv against their definitions.
#include "ops/numeric_testing.h"

using namespace holdfast;
using namespace holdfast::testing;
using fast::Sequences;

namespace {

// Which tokens and states belong together, of sequences with `counts` tokens.
struct Layout {
  std::vector<int> counts, slots;
  std::vector<bool> fresh;
  std::vector<bool> mask;  // of all tokens

  int tokens() const {
    int all = 0;
    for (int count : counts) all += count;
    return all;
  }
  Sequences sequences() const {
    const int count = static_cast<int>(counts.size());
    std::vector<int> starts{0};
    for (int each : counts) starts.push_back(starts.back() + each);
    // Every second element of something twice as long.
    auto strided = [](const array& a) {
      const int size = a.shape(0);
      return slice(repeat(a, 2, 0), {1}, {2 * size}, {2});
    };
    Sequences result;
    result.starts = strided(array(starts.begin(), {count + 1}, int32));
    result.slots = strided(array(slots.begin(), {count}, int32));
    result.fresh = strided(array(fresh.begin(), {count}, bool_));
    result.mask = strided(array(mask.begin(), {tokens()}, bool_));
    return result;
  }
};

Layout draw(RandomArrays& random, int states) {
  Layout layout;
  std::vector<int> free;
  for (int i = 0; i < states; ++i) free.push_back(i);
  for (size_t i = free.size(); i > 1; --i)
    std::swap(free[i - 1], free[size_t(random.pick(0, int(i) - 1))]);
  for (int i = 0; i < states - 1; ++i) {
    layout.counts.push_back(random.pick(0, 3) == 0 ? random.pick(33, 70) : random.pick(0, 6));
    layout.slots.push_back(random.pick(0, 4) == 0 ? -1 : free[size_t(i)]);
    layout.fresh.push_back(random.flip());
  }
  for (int i = 0; i < layout.tokens(); ++i) layout.mask.push_back(random.pick(0, 4) != 0);
  return layout;
}

struct Delta {
  array queries, keys, values, decay, beta, states;
  bool by_feature;
};

Delta draw_delta(RandomArrays& random, int tokens, int states, int key_heads, int heads,
                 int key_dims, int value_dims, Dtype dtype, bool by_feature) {
  // Keys of norm one and decays below one, so that states stay small.
  array keys = random.dense({tokens, key_heads, key_dims}, float32);
  keys = divide(keys, sqrt(sum(square(keys), -1, true)));
  Shape decay{tokens, heads};
  if (by_feature) decay.push_back(key_dims);
  return {random.strided({tokens, key_heads, key_dims}, dtype),
          astype(keys, dtype),
          random.strided({tokens, heads, value_dims}, dtype),
          sigmoid(random.strided(decay, float32)),
          sigmoid(random.strided({tokens, heads}, float32)),
          random.dense({states, heads, value_dims, key_dims}, float32),
          by_feature};
}

// {y, states} by the definition, in double.
std::pair<std::vector<double>, std::vector<double>> reference(const Delta& x,
                                                              const Layout& layout) {
  const int key_heads = x.keys.shape(1), key_dims = x.keys.shape(2);
  const int heads = x.values.shape(1), value_dims = x.values.shape(2);
  const auto q = doubles_of(x.queries), k = doubles_of(x.keys), v = doubles_of(x.values);
  const auto g = doubles_of(x.decay), b = doubles_of(x.beta);
  std::vector<double> states = doubles_of(x.states), y(v.size(), 0);
  size_t token = 0;
  for (size_t s = 0; s < layout.counts.size(); ++s) {
    const int slot = layout.slots[s];
    const size_t size = size_t(heads * value_dims * key_dims);
    if (slot >= 0 && layout.fresh[s])
      std::fill_n(states.begin() + long(size_t(slot) * size), size, 0.0);
    for (int t = 0; t < layout.counts[s]; ++t, ++token) {
      if (slot < 0 || !layout.mask[token]) continue;
      for (int h = 0; h < heads; ++h) {
        const size_t key =
            (token * size_t(key_heads) + size_t(h / (heads / key_heads))) * size_t(key_dims);
        const size_t row = token * size_t(heads) + size_t(h);
        for (int d = 0; d < value_dims; ++d) {
          double* state = &states[size_t(slot) * size + size_t((h * value_dims + d) * key_dims)];
          double known = 0, result = 0;
          for (int i = 0; i < key_dims; ++i) {
            state[i] *= g[x.by_feature ? row * size_t(key_dims) + size_t(i) : row];
            known += state[i] * k[key + size_t(i)];
          }
          const double delta = (v[row * size_t(value_dims) + size_t(d)] - known) * b[row];
          for (int i = 0; i < key_dims; ++i) {
            state[i] += delta * k[key + size_t(i)];
            result += state[i] * q[key + size_t(i)];
          }
          y[row * size_t(value_dims) + size_t(d)] = result;
        }
      }
    }
  }
  return {y, states};
}

std::pair<array, array> run(const Delta& x, const Sequences& sequences) {
  return fast::gated_delta(x.queries, x.keys, x.values, x.decay, x.beta, x.states, sequences);
}

struct Conv {
  array x, weight, states;
  std::optional<array> bias;
};

std::pair<std::vector<double>, std::vector<double>> reference(const Conv& conv,
                                                              const Layout& layout) {
  const int channels = conv.weight.shape(0), width = conv.weight.shape(1);
  const auto x = doubles_of(conv.x), w = doubles_of(conv.weight);
  const auto bias = conv.bias ? doubles_of(*conv.bias) : std::vector<double>(size_t(channels), 0);
  std::vector<double> states = doubles_of(conv.states), y(x.size(), 0);
  size_t token = 0;
  for (size_t s = 0; s < layout.counts.size(); ++s) {
    const int slot = layout.slots[s];
    const size_t size = size_t((width - 1) * channels);
    std::vector<double> memory(size, 0);
    if (slot >= 0 && !layout.fresh[s]) {
      std::copy_n(states.begin() + long(size_t(slot) * size), size, memory.begin());
    }
    for (int t = 0; t < layout.counts[s]; ++t, ++token) {
      if (slot < 0 || !layout.mask[token]) continue;
      for (int c = 0; c < channels; ++c) memory.push_back(x[token * size_t(channels) + size_t(c)]);
      for (int c = 0; c < channels; ++c) {
        double sum = bias[size_t(c)];
        for (int i = 0; i < width; ++i)
          sum += w[size_t(c * width + i)] * memory[size_t(i * channels + c)];
        y[token * size_t(channels) + size_t(c)] = sum;
      }
      memory.erase(memory.begin(), memory.begin() + channels);
    }
    if (slot >= 0) std::copy_n(memory.begin(), size, states.begin() + long(size_t(slot) * size));
  }
  return {y, states};
}

}  // namespace

TEST_CASE("the gated delta rule over random sequences, slots, masks and dtypes") {
  RandomArrays random(61);
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    const Dtype dtypes[] = {float32, float16, bfloat16};
    const Dtype dtype = dtypes[random.pick(0, 2)];
    const int states = random.pick(2, 5), key_heads = random.pick(1, 2);
    const Layout layout = draw(random, states);
    const Delta x =
        draw_delta(random, layout.tokens(), states, key_heads, key_heads * random.pick(1, 3),
                   random.flip() ? 32 * random.pick(1, 4) : random.pick(1, 40), random.pick(1, 40),
                   dtype, random.flip());
    const auto [y, after] = run(x, layout.sequences());
    const auto [expected, expected_after] = reference(x, layout);
    CHECK(y.dtype() == dtype);
    // Keys of norm one and decays below one: no step makes an error larger, and each adds a few
    // units for each feature.
    check_close(after, x.states.shape(), expected_after, 1e-5);
    check_close(y, x.values.shape(), expected, dtype == float32 ? 2e-5 : rounding_of(dtype));
  }
}

TEST_CASE("tokens of as many for each sequence, and states without slots") {
  RandomArrays random(62);
  Layout layout{{3, 3}, {0, 1}, {false, false}, std::vector<bool>(6, true)};
  Delta x = draw_delta(random, 6, 2, 2, 4, 32, 8, float32, true);
  const auto [ragged, ragged_states] = run(x, layout.sequences());
  auto split_tokens = [](const array& a) { return unflatten(a, 0, {2, 3}); };
  Delta even{split_tokens(x.queries),
             split_tokens(x.keys),
             split_tokens(x.values),
             split_tokens(x.decay),
             split_tokens(x.beta),
             x.states,
             true};
  const auto [y, states] = run(even, {});
  CHECK(array_equal(y, split_tokens(ragged)).item<bool>());
  CHECK(array_equal(states, ragged_states).item<bool>());
}

TEST_CASE("a chunk of tokens, one after the other, or among others: the same bits") {
  RandomArrays random(63);
  const int tokens = 45;
  const Layout whole{{tokens}, {1}, {true}, std::vector<bool>(tokens, true)};
  const Delta x = draw_delta(random, tokens, 3, 1, 2, 72, 10, bfloat16, false);
  const Conv conv{random.dense({tokens, 300}, bfloat16), random.dense({300, 4}, float32),
                  zeros({3, 3, 300}, bfloat16), random.dense({300}, float32)};
  const auto [y, states] = run(x, whole.sequences());
  const auto [z, conv_states] =
      fast::causal_conv(conv.x, conv.weight, conv.states, conv.bias, whole.sequences());
  array part = x.states, conv_part = conv.states;
  std::vector<array> steps, conv_steps;
  for (int t = 0; t < tokens; ++t) {
    auto token = [&](const array& a) { return expand_dims(take(a, t, 0), {0, 1}); };
    Sequences one;
    one.slots = array({1});
    one.fresh = array({t == 0});
    array step(0), conv_step(0);
    std::tie(step, part) = fast::gated_delta(token(x.queries), token(x.keys), token(x.values),
                                             token(x.decay), token(x.beta), part, one);
    std::tie(conv_step, conv_part) =
        fast::causal_conv(token(conv.x), conv.weight, conv_part, conv.bias, one);
    steps.push_back(squeeze(step, 0));
    conv_steps.push_back(squeeze(conv_step, 0));
  }
  CHECK(array_equal(concatenate(steps, 0), y).item<bool>());
  CHECK(array_equal(part, states).item<bool>());
  CHECK(array_equal(concatenate(conv_steps, 0), z).item<bool>());
  CHECK(array_equal(conv_part, conv_states).item<bool>());
}

TEST_CASE("the causal convolution over random sequences, slots, masks and dtypes") {
  RandomArrays random(64);
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    const Dtype dtypes[] = {float32, float16, bfloat16};
    const Dtype dtype = dtypes[random.pick(0, 2)];
    const int states = random.pick(2, 5), width = random.pick(2, random.flip() ? 4 : 16);
    const int channels = random.flip() ? random.pick(1, 40) : random.pick(250, 600);
    const Layout layout = draw(random, states);
    Conv conv{random.strided({layout.tokens(), channels}, dtype),
              random.strided({channels, width}, dtype),
              random.dense({states, width - 1, channels}, random.flip() ? float32 : dtype),
              std::nullopt};
    if (random.flip()) conv.bias = random.strided({channels}, dtype);
    const auto [y, after] =
        fast::causal_conv(conv.x, conv.weight, conv.states, conv.bias, layout.sequences());
    const auto [expected, expected_after] = reference(conv, layout);
    CHECK(y.dtype() == dtype);
    check_close(y, conv.x.shape(), expected, dtype == float32 ? 1e-6 : rounding_of(dtype));
    check_close(after, conv.states.shape(), expected_after, 0);
  }
}

TEST_CASE_FIXTURE(OnCpu, "states are updated in place when nothing else holds them") {
  RandomArrays random(65);
  Delta x = draw_delta(random, 1, 2, 1, 1, 16, 16, float32, false);
  auto token = [](const array& a) { return expand_dims(a, 0); };
  array states = x.states, memory = zeros({2, 3, 64});
  eval(states, memory);
  x.states = array(0);
  const void *before = states.data<float>(), *memory_before = memory.data<float>();
  Sequences one;
  one.slots = array({1});
  for (int step = 0; step < 3; ++step) {
    array y(0), z(0);
    std::tie(y, states) = fast::gated_delta(token(x.queries), token(x.keys), token(x.values),
                                            token(x.decay), token(x.beta), std::move(states), one);
    std::tie(z, memory) =
        fast::causal_conv(ones({1, 1, 64}), ones({64, 4}), std::move(memory), std::nullopt, one);
    eval(y, states, z, memory);
    CHECK(states.data<float>() == before);
    CHECK(memory.data<float>() == memory_before);
  }
}

TEST_CASE("ops of language models have no derivatives, and say what to do") {
  auto y = [](const std::vector<array>& x) {
    return std::vector<array>{
        fast::causal_conv(x[0], ones({8, 4}), zeros({1, 3, 8})).first,
        fast::kv_decode(fast::kv_encode(reshape(x[0], {1, 16}), {16, 4, 0}), {16, 4, 0})};
  };
  const array x = ones({1, 2, 8});
  CHECK_THROWS_WITH(vjp(y, {x}, {ones({1, 2, 8}), ones({1, 16})}),
                    doctest::Contains("stop_gradient"));
}

TEST_CASE("no sequences, no tokens, no states") {
  const Delta x{zeros({0, 1, 8}),
                zeros({0, 1, 8}),
                zeros({0, 1, 4}),
                zeros({0, 1}),
                zeros({0, 1}),
                ones({2, 1, 4, 8}),
                false};
  Layout layout{{0, 0}, {1, 0}, {true, false}, {}};
  const auto [y, states] = run(x, layout.sequences());
  CHECK(values_of<float>(y).empty());
  // A fresh sequence without tokens has an empty state.
  CHECK(sum(states).item<float>() == 32);
  Sequences none;
  none.starts = zeros({1}, int32);
  CHECK(array_equal(run(x, none).second, x.states).item<bool>());
  const auto [z, memory] =
      fast::causal_conv(zeros({0, 8}), ones({8, 4}), ones({0, 3, 8}), {}, none);
  CHECK(values_of<float>(z).empty());
}

TEST_CASE("integers that name nothing are errors when recurrences run") {
  auto runs = [](const std::vector<int>& starts, const std::vector<int>& slots) {
    Sequences sequences;
    sequences.starts = array(starts.begin(), {static_cast<int>(starts.size())}, int32);
    sequences.slots = array(slots.begin(), {static_cast<int>(slots.size())}, int32);
    return [sequences](const char* op) {
      if (std::string_view(op) == "causal_conv") {
        fast::causal_conv(ones({4, 8}), ones({8, 4}), ones({2, 3, 8}), {}, sequences).first.eval();
      } else {
        fast::gated_delta(ones({4, 1, 8}), ones({4, 1, 8}), ones({4, 1, 8}), ones({4, 1}),
                          ones({4, 1}), ones({2, 1, 8, 8}), sequences)
            .first.eval();
      }
    };
  };
  for (const char* op : {"gated_delta", "causal_conv"}) {
    runs({0, 3, 4}, {1, 0})(op);
    const std::vector<std::pair<std::vector<int>, std::vector<int>>> wrong = {{{0, 3, 4}, {2, 0}},
                                                                              {{0, 3, 5}, {1, 0}},
                                                                              {{1, 3, 4}, {1, 0}},
                                                                              {{0, 5, 4}, {1, 0}},
                                                                              {{0, -1, 4}, {1, 0}}};
    for (const auto& [starts, slots] : wrong) {
      check_error<ExecutionError>(op, [&, s = starts, p = slots] { runs(s, p)(op); });
    }
  }
}

TEST_CASE("errors of recurrences") {
  using Error = std::invalid_argument;
  const array q = ones({2, 3, 1, 8}), v = ones({2, 3, 2, 4}), g = ones({2, 3, 2});
  const array s = ones({2, 2, 4, 8});
  auto delta = [&](const array& queries, const array& keys, const array& values, const array& decay,
                   const array& beta, const array& states, const Sequences& sequences = {}) {
    check_error<Error>("gated_delta", [&] {
      fast::gated_delta(queries, keys, values, decay, beta, states, sequences);
    });
  };
  delta(ones({2, 3, 1, 7}), q, v, g, g, s);
  delta(q, ones({2, 3, 8}), v, g, g, s);
  delta(q, q, ones({2, 2, 2, 4}), g, g, s);
  delta(q, q, v, ones({2, 3, 2, 4}), g, s);
  delta(q, q, v, g, ones({2, 3}), s);
  delta(q, q, v, g, g, ones({1, 2, 4, 8}));
  delta(q, q, v, g, g, ones({2, 2, 8, 4}));
  delta(q, q, v, g, g, astype(s, float16));
  delta(astype(q, int32), q, v, g, g, s);
  const array two = ones({2, 3, 2, 8});
  delta(two, two, ones({2, 3, 3, 4}), ones({2, 3, 3}), ones({2, 3, 3}), ones({2, 3, 4, 8}));
  Sequences wrong;
  wrong.slots = array({0});
  delta(q, q, v, g, g, s, wrong);
  wrong = {};
  wrong.fresh = array({0, 1});
  delta(q, q, v, g, g, s, wrong);
  wrong = {};
  wrong.mask = ones({2, 2}, bool_);
  delta(q, q, v, g, g, s, wrong);
  wrong = {};
  wrong.starts = array({0, 3, 6});
  delta(q, q, v, g, g, s, wrong);
  const array x = ones({2, 3, 8}), w = ones({8, 4}), m = ones({2, 3, 8});
  auto conv = [&](const array& a, const array& weight, const array& states,
                  const std::optional<array>& bias = {}, const Sequences& sequences = {}) {
    check_error<Error>("causal_conv",
                       [&] { fast::causal_conv(a, weight, states, bias, sequences); });
  };
  conv(ones({3, 8}), w, m);
  conv(x, ones({7, 4}), m);
  conv(x, ones({8, 1}), ones({2, 0, 8}));
  conv(x, ones({8, 17}), ones({2, 16, 8}));
  conv(x, w, ones({2, 2, 8}));
  conv(x, w, astype(m, float16));
  conv(x, w, m, ones({7}));
  conv(astype(x, int32), w, m);
  conv(x, w, ones({1, 3, 8}));
  wrong = {};
  wrong.starts = zeros({1}, int32);
  conv(ones({3, 8}), w, m, {}, wrong);
}
