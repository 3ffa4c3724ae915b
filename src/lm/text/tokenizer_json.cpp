// Tokenizers as Hugging Face's files describe them.
#include "lm/text/tokenizer_state.h"

namespace holdfast::lm::tokenizing {
namespace {

constexpr int deepest_json = 64;

void read_added_tokens(const JsonView& json, TokenizerState& state) {
  for (size_t i = 0; i < json.size(); ++i) {
    JsonView entry = json[i];
    AddedToken token;
    token.content = entry["content"].string();
    token.id = static_cast<int32_t>(entry["id"].integer(0, Vocabulary::most - 1));
    token.is_special = entry.boolean_or("special", false);
    token.is_single_word = entry.boolean_or("single_word", false);
    token.strips_left = entry.boolean_or("lstrip", false);
    token.strips_right = entry.boolean_or("rstrip", false);
    token.is_normalised = entry.boolean_or("normalized", !token.is_special);
    // The model's number of a token counts, where it has one.
    if (int32_t known = state.vocabulary.find(token.content); known != Vocabulary::none) {
      token.id = known;
    } else if (state.vocabulary.has(token.id)) {
      entry["id"].fail(message("a number that is not that of the token \"",
                               state.vocabulary.token(token.id), "\""));
    }
    state.added.add(std::move(token));
  }
}

int32_t find_token(const JsonView& json, const TokenizerState& state) {
  int32_t id = state.find(json.string());
  if (id == Vocabulary::none) json.fail("a token");
  return id;
}

// The tokens that stand in a template, before and after the text.
void read_template(const JsonView& json, const TokenizerState& state, std::vector<int32_t>& before,
                   std::vector<int32_t>& after) {
  JsonView items = json["single"];
  bool is_after = false;
  for (size_t i = 0; i < items.size(); ++i) {
    JsonView item = items[i];
    if (item.has("Sequence")) {
      if (is_after) item.fail("one sequence");
      is_after = true;
      continue;
    }
    JsonView name = item["SpecialToken"]["id"];
    std::vector<int32_t>& side = is_after ? after : before;
    if (json.has("special_tokens") && json["special_tokens"].has(name.string().c_str())) {
      JsonView ids = json["special_tokens"][name.string().c_str()]["ids"];
      for (size_t k = 0; k < ids.size(); ++k)
        side.push_back(static_cast<int32_t>(ids[k].integer(0, Vocabulary::most - 1)));
    } else {
      side.push_back(find_token(name, state));
    }
  }
  if (!is_after) items.fail("a sequence among the items");
}

void read_post_processor(const JsonView& json, int depth, TokenizerState& state) {
  const std::string& type = json["type"].string();
  std::vector<int32_t> before, after;
  if (type == "Sequence") {
    if (depth == deepest_sequence)
      throw ModelError(
          message(json.path(), ": more than ", deepest_sequence, " sequences inside each other"));
    JsonView list = json["processors"];
    for (size_t i = 0; i < list.size(); ++i) read_post_processor(list[i], depth + 1, state);
  } else if (type == "TemplateProcessing") {
    read_template(json, state, before, after);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    before.push_back(find_token(json["cls"][size_t{0}], state));
    after.push_back(find_token(json["sep"][size_t{0}], state));
  } else if (type != "ByteLevel") {
    json["type"].fail(
        "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel or Sequence");
  }
  state.before.insert(state.before.begin(), before.begin(), before.end());
  state.after.insert(state.after.end(), after.begin(), after.end());
  if (state.before.size() + state.after.size() > 1024)
    throw ModelError(message(json.path(), ": more than 1024 special tokens around a text"));
}

// "bos_token": "<s>", or the token with its properties.
void read_special_tokens(const JsonView& json, TokenizerState& state) {
  for (const char* use : {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token",
                          "cls_token", "mask_token"}) {
    if (!json.has(use)) continue;
    JsonView token = json[use];
    const std::string& content = token.has("content") ? token["content"].string() : token.string();
    state.set_special(use, content);
    if (std::string_view(use) == "eos_token") state.add_eos(state.find(content));
  }
}

void read_chat_templates(const JsonView& json, TokenizerState& state) {
  if (!json.has("chat_template")) return;
  JsonView templates = json["chat_template"];
  if (!templates.value().is_array()) {
    state.chat_templates.emplace("default", templates.string());
    return;
  }
  for (size_t i = 0; i < templates.size(); ++i)
    state.chat_templates.emplace(templates[i]["name"].string(), templates[i]["template"].string());
}

}  // namespace

nlohmann::json parse_json(const std::string& text, const char* name) {
  // What walks through values is recursive.
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > deepest_json)
        throw ModelError(message(name, ": more than ", deepest_json, " values inside each other"));
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw ModelError(message(name, " is no JSON: ", error.what()));
  }
}

void read_tokenizer_files(const Tokenizer::Files& files, TokenizerState& state) {
  nlohmann::json tokenizer = parse_json(files.tokenizer, "tokenizer.json");
  JsonView json(tokenizer, "tokenizer.json");
  state.model = read_model(json["model"], state.vocabulary);
  if (json.has("added_tokens")) read_added_tokens(json["added_tokens"], state);
  if (json.has("normalizer")) state.normalizer = read_normalizer(json["normalizer"]);
  if (json.has("pre_tokenizer")) state.pre_tokenizer = read_pre_tokenizer(json["pre_tokenizer"]);
  state.decoder = json.has("decoder") ? read_decoder(json["decoder"]) : no_decoder();
  if (json.has("post_processor")) read_post_processor(json["post_processor"], 0, state);

  if (!files.chat_template.empty()) state.chat_templates["default"] = files.chat_template;
  auto read_optional = [&](const std::string& text, const char* name, auto read) {
    if (text.empty()) return;
    nlohmann::json value = parse_json(text, name);
    read(JsonView(value, name));
  };
  // A later file does not change what an earlier one has said.
  read_optional(files.tokenizer_config, "tokenizer_config.json", [&](const JsonView& config) {
    read_special_tokens(config, state);
    read_chat_templates(config, state);
  });
  read_optional(files.special_tokens_map, "special_tokens_map.json",
                [&](const JsonView& map) { read_special_tokens(map, state); });
  read_optional(files.generation_config, "generation_config.json", [&](const JsonView& config) {
    if (!config.has("eos_token_id")) return;
    JsonView eos = config["eos_token_id"];
    if (!eos.value().is_array()) {
      state.add_eos(static_cast<int32_t>(eos.integer(0, Vocabulary::most - 1)));
      return;
    }
    for (size_t i = 0; i < eos.size(); ++i)
      state.add_eos(static_cast<int32_t>(eos[i].integer(0, Vocabulary::most - 1)));
  });
  state.prepare();
}

}  // namespace holdfast::lm::tokenizing
