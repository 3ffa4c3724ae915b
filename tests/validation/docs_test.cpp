// The table in docs/validation.md is made from the table of cases and the table of checks.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "exec/layers/validation/checks.h"
#include "validation/cases.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

std::string table() {
  std::string text;
  for (const validation::CheckRow& check : validation::checks()) {
    text += std::string("\n### `") + check.name + "`: " + check.meaning +
            "\n\n| report | what it says | planted bugs |\n|---|---|---|\n";
    for (const validation::KindRow& kind : validation::kinds()) {
      if (kind.check != check.check) continue;
      std::string planted;
      for (const ValidationCase& c : all_cases()) {
        if (std::strcmp(c.id, kind.id) != 0) continue;
        planted += (planted.empty() ? "" : "<br>") + std::string(c.name);
      }
      text += std::string("| `") + kind.id + "`" +
              (kind.severity == validation::Severity::error
                   ? ""
                   : std::string(" (") + validation::name_of(kind.severity) + ")") +
              " | " + kind.meaning + " | " + planted + " |\n";
    }
  }
  return text + "\n";
}

constexpr const char* begin_mark = "<!-- checks:begin -->\n";
constexpr const char* end_mark = "<!-- checks:end -->\n";

}  // namespace

TEST_CASE("the table in docs/validation.md is that of the tests") {
  const std::string path = HOLDFAST_SOURCE_DIRECTORY "/docs/validation.md";
  std::stringstream file;
  file << std::ifstream(path, std::ios::binary).rdbuf();
  std::string text = file.str();
  size_t begin = text.find(begin_mark), end = text.find(end_mark);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  begin += std::strlen(begin_mark);
  if (std::getenv("HOLDFAST_UPDATE_DOCS")) {
    text.replace(begin, end - begin, table());
    end = text.find(end_mark);
    std::ofstream(path, std::ios::binary) << text;
  }
  const bool is_current = text.substr(begin, end - begin) == table();
  CHECK_MESSAGE(is_current,
                "HOLDFAST_UPDATE_DOCS=1 test-validation --test-case='*docs/validation*' writes it");
}
