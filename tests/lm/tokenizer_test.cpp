// Tokenizers beside what the package `tokenizers` makes of the same files and texts
// (make_tokenizers.py), and what is wrong with files.
#include <doctest/doctest.h>

#include <holdfast/lm.h>
#include <holdfast/lm/tokenizer.h>
#include <holdfast/ops.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

using namespace holdfast;
using namespace holdfast::lm;
using nlohmann::json;

namespace {

json read_json(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return json::parse(file);
}

json test_file(const std::string& name) {
  return read_json(std::filesystem::path(HOLDFAST_LM_TEST_DATA) / "tokenizers" / (name + ".json"));
}

Tokenizer tokenizer_of(const json& tokenizer) {
  return Tokenizer::from_files({.tokenizer = tokenizer.dump()});
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  Detokenizer stream(tokenizer, false);
  std::string text;
  for (int32_t id : ids) {
    std::string part = stream.add(id);
    // Nothing is half a character.
    CHECK_NOTHROW(json(part).dump());
    text += part;
  }
  return text + stream.finish();
}

std::string error_of(const json& tokenizer) {
  try {
    tokenizer_of(tokenizer);
  } catch (const ModelError& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A byte-level tokenizer as GGUF metadata: bytes, one merge, and two special tokens.
std::unordered_map<std::string, GGUFMetaData> byte_level_metadata() {
  json file = test_file("byte_level")["tokenizer"];
  std::vector<std::string> tokens(file["model"]["vocab"].size());
  for (const auto& [token, id] : file["model"]["vocab"].items()) tokens[id.get<size_t>()] = token;
  std::vector<std::string> merges;
  for (const json& merge : file["model"]["merges"])
    merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  std::vector<int32_t> types(tokens.size(), 1);
  for (size_t i = 0; i < 5; ++i) types[i] = 3;
  return {{"tokenizer.ggml.model", "gpt2"},
          {"tokenizer.ggml.pre", "gpt-2"},
          {"tokenizer.ggml.tokens", tokens},
          {"tokenizer.ggml.merges", merges},
          {"tokenizer.ggml.token_type", array(types.begin(), {static_cast<int>(types.size())})},
          {"tokenizer.ggml.bos_token_id", array(0)},
          {"tokenizer.ggml.eos_token_id", array(4)},
          {"tokenizer.chat_template", "{{ messages }}"}};
}

// SentencePiece: bytes, characters, and words by score.
std::unordered_map<std::string, GGUFMetaData> sentence_piece_metadata() {
  std::vector<std::string> tokens{"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types{2, 3, 3};
  std::vector<float> scores{0, 0, 0};
  for (int byte = 0; byte < 256; ++byte) {
    std::string hexadecimal = "0123456789ABCDEF";
    tokens.push_back(std::string("<0x") + hexadecimal[static_cast<size_t>(byte >> 4)] +
                     hexadecimal[static_cast<size_t>(byte & 15)] + ">");
    types.push_back(6), scores.push_back(0);
  }
  float score = 0;
  for (const char* token : {"▁a", "bc", "ab", "▁ab", "abc", "▁", "a", "b", "c"}) {
    tokens.push_back(token);
    types.push_back(1), scores.push_back(score -= 1);
  }
  int count = static_cast<int>(tokens.size());
  return {{"tokenizer.ggml.model", "llama"},
          {"tokenizer.ggml.tokens", tokens},
          {"tokenizer.ggml.token_type", array(types.begin(), {count})},
          {"tokenizer.ggml.scores", array(scores.begin(), {count})},
          {"tokenizer.ggml.bos_token_id", array(1)},
          {"tokenizer.ggml.eos_token_id", array(2)}};
}

std::vector<std::string> names_of(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::vector<std::string> names;
  for (int32_t id : ids) names.push_back(tokenizer.token(id));
  return names;
}

}  // namespace

TEST_CASE("tokenizer: the tokens of the package `tokenizers`") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(HOLDFAST_LM_TEST_DATA) / "tokenizers")) {
    INFO(entry.path().filename().string());
    json file = read_json(entry.path());
    Tokenizer tokenizer = tokenizer_of(file["tokenizer"]);
    for (const json& expected : file["cases"]) {
      auto text = expected["text"].get<std::string>();
      INFO(text);
      std::vector<int32_t> ids = tokenizer.encode(text);
      CHECK(json(ids) == expected["ids"]);
      CHECK(json(tokenizer.encode(text, {.add_special_tokens = false})) == expected["plain"]);
      CHECK(json(tokenizer.encode(
                text, {.add_special_tokens = false, .recognise_special_tokens = false})) ==
            expected["as_text"]);
      CHECK(tokenizer.decode(ids) == expected["decoded"].get<std::string>());
      CHECK(tokenizer.decode(ids, true) == expected["skipped"].get<std::string>());
      CHECK(streamed(tokenizer, ids) == expected["decoded"].get<std::string>());
    }
    ++files;
  }
  CHECK(files == 15);
}

TEST_CASE("tokenizer: bytes that are no UTF-8 become U+FFFD") {
  Tokenizer tokenizer = tokenizer_of(test_file("byte_level")["tokenizer"]);
  auto replaced = [&](const std::string& text) { return tokenizer.decode(tokenizer.encode(text)); };
  CHECK(replaced("a\xff"
                 "b") ==
        "a\ufffd"
        "b");
  CHECK(replaced("\xe2\x82") == "\ufffd");  // an unfinished character is one error
  CHECK(replaced("\xe2\x82(") == "\ufffd(");
  CHECK(replaced("\xf0\x9f\x98\xf0\x9f\x98\x80") == "\ufffd😀");
  CHECK(replaced("\xc0\xaf") == "\ufffd\ufffd");            // an overlong form is two
  CHECK(replaced("\xed\xa0\x80") == "\ufffd\ufffd\ufffd");  // so is half a surrogate pair: three
  CHECK(replaced(std::string("a\0b", 3)) == std::string("a\0b", 3));
}

TEST_CASE("tokenizer: any text comes back from byte-level tokens") {
  for (const char* name : {"byte_level", "split_byte_level", "digits_byte_level"}) {
    bool composes = std::string(name) == "split_byte_level";
    Tokenizer tokenizer = tokenizer_of(test_file(name)["tokenizer"]);
    std::mt19937 random(11);
    const std::vector<std::string> parts{" ", "  ", "a",  "the ", "\n", "é", "😀",
                                         "1", "'s", "世", "\t",   ".",  "A"};
    for (int i = 0; i < 200; ++i) {
      std::string text;
      for (size_t n = random() % 40; n > 0; --n) text += parts[random() % parts.size()];
      if (!composes || i % 2) CHECK(tokenizer.decode(tokenizer.encode(text), true) == text);
    }
  }
}

TEST_CASE("detokenizer: characters are held back until they are whole") {
  Tokenizer tokenizer = Tokenizer::from_gguf(sentence_piece_metadata());
  Detokenizer stream(tokenizer);
  CHECK(stream.add(*tokenizer.id_of("▁ab")) == "ab");  // the space in front is dropped, once
  CHECK(stream.add(*tokenizer.id_of("▁ab")) == " ab");
  CHECK(stream.add(*tokenizer.id_of("<0xF0>")) == "");
  CHECK(stream.add(*tokenizer.id_of("<0x9F>")) == "");
  CHECK(stream.add(*tokenizer.id_of("<0x98>")) == "");
  CHECK(stream.add(*tokenizer.id_of("<0x80>")) == "😀");
  CHECK(stream.add(*tokenizer.id_of("<0xE4>")) == "");
  CHECK(stream.add(*tokenizer.id_of("a")) ==
        "\ufffd"
        "a");
  CHECK(stream.add(*tokenizer.id_of("<0xE4>")) == "");
  CHECK(stream.finish() == "\ufffd");
  CHECK(stream.add(*tokenizer.id_of("▁ab")) == "ab");  // a new text
  CHECK(stream.add(1'000'000) == "");
  CHECK_THROWS_AS(stream.add(-1), RequestError);
}

TEST_CASE("stop strings are found wherever they are cut") {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> stops;
    for (size_t n = 1 + random() % 3; n > 0; --n) {
      std::string stop;
      for (size_t k = 1 + random() % 4; k > 0; --k) stop += static_cast<char>('a' + random() % 2);
      stops.push_back(stop);
    }
    std::string text;
    for (size_t n = random() % 20; n > 0; --n) text += static_cast<char>('a' + random() % 3);
    size_t cut = text.size(), end = std::string::npos;
    for (const std::string& stop : stops) {
      size_t at = text.find(stop);
      if (at == std::string::npos) continue;
      if (at + stop.size() < end || (at + stop.size() == end && at < cut))
        cut = at, end = at + stop.size();
    }
    StopMatcher matcher(stops);
    std::string shown;
    for (size_t i = 0; i < text.size();) {
      size_t count = 1 + random() % 3;
      shown += matcher.add(std::string_view(text).substr(i, count));
      i += count;
    }
    CHECK(matcher.found().has_value() == (end != std::string::npos));
    shown += matcher.finish();
    INFO(text, " ", json(stops).dump());
    CHECK(shown == text.substr(0, cut));
  }
  CHECK_THROWS_AS(StopMatcher({"a", ""}), RequestError);
  // What may still become a stop string is held back, no more.
  StopMatcher matcher({"\n\nUser:"});
  CHECK(matcher.add("Hello\n") == "Hello");
  CHECK(matcher.add("\nUs") == "");
  CHECK(matcher.add("age") == "\n\nUsage");
  CHECK_FALSE(matcher.found());
}

TEST_CASE("tokenizer: GGUF metadata gives the same tokens as tokenizer.json") {
  json file = test_file("byte_level");
  auto metadata = byte_level_metadata();
  Tokenizer tokenizer = Tokenizer::from_gguf(metadata);
  for (const json& expected : file["cases"]) {
    auto text = expected["text"].get<std::string>();
    // The added tokens of the file are not in its vocabulary, and one takes the white space after
    // it.
    if (contains(text, "extra") || contains(text, "[MASK]") || contains(text, "<|im_start|>"))
      continue;
    INFO(text);
    CHECK(json(tokenizer.encode(text)) == expected["plain"]);
  }
  CHECK(tokenizer.eos_ids() ==
        std::vector<int32_t>{4, 1});  // <|im_end|> by number, </s> by its name
  CHECK(tokenizer.bos_id() == 0);
  CHECK(tokenizer.chat_template() == "{{ messages }}");
  metadata["tokenizer.ggml.add_bos_token"] = array(true);
  CHECK(Tokenizer::from_gguf(metadata).encode("").front() == 0);
}

TEST_CASE("tokenizer: SentencePiece by scores, with bytes for what is unknown") {
  Tokenizer tokenizer = Tokenizer::from_gguf(sentence_piece_metadata());
  auto names = [&](const char* text) { return names_of(tokenizer, tokenizer.encode(text)); };
  using Names = std::vector<std::string>;
  CHECK(names("abc") == Names{"<s>", "▁a", "bc"});
  CHECK(names("ab abc") == Names{"<s>", "▁ab", "▁a", "bc"});
  CHECK(names("é") == Names{"<s>", "▁", "<0xC3>", "<0xA9>"});
  CHECK(names("") == Names{"<s>"});
  CHECK(names("a</s>b") == Names{"<s>", "▁a", "</s>", "▁", "b"});
  CHECK(tokenizer.decode(tokenizer.encode(" ab é"), true) == " ab é");
}

TEST_CASE("tokenizer: what is wrong with GGUF metadata is named") {
  auto error = [](auto change) {
    auto metadata = byte_level_metadata();
    change(metadata);
    try {
      Tokenizer::from_gguf(metadata);
    } catch (const ModelError& thrown) {
      return std::string(thrown.what());
    }
    return std::string("no error");
  };
  CHECK(contains(error([](auto& m) { m["tokenizer.ggml.model"] = "t5"; }),
                 "expected gpt2 or llama, got \"t5\""));
  CHECK(contains(error([](auto& m) { m["tokenizer.ggml.pre"] = "new"; }), "got \"new\""));
  CHECK(
      contains(error([](auto& m) { m.erase("tokenizer.ggml.tokens"); }), "tokenizer.ggml.tokens"));
  CHECK(contains(error([](auto& m) { m["tokenizer.ggml.token_type"] = array({1, 2}); }),
                 "as many as there are tokens"));
  CHECK(contains(
      error([](auto& m) { m["tokenizer.ggml.merges"] = std::vector<std::string>{"zzz y"}; }),
      "at 0, got \"zzz y\""));
  CHECK(contains(error([](auto& m) { m["tokenizer.ggml.eos_token_id"] = array(1 << 20); }),
                 "tokenizer.ggml.eos_token_id"));
  CHECK(contains(error([](auto& m) { m["tokenizer.ggml.bos_token_id"] = "x"; }),
                 "expected an integer"));
}

TEST_CASE("tokenizer: what is wrong with tokenizer.json is said by its path") {
  json good = test_file("split_byte_level")["tokenizer"];
  auto error = [&](const char* pointer, const json& value) {
    json file = good;
    file[json::json_pointer(pointer)] = value;
    return error_of(file);
  };
  CHECK(error_of(good) == "no error");
  CHECK(contains(error("/model/type", "Neural"), "tokenizer.json.model.type: expected BPE"));
  CHECK(contains(error("/model/dropout", 0.1), "dropout is for training"));
  CHECK(contains(error("/model/merges/3", {"a", "zzz"}), "model.merges[3]"));
  CHECK(contains(error("/model/merges/3", "a b c"), "two tokens with a space"));
  CHECK(contains(error("/model/vocab/a", -1), "expected an integer from 0"));
  CHECK(contains(error("/model/vocab/a", 1 << 30), "expected an integer from 0"));
  CHECK(contains(error("/model/vocab/a", good["model"]["vocab"]["b"]), "have the same number"));
  CHECK(contains(error("/pre_tokenizer/pretokenizers/0/pattern/Regex", "(a"),
                 "is no regular expression"));
  CHECK(contains(error("/pre_tokenizer/pretokenizers/0/behavior", "Kept"),
                 "pretokenizers[0].behavior"));
  CHECK(contains(error("/pre_tokenizer/pretokenizers/1/type", "Words"),
                 "pretokenizers[1].type: expected ByteLevel"));
  CHECK(contains(error("/normalizer/type", "Precompiled"), "normalizer.type: expected NFC"));
  CHECK(contains(error("/decoder/type", "CTC"), "decoder.type: expected ByteLevel"));
  CHECK(
      contains(error("/decoder", json::parse(R"({"type": "Sequence", "decoders": [{"type": "Fuse"},
      {"type": "Replace", "pattern": {"Regex": "a"}, "content": ""}]})")),
               "decoders[1].pattern.Regex"));
  CHECK(contains(error("/post_processor/single", json::array()), "expected a sequence"));
  CHECK(contains(error("/added_tokens/0/id", 100), "added_tokens") ==
        false);  // the vocabulary's number counts
  CHECK(contains(error("/added_tokens/6/id", 300), "a number that is not that of the token"));
  json nested = {{"type", "Sequence"}, {"normalizers", json::array()}};
  for (int i = 0; i < 20; ++i) nested = {{"type", "Sequence"}, {"normalizers", {nested}}};
  CHECK(contains(error("/normalizer", nested), "sequences inside each other"));
  CHECK_THROWS_AS(Tokenizer::from_files({.tokenizer = std::string(100'000, '[')}), ModelError);
  CHECK_THROWS_AS(Tokenizer::from_files({.tokenizer = "{\"model\": "}), ModelError);
  CHECK_THROWS_AS(Tokenizer::from_files({.tokenizer = "[]"}), ModelError);
  CHECK_THROWS_AS(Tokenizer::from_folder("no/such/folder"), ModelError);
}

TEST_CASE("tokenizer: special tokens and ends from the files of a folder") {
  Tokenizer::Files files{
      .tokenizer = test_file("byte_level")["tokenizer"].dump(),
      .tokenizer_config =
          R"({"bos_token": {"content": "<s>"}, "eos_token": "<|im_end|>", "pad_token": null,
          "chat_template": [{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}]})",
      .special_tokens_map = R"({"pad_token": "<unk>", "eos_token": "</s>"})",
      .generation_config = R"({"eos_token_id": [4, 300]})"};
  Tokenizer tokenizer = Tokenizer::from_files(files);
  CHECK(tokenizer.bos_id() == 0);
  CHECK(tokenizer.pad_id() == 2);
  CHECK(tokenizer.special_tokens().at("eos_token") == "<|im_end|>");
  CHECK(tokenizer.eos_ids() == std::vector<int32_t>{4, 1, 300});
  CHECK(tokenizer.is_special(4));
  CHECK_FALSE(tokenizer.is_special(300));
  CHECK(tokenizer.chat_template() == "a");
  CHECK(tokenizer.chat_template("tool_use") == "b");
  CHECK(tokenizer.chat_template("other") == "");
  files.chat_template = "c";
  CHECK(Tokenizer::from_files(files).chat_template() == "c");
  files.generation_config = R"({"eos_token_id": "x"})";
  CHECK_THROWS_WITH_AS(
      Tokenizer::from_files(files),
      doctest::Contains("generation_config.json.eos_token_id: expected an integer"), ModelError);
}

TEST_CASE("tokenizer: threads share one") {
  json file = test_file("byte_fallback");
  Tokenizer tokenizer = tokenizer_of(file["tokenizer"]);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 5; ++round) {
        for (const json& expected : file["cases"]) {
          std::vector<int32_t> ids = tokenizer.encode(expected["text"].get<std::string>());
          if (json(ids) != expected["ids"] ||
              tokenizer.decode(ids) != expected["decoded"].get<std::string>())
            ++wrong[t];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4));
}

TEST_CASE("tokenizer: an expression that backtracks without end gives up") {
  json file = test_file("split_byte_level")["tokenizer"];
  file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(?:a|aa|a+)+[bc]";
  Tokenizer tokenizer = tokenizer_of(file);
  CHECK_THROWS_WITH_AS(tokenizer.encode(std::string(60, 'a')), doctest::Contains("gives up"),
                       RequestError);
  CHECK(tokenizer.encode("xyz").size() > 0);
}
