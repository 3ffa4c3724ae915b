// Errors say which kernel, and where in the user's own text.
#include <doctest/doctest.h>

#include <cstdlib>

#include "msl/frontend/guard.h"
#include "msl/signature.h"
#include "msl/sources.h"

using namespace holdfast;
using namespace holdfast::msl;

namespace {

struct Attempt {
  std::string error;
  bool compiled = false;
};

Attempt attempt(const std::string& body, const std::string& header = "") {
  Signature signature;
  signature.name = "my kernel";
  signature.input_names = {"x"};
  signature.output_names = {"out"};
  signature.body = body;
  signature.header = header;
  std::vector<SignatureInput> inputs = {{float32, 100, 1}};
  std::vector<Dtype> outputs = {float32};
  Attempt result;
  llvm::LLVMContext context;
  KernelInterface interface;
  try {
    to_scalar_ir(generate(signature, inputs, outputs, {}).source, context, interface);
    result.compiled = true;
  } catch (const CompileError& error) {
    result.error = error.what();
  }
  return result;
}

bool starts(const std::string& text, const std::string& with) { return text.rfind(with, 0) == 0; }
bool has(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

}  // namespace

namespace {

// Not a loop: the address of each local is used.
__attribute__((noinline)) int descend(volatile int* from) {
  volatile int local[64] = {*from};
  return *from > 0 ? descend(local) + local[1] : 0;
}

}  // namespace

TEST_CASE("faults of the compiler") {
  auto what = [](std::function<void()> work) -> std::string {
    try {
      run_guarded(work);
    } catch (const CompileError& error) {
      return std::string("refused: ") + error.what();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "nothing";
  };
  CHECK(what([] {}) == "nothing");
  install_guard_handlers();
  volatile int start = 1;
  CHECK(what([&] { descend(&start); }).find("refused: [kernel] error: the source is nested") == 0);
  CHECK(what([] {
          int* volatile null = nullptr;
          *null = 1;
        }).find("went through a null pointer") != std::string::npos);
  CHECK(what([] { give_up(CompileError("enough")); }) == "refused: enough");
  CHECK(what([] { throw std::runtime_error("plain"); }) == "plain");
}

TEST_CASE("texts that multiply, or nest without an end") {
  auto error_of = [](const std::string& text) {
    return holdfast::msl::testing::compile(text).error;
  };
  auto has = [](const std::string& text, const char* what) {
    INFO(text);
    return text.find(what) != std::string::npos;
  };
  error_of("");
  install_guard_handlers();  // in front of those that doctest installs for each test case
  std::string signs;
  for (int i = 0; i < 200000; ++i) signs += "- ";
  CHECK(has(error_of("kernel void k(device int* x) { x[0] = " + signs + "x[1]; }"),
            "nested too deeply"));
  CHECK(has(error_of("template <int N, int M> struct Wide { static constexpr int value = "
                     "Wide<N - 1, M * 2>::value + Wide<N - 1, M * 2 + 1>::value; };\n"
                     "template <int M> struct Wide<0, M> { static constexpr int value = M; };\n"
                     "kernel void k(device int* x) { x[0] = Wide<26, 0>::value; }"),
            "more than 400000 instantiations of templates"));
  std::string doubling = "#define A0 1,\n";
  for (int i = 1; i < 24; ++i) {
    const std::string before = " A" + std::to_string(i - 1);
    doubling += "#define A" + std::to_string(i) + before + before + "\n";
  }
  CHECK(has(error_of(doubling + "constant char t[] = {A23 1}; kernel void k(device int* x) {}"),
            "body:25:"));
  CHECK(
      has(error_of("constant int t[] = {[0 ... 2000000000] = 1}; kernel void k(device int* x) {}"),
          "body:1:28: error: designators of ranges"));
  CHECK(has(error_of("template <class T, T... v> struct S {};\n"
                     "using s = __make_integer_seq<S, int, 2000000000>;"),
            "body:2:11: error: use of undeclared identifier"));
  CHECK(has(error_of("using s = make_index_sequence<3000000000>; kernel void k(device int* x) {}"),
            "a sequence of more than 65536 integers"));
  std::string calls = "float f0(float x, device float* p) { p[0] = x; return p[int(x)]; }\n";
  for (int i = 1; i < 24; ++i) {
    const std::string n = std::to_string(i), m = std::to_string(i - 1);
    calls += "float f" + n + "(float x, device float* p) { return f" + m + "(x, p) + p[1] * f" + m +
             "(x + 1, p); }\n";
  }
  CHECK(has(error_of(calls + "kernel void k(device float* x) { x[0] = f23(x[1], x); }"),
            "more than 100000 instructions"));
  // The process goes on.
  CHECK(error_of("kernel void k(device int* x) { x[0] = 1; }") == "");
}

TEST_CASE("an error in the body: line, column, the line, a caret") {
  CHECK(attempt("float y = 0.5;\n  out[0] = y * something;").error ==
        "[my kernel] body:2:16: error: use of undeclared identifier 'something'\n"
        "    out[0] = y * something;\n"
        "                 ^");
}

TEST_CASE("an error in the header") {
  CHECK(starts(attempt("out[0] = f();", "\n// two lines\nfloat f() { retrun 1.5; }").error,
               "[my kernel] header:3:13: error: "));
}

TEST_CASE("an error after the token pass has changed the line") {
  CHECK(
      starts(attempt("float y = 0.5 + .25 + 1e-3 + foo;").error, "[my kernel] body:1:30: error: "));
}

TEST_CASE("an error in a macro is shown where the macro is used") {
  CHECK(starts(attempt("#define TWICE(a) (a + a)\nout[0] = TWICE(foo);").error,
               "[my kernel] body:2:16: error: use of undeclared identifier 'foo'"));
}

TEST_CASE("an error inside our headers is shown where the user's text led to it") {
  std::string error = attempt("int i = 0;\nout[0] = as_type<float>(short(1));").error;
  CHECK_MESSAGE(starts(error, "[my kernel] body:2:10: error: "), error);
}

TEST_CASE("braces that do not match") {
  CHECK(starts(attempt("if (x[0] > 1.0) { out[0] = 1;").error,
               "[my kernel] body:1:30: error: expected '}'"));
  CHECK(starts(attempt("out[0] = 1; }").error, "[my kernel] body:1:1"));
  CHECK(starts(attempt("out[0] = 1", "").error, "[my kernel] body:1:11: error: expected ';'"));
  CHECK(starts(attempt("out[0] = (1;").error, "[my kernel] body:1:12: error: expected ')'"));
}

TEST_CASE("a name that cannot be a parameter's is shown where it was put") {
  Signature signature;
  signature.name = "my kernel";
  signature.input_names = {"x", "INFINITY"};
  signature.output_names = {"out"};
  signature.body = "out[0] = x[0];";
  for (const char* header : {"", "float f() { return 1; }"}) {
    signature.header = header;
    std::vector<SignatureInput> inputs = {{float32, 100, 1}, {float32, 100, 1}};
    std::vector<Dtype> outputs = {float32};
    llvm::LLVMContext context;
    KernelInterface interface;
    std::string error;
    try {
      to_scalar_ir(generate(signature, inputs, outputs, {}).source, context, interface);
    } catch (const CompileError& thrown) {
      error = thrown.what();
    }
    CHECK_MESSAGE(starts(error, "[my kernel] signature:2:"), error);
    CHECK(has(error, "const device float* INFINITY [[buffer(1)]]"));
  }
  // A header that is not closed is an error of the header.
  std::string open = attempt("out[0] = 1;", "float f() { if (true) { return 1; }").error;
  CHECK_MESSAGE(starts(open, "[my kernel] header:1:"), open);
  open = attempt("out[0] = 1;", "struct A { float f; }").error;
  CHECK_MESSAGE(starts(open, "[my kernel] header:1:"), open);
}

TEST_CASE("what the language has and we do not is named") {
  std::string error = attempt("out[0] = 1;", "#include <metal_tensor>\n").error;
  CHECK(starts(error, "[my kernel] header:1:10: error: "));
  CHECK(has(error, "MetalPerformancePrimitives"));
  error = attempt("out[0] = 1;", "float f(texture2d<float> t) { return 1; }").error;
  CHECK(has(error, "header:1:9"));
  CHECK(has(error, "textures"));
}

TEST_CASE("types are named as the language names them") {
  CHECK(has(attempt("bfloat b = half(1.0); out[0] = b;").error,
            "body:1:8: error: cannot initialize a variable of type 'bfloat' with an rvalue of type "
            "'half'"));
  CHECK(has(attempt("threadgroup float s[2]; device float* p = s;").error, "threadgroup float"));
}

TEST_CASE("casts that go through float hide no error and move none") {
  CHECK(attempt("half h = 2; bfloat b = bfloat(h); out[0] = float(half(b));").compiled);
  const std::string error =
      attempt("half h = 2; bfloat b = bfloat(h) + nothing; out[0] = float(half(b));").error;
  CHECK_MESSAGE(starts(error, "[my kernel] body:1:36: error: use of undeclared identifier"), error);
  CHECK_FALSE(has(error, "cast"));
  // The operand begins in one macro and ends in another: there is no text to put it around.
  CHECK(has(
      attempt("#define BEGIN half(b\n#define END + 1)\nbfloat b = 1; out[0] = BEGIN END;").error,
      "functional-style cast from 'bfloat' to 'half' is not allowed: convert to float"));
}

TEST_CASE("#error, static_assert") {
  CHECK(starts(attempt("#error not today\n").error, "[my kernel] body:1:2: error: not today"));
  CHECK(starts(attempt("static_assert(sizeof(int) == 8, \"int is small\");").error,
               "[my kernel] body:1:15: error: "));
}

TEST_CASE("files of the machine cannot be included") {
  for (const char* name : {"</etc/passwd>", "\"/etc/passwd\"", "<../../../../etc/passwd>",
                           "\"../../../../etc/passwd\"", "<stdio.h>", "</holdfast/prelude.pch>"}) {
    Attempt result = attempt("out[0] = 1;", std::string("#include ") + name);
    CHECK_FALSE(result.compiled);
    CHECK_MESSAGE(starts(result.error, "[my kernel] header:1:10: error: "), result.error);
    CHECK_FALSE(has(result.error, "root:"));
  }
  CHECK_FALSE(attempt("#if __has_include(\"/etc/passwd\")\n#error found\n#endif\n").error.size() >
              0);
  CHECK_FALSE(attempt("const char bytes[] = {\n#embed \"/etc/passwd\"\n};").compiled);
}

TEST_CASE("sources that would not end") {
  // Each must come back, with an error or compiled.
  CHECK(has(attempt("constexpr int n = loop(); out[0] = n;",
                    "constexpr int loop() { int i = 0; while (true) ++i; return i; }")
                .error,
            "error: "));
  CHECK(has(attempt("out[0] = F<0>::value;",
                    "template <int N> struct F { static constexpr int value = F<N + 1>::value; };")
                .error,
            "error: "));
  CHECK(has(attempt("out[0] = f(3);", "float f(int n) { return n == 0 ? 1.0 : f(n - 1); }").error,
            "recursion"));
  const std::string deep(3000, '(');
  CHECK(has(attempt("out[0] = " + deep + "1" + std::string(3000, ')') + ";").error, "error: "));
  std::string sum = "out[0] = x[0]";
  for (int i = 0; i < 20000; ++i) sum += "+1";
  attempt(sum + ";");
  std::string chain;
  for (int i = 0; i < 2000; ++i)
    chain += "if (x[0] == " + std::to_string(i) + ") out[0] = 1; else ";
  CHECK(attempt(chain + "out[0] = 2;").error == "");
}

TEST_CASE("what a kernel cannot do") {
  CHECK(has(attempt("out[0] = f(1);", "extern float f(int);").error, "declared but not defined"));
  CHECK(has(attempt("asm volatile(\"nop\"); out[0] = 1;").error, "error: "));
  CHECK(has(attempt("out[0] = counter++;", "int counter = 0;").error, "constant"));
  CHECK(has(attempt("float big[10000000]; for (int i = 0; i < 10000000; ++i) big[i] = x[i];\n"
                    "out[0] = big[int(x[0])];")
                .error,
            "private arrays"));
  CHECK(has(attempt("threadgroup float s[9000]; s[int(x[0])] = 1.0;\n"
                    "threadgroup_barrier(mem_flags::mem_threadgroup); out[0] = s[int(x[1])];")
                .error,
            "36000 bytes"));
  CHECK(has(attempt("throw 1;").error, "error: "));
}

TEST_CASE("an empty body, comments, a body of 125 KB") {
  CHECK(attempt("").error == "");
  CHECK(attempt("// nothing").error == "");
  CHECK(starts(attempt("/* not closed").error, "[my kernel] body:1:1: error: unterminated"));
  std::string large;
  while (large.size() < 125000)
    large += "if (x[" + std::to_string(large.size() % 97) + "] > 0.5) out[1] += 1.0;\n";
  CHECK(attempt(large).error == "");
}

TEST_CASE("clang's own debugging is out of reach") {
  for (const char* what : {"crash", "parser_crash", "llvm_fatal_error", "overflow_stack", "assert",
                           "dump x", "modules building"}) {
    CHECK(attempt(std::string("#pragma clang __debug ") + what + "\nout[0] = 1;").error == "");
    CHECK(attempt(std::string("_Pragma(\"clang __debug ") + what + "\")\nout[0] = 1;").error == "");
  }
}

TEST_CASE("many errors are cut short") {
  std::string body;
  for (int i = 0; i < 40; ++i) body += "unknown" + std::to_string(i) + " = 1;\n";
  std::string error = attempt(body).error;
  CHECK(has(error, "more errors"));
  CHECK(error.size() < 4000);
}
