// Against mlx-lm: tests/lm/make_oracle.py makes the folder; without one there is nothing to
// compare.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include <holdfast/eval.h>
#include <holdfast/io.h>
#include <holdfast/lm.h>
#include <holdfast/ops.h>

using namespace holdfast;
using namespace holdfast::lm;

namespace {

std::vector<int> integers_of(array values) {
  eval(values);
  const auto* data = std::as_const(values).data<int32_t>();
  return {data, data + values.size()};
}

}  // namespace

TEST_CASE("lm: the logits and the greedy tokens of mlx-lm") {
  const char* folder = std::getenv("HOLDFAST_LM_ORACLE");
  if (folder == nullptr) return;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.is_directory()) continue;
    std::string path = entry.path().string();
    CAPTURE(path);
    auto expected = load_safetensors(path + "/expected.safetensors").first;
    std::vector<int> tokens = integers_of(expected.at("tokens"));
    std::vector<int> greedy = integers_of(expected.at("greedy"));
    auto model = Model::load(path, {.dtype = float32});
    array difference = max(abs(model->logits(tokens) - expected.at("logits")));
    MESSAGE(path, ": largest difference of a logit ", difference.item<float>());
    CHECK(difference.item<float>() < 1e-4f);
    Engine engine(model, {}, {.cache_tokens = 256});
    Request request{.tokens = tokens, .max_tokens = static_cast<int>(greedy.size())};
    request.ignores_end = true;
    CHECK(engine.generate(request).tokens() == greedy);
    ++count;
  }
  CHECK(count > 0);
}

TEST_CASE("lm: a GGUF file gives mlx-lm's tokens in float32") {
  const char *folder = std::getenv("HOLDFAST_LM_ORACLE"), *gguf = std::getenv("HOLDFAST_LM_GGUF");
  if (folder == nullptr || gguf == nullptr) return;
  auto expected = load_safetensors(std::string(folder) + "/gguf.safetensors").first;
  auto model = Model::load(gguf, {.dtype = float32});
  Engine engine(model, {}, {.cache_tokens = 4096});
  std::vector<Generation> running;
  const int count = static_cast<int>(expected.size()) / 2;
  for (int i = 0; i < count; ++i) {
    Request request{.tokens = integers_of(expected.at("prompt." + std::to_string(i))),
                    .max_tokens = 64};
    request.ignores_end = true;
    running.push_back(engine.generate(request));
  }
  for (int i = 0; i < count; ++i) {
    CAPTURE(i);
    CHECK(running[static_cast<size_t>(i)].tokens() ==
          integers_of(expected.at("greedy." + std::to_string(i))));
  }
}
