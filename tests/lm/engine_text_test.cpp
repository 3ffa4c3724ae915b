#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <holdfast/lm.h>

#include "lm/tiny_models.h"

using namespace holdfast;
using namespace holdfast::lm;
using namespace holdfast::testing;

namespace {

Tokenizer bytes_tokenizer() {
  std::ifstream file(std::filesystem::path(HOLDFAST_LM_TEST_DATA) / "tokenizers/byte_level.json");
  return Tokenizer::from_files({.tokenizer = nlohmann::json::parse(file)["tokenizer"].dump()});
}

std::shared_ptr<const Model> model_for(const Tokenizer& tokenizer) {
  Config config = tiny_config("llama");
  config.vocabulary = tokenizer.size();
  return Model::random(config);
}

}  // namespace

TEST_CASE("lm engine: text comes in whole characters, and ends at a stop text") {
  Tokenizer tokenizer = bytes_tokenizer();
  Engine engine(model_for(tokenizer), tokenizer, {.cache_tokens = 2048});
  Request request{.prompt = "The quick brown fox", .max_tokens = 60};
  request.ignores_end = true;
  request.sampling = {.temperature = 1.5f, .seed = 3};
  std::string text;
  std::vector<int> tokens;
  Generation generation = engine.generate(request);
  while (std::optional<Piece> piece = generation.next()) {
    CHECK_NOTHROW(nlohmann::json(piece->text).dump());  // throws for half a character
    text += piece->text;
    if (piece->token >= 0) tokens.push_back(piece->token);
  }
  CHECK(tokens.size() == 60);
  CHECK(text == tokenizer.decode(tokens, true));
  REQUIRE(text.size() > 20);
  // A part of it that spans tokens, as the text that stops.
  nlohmann::json whole = text;
  size_t begin = text.size() / 2;
  while ((static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) ++begin;
  size_t end = begin + 5;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  std::string stop = text.substr(begin, end - begin);
  request.stop = {stop};
  generation = engine.generate(request);
  CHECK(generation.text() == text.substr(0, text.find(stop)));
  CHECK(*generation.finish() == Finish::stop);
  // One that never comes holds nothing back at the end.
  request.stop = {text.substr(text.size() - 1) + "never"};
  CHECK(engine.generate(request).text() == text);
  request.stop = {""};
  CHECK_THROWS_AS(engine.generate(request), RequestError);
}

TEST_CASE("lm engine: a token that ends a text ends the generation") {
  Tokenizer tokenizer = bytes_tokenizer();
  Engine engine(model_for(tokenizer), tokenizer, {.cache_tokens = 2048});
  const int end = *tokenizer.id_of("</s>");
  REQUIRE(tokenizer.is_eos(end));
  Request request{.prompt = "a", .max_tokens = 20};
  request.sampling.constrain = [end](std::span<const int> generated, std::span<float> logits) {
    if (generated.size() == 4) logits[static_cast<size_t>(end)] = 1e9f;
  };
  Generation generation = engine.generate(request);
  CHECK(generation.tokens().size() <= 4);
  CHECK(*generation.finish() == Finish::end_token);
  request.ignores_end = true;
  CHECK(engine.generate(request).tokens().size() == 20);
}
