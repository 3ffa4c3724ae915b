// `holdfast generate MODEL PROMPT`.
#include <holdfast/lm.h>

#include "tools/holdfast/lm_options.h"

namespace holdfast::tool {

int run_generate(Arguments arguments) {
  LmOptions options = lm_options(arguments);
  if (options.words.size() != 2) throw UsageError("expected a model and a prompt");
  LoadedModel loaded = load_model(options.words[0], options);
  options.request.tokens = loaded.tokenizer.encode(options.words[1]);
  lm::Engine engine(loaded.model, loaded.tokenizer, options.engine);
  print_generation(engine.generate(options.request), options);
  return 0;
}

}  // namespace holdfast::tool
