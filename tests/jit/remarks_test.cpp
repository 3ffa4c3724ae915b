#include "devices/cpu/jit/compiler/remarks.h"

#include <doctest/doctest.h>

using namespace holdfast::jit;

TEST_CASE("remarks: by line of the user's parts, each once, with the line of the cause") {
  holdfast::msl::KernelSource source;
  source.text = "float f();\nvoid k() {\n  int a;\n  int b;\n}\n";
  size_t body = source.text.find("\n  int a");
  source.parts = {{"header", 0, 10}, {"body", body, source.text.size()}};
  std::vector<Remark> remarks = {{0, "of no line", 0},
                                 {4, "a load gathers", 3},
                                 {1, "a branch parts lanes", 0},
                                 {4, "a load gathers", 3},
                                 {4, "a load varies", 4}};
  CHECK(in_source_order(remarks, &source) ==
        "header:1  float f();\n    a branch parts lanes\n"
        "body:3  int b;\n    a load gathers (body:2)\n    a load varies\n"
        "of no line\n");
  CHECK(in_source_order({{2, "a", 1}, {1, "b", 0}}, nullptr) == "b\na\n");
}
