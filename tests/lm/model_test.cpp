#include <doctest/doctest.h>

#include <holdfast/eval.h>
#include <holdfast/lm.h>
#include <holdfast/ops.h>

#include "lm/tiny_models.h"

using namespace holdfast;
using namespace holdfast::lm;
using namespace holdfast::testing;

TEST_CASE("lm: every architecture computes, and its tokens do not depend on how they are divided") {
  for (const std::string& name : known_architectures()) {
    CAPTURE(name);
    auto model = Model::random(tiny_config(name));
    std::vector<int> tokens = tiny_prompt(40, 1);
    array whole = model->logits(tokens);
    eval(whole);
    CHECK(whole.shape() == Shape{40, model->config().vocabulary});
    CHECK(all(isfinite(whole)).item<bool>());
    // The same tokens by an engine, in chunks and one at a time.
    std::vector<int> expected = greedy_alone(*model, tokens, 8);
    Engine engine(model, {}, {.batch = 4, .prefill_tokens = 16, .cache_tokens = 256});
    CHECK(engine.generate({.tokens = tokens, .max_tokens = 8}).tokens() == expected);
  }
}
