#include <holdfast/lm/engine.h>

#include <filesystem>

#include <holdfast/io.h>

#include <holdfast/lm/errors.h>

#include "lm/engine/loop.h"

namespace holdfast::lm {

Tokenizer load_tokenizer(const std::string& path) {
  if (std::filesystem::is_directory(path)) return Tokenizer::from_folder(path);
  std::unordered_map<std::string, GGUFMetaData> metadata;
  try {
    metadata = load_gguf(path).second;
  } catch (const std::exception& error) {
    throw ModelError(error.what());
  }
  return Tokenizer::from_gguf(metadata);
}

Engine::Engine(std::shared_ptr<const Model> model, std::optional<Tokenizer> tokenizer,
               const EngineOptions& options)
    : loop_(std::make_unique<engine::Loop>(std::move(model), std::move(tokenizer), options)) {}
Engine::Engine(const std::string& path, const LoadOptions& load, const EngineOptions& options)
    // In braces, so that the model is loaded first, and says it when there is none.
    : loop_(std::unique_ptr<engine::Loop>(
          new engine::Loop{Model::load(path, load), load_tokenizer(path), options})) {}
Engine::~Engine() = default;

Generation Engine::generate(Request request) {
  return Generation(loop_->submit(std::move(request)));
}
Metrics Engine::metrics() const { return loop_->metrics(); }
const Model& Engine::model() const { return loop_->model(); }
const std::optional<Tokenizer>& Engine::tokenizer() const { return loop_->tokenizer(); }

}  // namespace holdfast::lm
