// The transformer of examples/, trained by transforms and by hand.
#include <doctest/doctest.h>

#include <holdfast/memory.h>

#include "support/device.h"
#include "tests/transforms/transformer_by_hand.h"

using namespace holdfast;

namespace {

transformer::Config small_model() {
  return {.vocabulary = 11, .context = 9, .width = 12, .heads = 3, .layers = 2};
}

struct Batch {
  std::vector<int> tokens, next;
};

// Sequences of numbers that grow by one or two: something to learn.
Batch make_batch(const transformer::Config& c, int sequences, unsigned seed) {
  Batch batch;
  unsigned random = seed * 2654435761u + 1;
  for (int b = 0; b < sequences; ++b) {
    random = random * 1664525u + 1013904223u;
    int by = 1 + static_cast<int>(random >> 30 & 1);
    int at = static_cast<int>(random >> 16) % c.vocabulary;
    if (at < 0) at += c.vocabulary;
    for (int t = 0; t < c.context; ++t, at += by) {
      batch.tokens.push_back(at % c.vocabulary);
      batch.next.push_back((at + by) % c.vocabulary);
    }
  }
  return batch;
}

array as_array(const std::vector<int>& numbers, const transformer::Config& c) {
  return array(numbers.data(), {static_cast<int>(numbers.size()) / c.context, c.context}, int32);
}

using Step = std::function<std::vector<array>(const std::vector<array>&)>;

float take_step(const Step& step, std::vector<array>& state, int number, const Batch& batch,
                const transformer::Config& c) {
  state.push_back(array(static_cast<float>(number)));
  state.push_back(as_array(batch.tokens, c));
  state.push_back(as_array(batch.next, c));
  state = step(state);
  eval(state);
  float loss = state.back().item<float>();
  state.pop_back();
  return loss;
}

}  // namespace

TEST_CASE("the gradients of a transformer are those derived by hand") {
  for (bool keep_little : {false, true}) {
    transformer::Config c = small_model();
    c.checkpoint = keep_little;
    std::vector<array> parameters = transformer::make_parameters(c, 3);
    eval(parameters);
    by_hand::Trainer reference(c, parameters);
    Batch batch = make_batch(c, 3, 1);
    double expected = reference.step(batch.tokens, batch.next, 0.0);
    std::vector<int> all(parameters.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
    auto [value, gradients] = value_and_grad(
        [&](const std::vector<array>& p) {
          return transformer::loss(c, p, as_array(batch.tokens, c), as_array(batch.next, c));
        },
        all)(parameters);
    CHECK(value.item<float>() == doctest::Approx(expected).epsilon(1e-5));
    for (size_t p = 0; p < gradients.size(); ++p) {
      CAPTURE(p);
      const by_hand::Values& truth = reference.gradients()[p];
      double largest = 0, difference = 0;
      eval(gradients[p]);
      for (size_t i = 0; i < truth.size(); ++i) {
        largest = std::max(largest, std::abs(truth[i]));
        difference = std::max(
            difference, std::abs(truth[i] - static_cast<double>(gradients[p].data<float>()[i])));
      }
      CHECK(difference <= 2e-5 * largest);
    }
  }
}

TEST_CASE("the loss of a transformer falls as in the loop written by hand") {
  transformer::Config c = small_model();
  constexpr float rate = 0.01f;
  std::vector<array> parameters = transformer::make_parameters(c, 5);
  eval(parameters);
  by_hand::Trainer reference(c, parameters);
  Step plain = [&](const std::vector<array>& in) { return transformer::train_step(c, in, rate); };
  transformer::Config keep_little = c;
  keep_little.checkpoint = true;
  Step again = [&](const std::vector<array>& in) {
    return transformer::train_step(keep_little, in, rate);
  };
  std::vector<Step> steps = {plain, compile(plain), again, compile(again)};
  std::vector<std::vector<array>> states(steps.size(), transformer::make_state(parameters));
  double first = 0, last = 0;
  for (int i = 1; i <= 40; ++i) {
    CAPTURE(i);
    Batch batch = make_batch(c, 4, static_cast<unsigned>(i));
    last = reference.step(batch.tokens, batch.next, static_cast<double>(rate));
    if (i == 1) first = last;
    for (size_t k = 0; k < steps.size(); ++k) {
      CAPTURE(k);
      // Rounding differs, and training carries it on: the curves part slowly.
      CHECK(take_step(steps[k], states[k], i, batch, c) == doctest::Approx(last).epsilon(2e-3));
    }
  }
  CHECK(last < 0.6 * first);
}

TEST_CASE_FIXTURE(testing::OnCpu,
                  "checkpointing a transformer's layers lowers the peak of memory") {
  transformer::Config c{.vocabulary = 16, .context = 64, .width = 64, .heads = 4, .layers = 8};
  Batch batch = make_batch(c, 4, 1);
  auto peak_of = [&](bool keep_little) {
    c.checkpoint = keep_little;
    std::vector<array> parameters = transformer::make_parameters(c, 1);
    std::vector<array> state = transformer::make_state(parameters);
    parameters.clear();
    eval(state);
    Step step = [&](const std::vector<array>& in) { return transformer::train_step(c, in, 0.01f); };
    take_step(step, state, 1, batch, c);
    size_t before = get_active_memory();
    reset_peak_memory();
    take_step(step, state, 2, batch, c);
    return get_peak_memory() - before;
  };
  size_t whole = peak_of(false), little = peak_of(true);
  CAPTURE(whole);
  CAPTURE(little);
  // Gradients and Adam's new values are as large in both: more than half of what is left then.
  CHECK(little < 0.75 * static_cast<double>(whole));
}
