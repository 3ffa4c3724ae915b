// Chat templates beside what jinja2 makes of them (make_chat_templates.py), and templates that mean
// no good.
#include <doctest/doctest.h>

#include <holdfast/lm/chat_template.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

using namespace holdfast::lm;
using nlohmann::ordered_json;

namespace {

std::string text_of_template(const std::string& source, const std::string& messages = "[]") {
  return ChatTemplate(source).apply_json(messages);
}

std::string repeated(const std::string& part, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += part;
  return text;
}

}  // namespace

TEST_CASE("chat template: the texts that jinja2 writes") {
  std::ifstream stream(std::string(HOLDFAST_LM_TEST_DATA) + "/chat_templates.json");
  ordered_json file = ordered_json::parse(stream);
  int count = 0;
  for (const auto& expected : file["cases"]) {
    auto source = file["templates"][expected["template"].get<size_t>()].get<std::string>();
    const auto& given = expected["options"];
    ChatOptions options;
    options.add_generation_prompt = given.value("add_generation_prompt", true);
    if (given.contains("tools")) options.tools = given["tools"].dump();
    if (given.contains("variables")) options.variables = given["variables"].dump();
    options.time = file["time"].get<std::time_t>();
    bool is_small = expected["name"] == "small";
    std::string label = is_small ? source : expected["name"].get<std::string>();
    INFO(label, "\nmessages: ", expected["messages"].dump());
    std::string got = "no result", error;
    try {
      ChatTemplate chat(source, {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
      got = chat.apply_json(expected["messages"].dump(), options);
    } catch (const std::runtime_error& thrown) {
      error = thrown.what();
    }
    INFO(error);
    if (expected.contains("fails")) {
      CHECK(error != "");
    } else {
      CHECK(got == expected["result"].get<std::string>());
    }
    ++count;
  }
  CHECK(count > 200);
}

TEST_CASE("chat template: messages as values, and the tokenizer's template") {
  ChatTemplate chat(
      "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
      "{% if add_generation_prompt %}assistant:{% endif %}",
      {{"bos_token", "<s>"}});
  CHECK(chat.apply({{"user", "Hi \xff"}, {"assistant", "Yes"}}) ==
        "<s>user: Hi \ufffd\nassistant: Yes\nassistant:");
  CHECK(chat.apply({{"user", "{{ 1 }}"}}, {.add_generation_prompt = false}) ==
        "<s>user: {{ 1 }}\n");
  CHECK(chat.apply({}, {.variables = R"({"bos_token": "x"})"}) == "xassistant:");
}

TEST_CASE("chat template: what is wrong is said with its line") {
  auto model_error = [](const std::string& source, const std::string& part) {
    CHECK_THROWS_WITH_AS(ChatTemplate{source}, doctest::Contains(part.c_str()), ModelError);
  };
  model_error("a\n{% for x y %}", "line 2: expected 'in', got 'y'");
  model_error("{% include 'x' %}", "line 1: unknown tag 'include'");
  model_error("{% if a %}\n\n", "expected {% endif %}, got the end of the template");
  model_error("{{ 'abc", "line 1: a string has no end");
  model_error("{{ 99999999999999999999 }}", "more than 64 bits");
  model_error("{% break %}", "is in no loop");
  auto request_error = [](const std::string& source, const std::string& part) {
    CHECK_THROWS_WITH_AS(text_of_template(source), doctest::Contains(part.c_str()), RequestError);
  };
  request_error("\n{{ raise_exception('no system role') }}",
                "[ChatTemplate] line 2: no system role");
  request_error("{{ messages.x.y }}", "'x' is undefined");
  request_error("{{ 1 | shout }}", "there is no filter 'shout'");
  request_error("{{ [].append(1) }}", "[append] a template cannot change values");
  request_error("{{ 9223372036854775807 + 1 }}", "more than 64 bits");
  CHECK_THROWS_WITH_AS(text_of_template("", "{"), doctest::Contains("the messages are no JSON"),
                       RequestError);
  CHECK_THROWS_WITH_AS(text_of_template("", "{}"), doctest::Contains("are a dict, not a list"),
                       RequestError);
  CHECK_THROWS_AS(text_of_template("", repeated("[", 100'000)), RequestError);
  CHECK_THROWS_AS(text_of_template("", repeated("[", 200) + repeated("]", 200)), RequestError);
}

TEST_CASE("chat template: no template takes memory, time or stack without limit") {
  auto refused = [](const std::string& source, const char* part) {
    CHECK_THROWS_WITH(text_of_template(source), doctest::Contains(part));
  };
  refused("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
          "the template");
  refused("{{ 'x' * 1000000000000 }}", "more than");
  refused(
      "{% set n = namespace(s='x') %}{% for i in range(100) %}{% set n.s = n.s + n.s %}{% endfor "
      "%}",
      "more than");
  refused(
      "{% set n = namespace(l=[1]) %}{% for i in range(100) %}{% set n.l = n.l + n.l %}{% endfor "
      "%}",
      "more than");
  refused(
      "{% set n = namespace(l=[]) %}{% for i in range(1000) %}{% set n.l = [n.l] %}{% endfor %}",
      "nested more than");
  refused("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "inside each other");
  refused("{{ range(1000000000) }}", "more than 100000 numbers");
  refused("{{ 'a'.center(100000000000) }}", "more than");
  refused("{{ '%999999999d' % 1 }}", "format");
  refused("{% set l = range(50000) | list %}{% for i in l %}{{ i in l }}{% endfor %}", "steps");
  refused("{{ 'x'.replace('', 'y' * 100000) * 1000 }}", "more than");
  refused("{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}", "nested more than");
  refused("{{ 1" + repeated(" + 1", 5000) + " }}", "nested more than");
  refused("{{ x" + repeated(".y", 5000) + " }}", "nested more than");
  refused("{{ " + repeated("not ", 5000) + "1 }}", "nested more than");
  refused(repeated("{% if 1 %}", 5000), "nested more than");
  refused(std::string((1 << 20) + 1, 'x'), "at most");
  // What refers to itself is freed all the same.
  CHECK(text_of_template("{% set n = namespace() %}{% set n.n = n %}{% set n.f = n.get %}{{ n.n.n "
                         "is defined }}") == "True");
  CHECK(text_of_template("{% for i in [1] %}{% set n = namespace(l=loop) %}{% set n.c = loop.cycle "
                         "%}{{ loop.changed([loop]) }}{% endfor %}") == "True");
  CHECK(text_of_template("{% for i in range(3) %}{% macro f(x) %}{{ i }}{{ x }}{% endmacro %}{{ "
                         "f(i) }}{% endfor %}") == "001122");
}

TEST_CASE("chat template: threads share one") {
  ChatTemplate chat(
      "{% set n = namespace(s=0) %}{% for m in messages %}{% set n.s = n.s + m %}{% endfor %}{{ "
      "n.s }}");
  std::vector<std::thread> threads;
  std::vector<std::string> texts(4);
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) texts[t] = chat.apply_json("[1, 2, " + std::to_string(t) + "]");
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(texts == std::vector<std::string>{"3", "4", "5", "6"});
}
