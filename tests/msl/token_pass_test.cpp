// The pass over the user's tokens: what it changes, what it leaves alone, and where things came
// from.
#include "msl/frontend/token_pass.h"

#include <doctest/doctest.h>

#include "msl/frontend/lexer.h"

using namespace holdfast::msl;

namespace {

std::string rewrite(const std::string& text) { return rewrite_tokens(text).text; }

struct Case {
  const char* before;
  const char* after;
};

}  // namespace

TEST_CASE("float literals") {
  const Case cases[] = {
      {"0.5", "0.5f"},
      {"1.", "1.f"},
      {".5", ".5f"},
      {"1e-6", "1e-6f"},
      {"1E+6", "1E+6f"},
      {"-1e30", "-1e30f"},
      {"1'000.5", "1'000.5f"},
      {"0x1.8p3", "0x1.8p3f"},
      {"0x1p-2", "0x1p-2f"},
      {"1.5f", "1.5f"},
      {"1.5F", "1.5F"},
      {"1.5h", "((_Float16)1.5)"},
      {"2.5bf", "((__bf16)2.5)"},
      {"1", "1"},
      {"1u", "1u"},
      {"0x1e5", "0x1e5"},
      {"0x1e+2", "0x1e+2"},
      {"0b101", "0b101"},
      {"a.x", "a.x"},
      {"a[1].x", "a[1].x"},
      {"x1e5", "x1e5"},
      {"\"0.5\"", "\"0.5\""},
      {"'.'", "'.'"},
      {"// 0.5", "// 0.5"},
      {"/* 0.5 */ 0.25", "/* 0.5 */ 0.25f"},
      {"R\"x(0.5)x\" 0.5", "R\"x(0.5)x\" 0.5f"},
      {"#define HALF 0.5\nHALF", "#define HALF 0.5f\nHALF"},
      {"#include <a0.5>\n0.5", "#include <a0.5>\n0.5f"},
      {"#error 0.5 is \"wrong\n0.5", "#error 0.5 is \"wrong\n0.5f"},
      {"// a \\\n 0.5\n0.5", "// a \\\n 0.5\n0.5f"},
      {"x = 0.5; // 1.5\ny = 2.5;", "x = 0.5f; // 1.5\ny = 2.5f;"},
  };
  for (const Case& c : cases) CHECK(rewrite(c.before) == c.after);
}

TEST_CASE("operands that meet their casts in float") {
  const std::string text = "half(a + 1.5bf) * half( 2.5bf )";
  const std::set<TextRange> met = {{5, 14}, {24, 25}};  // the second: the beginning of a token
  const RewrittenText result = rewrite_tokens(text, {}, met);
  CHECK(result.text == "half(__hf_meet(a + ((__bf16)1.5))) * half( __hf_meet(((__bf16)2.5)) )");
  CHECK(result.original(result.text.find(" *")) == text.find(" *"));
  CHECK(rewrite_tokens("x", {}, {{0, 1}, {1, 2}}).text == "__hf_meet(x)");
}

TEST_CASE("attributes of Metal") {
  const Case cases[] = {
      {"device float* x [[buffer(0)]]", "device float* x __attribute__((holdfast(\"buffer\",0)))"},
      {"uint3 t [[thread_position_in_grid]]",
       "uint3 t __attribute__((holdfast(\"thread_position_in_grid\")))"},
      {"threadgroup float* s [[threadgroup(1)]]",
       "threadgroup float* s __attribute__((holdfast(\"threadgroup\",1)))"},
      {"[[kernel]] void f()", "__attribute__((holdfast(\"kernel\"))) void f()"},
      {"[[ kernel, max_total_threads_per_threadgroup(64) ]] void f()",
       "__attribute__((holdfast(\"kernel\"),holdfast(\"max_total_threads_per_threadgroup\",64))) "
       "void f()"},
      {"[[host_name(\"a_b\")]]", "__attribute__((holdfast(\"host_name\",\"a_b\")))"},
      {"[[buffer(A + B(1, 2))]]", "__attribute__((holdfast(\"buffer\",A + B(1, 2))))"},
      {"[[metal::kernel]]", "__attribute__((holdfast(\"kernel\")))"},
      {"[[maybe_unused]] int x", "[[maybe_unused]] int x"},
      {"[[clang::always_inline]] int f()", "[[clang::always_inline]] int f()"},
      {"[[maybe_unused, buffer(1)]]", "[[maybe_unused]] __attribute__((holdfast(\"buffer\",1)))"},
      {"a[b[0]]", "a[b[0]]"},
      {"[[unroll]] for", "[[unroll]] for"},
      {"x [[buffer(0)", "x [[buffer(0)"},  // unfinished: clang's to report
  };
  for (const Case& c : cases) CHECK(rewrite(c.before) == c.after);
}

TEST_CASE("address spaces on array parameters") {
  const Case cases[] = {
      {"void f(threadgroup float a[32])", "void f(threadgroup float *a)"},
      {"void f(int n, const device float a[], int m)",
       "void f(int n, const device float *a, int m)"},
      {"void f(threadgroup float a[4][8])", "void f(threadgroup float (*a)[8])"},
      {"void f(threadgroup vec<float, 4> a[N * 2], int b)",
       "void f(threadgroup vec<float, 4> *a, int b)"},
      {"void f(constant T t[2] [[buffer(0)]])",
       "void f(constant T *t __attribute__((holdfast(\"buffer\",0))))"},
      {"void f(threadgroup float (&a)[32])", "void f(threadgroup float (&a)[32])"},
      {"void f(threadgroup float* a[2])", "void f(threadgroup float* a[2])"},
      {"void f(thread float a[32])", "void f(thread float a[32])"},
      {"{ threadgroup float a[32]; }", "{ threadgroup float a[32]; }"},
      {"f((threadgroup float*)a, b[3])", "f((threadgroup float*)a, b[3])"},
      {"f([&](int i) { threadgroup float x[4]; })", "f([&](int i) { threadgroup float x[4]; })"},
  };
  for (const Case& c : cases) CHECK(rewrite(c.before) == c.after);
}

TEST_CASE("address spaces of member functions") {
  const Case cases[] = {
      {"struct S { float f() const thread { return 1; } };",
       "struct S { float f() const  { return 1; } };"},
      {"struct S { float f() threadgroup; };", "struct S { float f() ; };"},
      {"struct S { float f() constant { return 1; } };",
       "struct S { float f() const { return 1; } };"},
      {"if (x) device float* p = q;", "if (x) device float* p = q;"},
      {"for (;;) threadgroup float x[2];", "for (;;) threadgroup float x[2];"},
      // The same function for several spaces is one function.
      {"struct S { int f(int a) const device { return 1; } int f(int a) const thread { return 1; } "
       "int g(); };",
       "struct S { int f(int a) const  { return 1; }  int g(); };"},
      {"struct S { int f(int a) device; int f(float a) thread; };",
       "struct S { int f(int a) ; int f(float a) ; };"},
  };
  for (const Case& c : cases) CHECK(rewrite(c.before) == c.after);
}

TEST_CASE("pragmas and words of newer versions") {
  CHECK(rewrite("#pragma METAL fp math_mode(safe)\n") ==
        "#pragma clang fp reassociate(off) reciprocal(off)\n");
  CHECK(rewrite("#pragma METAL fp contract(off)\n") == "#pragma clang fp contract(off)\n");
  CHECK(rewrite("#pragma METAL internals : enable\n") == "#pragma METAL internals : enable\n");
  CHECK(rewrite("device coherent(system) int* p") == "device  int* p");
}

TEST_CASE("positions go back to the original") {
  const std::string before = "a = 0.5; [[buffer(7)]] b = 1.5h + c;\n// 0.5\nd = .5 + e;";
  RewrittenText after = rewrite_tokens(before);
  for (const char* word : {"a =", "b =", "c;", "7)", "// 0.5", "d =", "e;"}) {
    CHECK(after.original(after.text.find(word)) == before.find(word));
  }
  CHECK(after.original(after.text.find("__attribute__")) == before.find("[["));
  CHECK(after.original(after.text.size()) == before.size());
}

TEST_CASE("any text comes to an end") {
  for (const char* text :
       {"", "\"", "'", "/*", "R\"(", "[[", "#", "#define", "\\", "((((", "))))", "}}}}{", "0x",
        "1e", "struct S { int f() device", "[[buffer(", "is_function_constant_defined("}) {
    CHECK(rewrite(text) == text);
  }
  std::string brackets(100000, '[');
  CHECK(rewrite(brackets).size() == brackets.size());
}
