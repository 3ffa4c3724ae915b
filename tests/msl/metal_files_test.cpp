// Whole .metal files: several kernels, host names, function constants, files beside them.
#include <doctest/doctest.h>
#include <llvm/Support/raw_ostream.h>

#include <fstream>

#include "msl/sources.h"

using namespace holdfast::msl;
using namespace holdfast::msl::testing;

namespace {

const char* const file = R"(
constant bool has_mask [[function_constant(0)]];
constant int block [[function_constant(3)]];
constant float factor [[function_constant(7)]];
constant bool both = has_mask && is_function_constant_defined(block);
struct Params { int n; float scale; uint shape[4]; };

kernel void plain(const device float* x [[buffer(0)]], device float* out [[buffer(5)]],
                  constant Params& p [[buffer(2)]], threadgroup float* scratch [[threadgroup(1)]],
                  uint tid [[thread_position_in_grid]], ushort2 group [[threadgroup_position_in_grid]]) {
  if (tid >= uint(p.n)) return;
  scratch[tid & 31] = x[tid] * p.scale + p.shape[1] + group.y;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[tid] = scratch[(tid + 1) & 31];
}
[[kernel, max_total_threads_per_threadgroup(64)]] void counts(device atomic_uint* c, device uint* other) {
  atomic_fetch_add_explicit(c, other[0], memory_order_relaxed);
}
#define instantiate(type) template [[host_name("add_" #type)]] [[kernel]] void add<type>( \
    const device type* a [[buffer(0)]], device type* b [[buffer(1)]], uint i [[thread_position_in_grid]]);
template <typename T>
[[kernel]] void add(const device T* a [[buffer(0)]], device T* b [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  b[i] = a[i] + T(1);
}
instantiate(float)
instantiate(bfloat)
kernel void masked(device float* out) { out[0] = (both ? block : -1) * factor; }
kernel void unmasked(device float* out) { out[0] = is_function_constant_defined(has_mask) ? 2.5 : 1.5; }
)";

std::string stored_to_output(const Compiled& compiled) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  compiled.module->print(stream, nullptr);
  const size_t at = stream.str().find("store float ");
  return at == std::string::npos ? stream.str()
                                 : text.substr(at + 12, text.find(',', at) - at - 12);
}

}  // namespace

TEST_CASE("the kernels of a file") {
  KernelSource source;
  source.kernel = "file";
  source.text = start + file;
  std::vector<KernelInterface> kernels = list_kernels(source);
  std::vector<std::string> names;
  for (const KernelInterface& kernel : kernels) names.push_back(kernel.entry);
  REQUIRE(names == std::vector<std::string>{"plain", "counts", "add_float", "add_bfloat", "masked",
                                            "unmasked"});
  CHECK(kernels[1].max_threads == 64);
  CHECK(kernels[2].max_threads == 1024);
  CHECK(kernels[3].arguments[0].element_size == 2);
  REQUIRE(kernels[0].arguments.size() == 4);
  CHECK(kernels[0].arguments[1].slot == 5);
  CHECK(kernels[0].arguments[2].kind == KernelArgument::Kind::constant);
  CHECK(kernels[0].arguments[2].element_size == 24);
  CHECK(kernels[0].arguments[3].kind == KernelArgument::Kind::threadgroup);
  CHECK(kernels[0].arguments[3].slot == 1);
  CHECK(kernels[0].attributes ==
        std::vector<std::string>{"thread_position_in_grid", "threadgroup_position_in_grid"});
  // Without numbers the buffers count up.
  CHECK(kernels[1].arguments[0].slot == 0);
  CHECK(kernels[1].arguments[1].slot == 1);
}

TEST_CASE("each kernel of a file compiles") {
  for (const char* name : {"plain", "counts", "add_float", "add_bfloat"}) {
    Compiled k = compile(file, name);
    CHECK_MESSAGE(k.error == "", name << ": " << k.error);
    CHECK(check_scalar_ir(*k.module, k.interface) == "");
  }
  Compiled counts = compile(file, "counts");
  CHECK(counts.interface.arguments[0].written);
  CHECK_FALSE(counts.interface.arguments[1].written);  // not const, but only read
}

TEST_CASE("a kernel that is not there, or not named among several") {
  CHECK(compile(file, "nope").error.find("no kernel 'nope', it has 'plain', 'counts'") !=
        std::string::npos);
  CHECK(compile(file).error.find("several kernels") != std::string::npos);
  CHECK(compile("float f() { return 1; }").error.find("no kernel function") != std::string::npos);
  CHECK(
      compile("template <typename T> [[kernel]] void f(device T* x) {}").error.find("host_name") !=
      std::string::npos);
}

TEST_CASE("function constants") {
  KernelSource given;
  given.constants = {
      {0, "", "bool", {1}}, {99, "block", "int", {6}}, {7, "", "float", {0x40000000}}};
  Compiled masked = compile(file, "masked", given);
  REQUIRE_MESSAGE(masked.module != nullptr, masked.error);
  CHECK(stored_to_output(masked) == "1.200000e+01");
  CHECK(stored_to_output(compile(file, "unmasked", given)) == "2.500000e+00");
  CHECK(stored_to_output(compile(file, "unmasked")) == "1.500000e+00");
  const std::string vectors = R"(
constant float2 pair [[function_constant(1)]];
constant short4 four [[function_constant(2)]];
constant uchar3 three [[function_constant(4)]];
constant float4 wide [[function_constant(5)]];
constant ulong3 widest [[function_constant(6)]];
kernel void k(device float* out) {
  out[0] = pair.x + 10 * pair.y + 100 * four.x + 1000 * four.w + 10000 * three.z;
}
kernel void large(device float* out) {
  out[0] = wide.x + 10 * wide.y + 100 * wide.z + 1000 * wide.w + 10000 * widest.z;
})";
  given.constants = {{1, "", "float2", {0x400000003f800000}},  // 1, 2
                     {2, "", "short4", {0x0004000000000003}},
                     {4, "", "uchar3", {0x00050000}},
                     {5, "", "float4", {0x400000003f800000, 0x4080000040400000}},  // 1, 2, 3, 4
                     {6, "", "ulong3", {0, 0, 5}}};
  CHECK(stored_to_output(compile(vectors, "k", given)) == "5.432100e+04");
  CHECK(stored_to_output(compile(vectors, "large", given)) == "5.432100e+04");
  // Those that a kernel uses must be given, by itself or through other variables.
  auto error_of = [&](const std::string& body) {
    return compile(
               "constant int block [[function_constant(3)]];\n"
               "constant bool has_mask [[function_constant(1)]];\n"
               "constant bool both = has_mask && block > 0;\n"
               "constant int twice = block * 2;\n"
               "int other();\nconstant int unknown = other();\n"
               "kernel void f(device float* x) { x[0] = " +
               body + "; }")
        .error;
  };
  auto has = [](const std::string& text, const char* what) {
    INFO(text);
    return text.find(what) != std::string::npos;
  };
  CHECK(has(error_of("block"), "variable 'block' has no value: function constant 3 was not given"));
  CHECK(has(error_of("twice"), "variable 'twice' has no value: function constant 3 was not given"));
  CHECK(has(error_of("both"), "variable 'both' has no value: function constant 1 was not given"));
  CHECK(has(error_of("unknown"), "variable 'unknown' has no value: it is not initialised by a"));
  CHECK(error_of("is_function_constant_defined(block)") == "");
}

TEST_CASE("function constants that are assumed to be 0 or false") {
  KernelSource assumed;
  assumed.assume_missing_constants = true;
  Compiled masked = compile(file, "masked", assumed);
  REQUIRE_MESSAGE(masked.module != nullptr, masked.error);
  CHECK(masked.interface.assumed_constants ==
        std::vector<std::string>{"has_mask (0)", "block (3)", "factor (7)"});
  CHECK(stored_to_output(compile(file, "unmasked", assumed)) == "1.500000e+00");
  CHECK(compile(file, "unmasked", assumed).interface.assumed_constants.empty());
  // Those that are given keep their values.
  assumed.constants = {{0, "", "bool", {1}}, {7, "", "float", {0x40000000}}};
  CHECK(compile(file, "masked", assumed).interface.assumed_constants ==
        std::vector<std::string>{"block (3)"});
  assumed.constants = {{99, "given", "int", {6}}};
  const std::string text = R"(
constant float2 pair [[function_constant(1)]];
constant half small [[function_constant(2)]];
constant uchar3 three [[function_constant(4)]];
constant int given [[function_constant(5)]];
constant int unused [[function_constant(6)]];
constant bool flag [[function_constant(8)]];
constant int chosen = is_function_constant_defined(flag) ? flag : 3;
template <typename T> T scaled(T a) { return a + small; }
struct Uses { float value; float get() const { return value + three.z; } };
kernel void k(device float* out, device float* other [[buffer(2), function_constant(flag)]]) {
  Uses uses{scaled(pair.y)};
  out[0] = uses.get() + chosen + given;
})";
  Compiled k = compile(text, "k", assumed);
  REQUIRE_MESSAGE(k.module != nullptr, k.error);
  CHECK(stored_to_output(k) == "9.000000e+00");
  CHECK(k.interface.assumed_constants ==
        std::vector<std::string>{"pair (1)", "small (2)", "three (4)", "flag (8)"});
}

TEST_CASE("functions with loops beside constants that have no value") {
  // What an optimisation of initial values knew of a function was out of date once its calls were
  // inlined, and the next pass crashed.
  const std::string loop =
      "{ float s = 0; for (uint i = 0; i < n; ++i) { if (x[i] > 0) s += CALL; else s -= 1; } "
      "return s; }\n";
  auto with = [&](std::string call) {
    std::string text = loop;
    return text.replace(text.find("CALL"), 4, call);
  };
  const std::string text =
      "constant bool has_mask [[function_constant(20)]];\n"
      "float f(device float* x, uint n) " +
      with("x[i]") + "float g(device float* x, uint n) " + with("f(x, i)") +
      "kernel void k(device float* x, uint i [[thread_position_in_grid]]) {"
      " if (has_mask) x[i] = f(x, i); else x[i] = g(x, i); }";
  CHECK(compile(text).error.find("function constant 20 was not given") != std::string::npos);
}

TEST_CASE("files that a source includes, if it came from a file") {
  const std::string text =
      "#include \"shared.metal\"\nkernel void f(device float* x) { x[0] = shared_scale(2.0); }";
  CHECK(compile(text).error.find("'shared.metal' file not found") != std::string::npos);
  KernelSource beside;
  beside.directory = HOLDFAST_TEST_DATA;
  Compiled k = compile(text, "", beside);
  REQUIRE_MESSAGE(k.module != nullptr, k.error);
  CHECK(stored_to_output(k) == "5.000000e-01");
  // An error in such a file names it, and its own line.
  Compiled deep =
      compile("#include \"inner/deep.metal\"\nkernel void f(device float* x) { x[0] = deep(2.0); }",
              "", beside);
  CHECK(deep.error.find("[kernel_of_test] inner/deep.metal:2:55: error: ") == 0);
  beside.directory += "/inner";
  // A file is rewritten by its own positions.
  const Compiled mixed =
      compile("#include \"mixed.metal\"\nkernel void f(device float* x) { x[0] = mixed(2.0bf); }",
              "", beside);
  REQUIRE_MESSAGE(mixed.module != nullptr, mixed.error);
  CHECK(stored_to_output(mixed) == "1.000000e+00");
  // As compilers do: beside the file that says it, wherever that is.
  const std::string above =
      "#include \"../shared.metal\"\nkernel void f(device float* x) { x[0] = shared_scale(2.0); }";
  CHECK(compile(above, "", beside).error == "");
  CHECK(compile(above).error.find("file not found") != std::string::npos);
  for (const char* missing : {"\"../missing.h\"", "\"/missing/missing.h\"", "<shared.metal>"}) {
    CHECK(compile("#include " + std::string(missing) + "\nkernel void f(device float* x) {}", "",
                  beside)
              .error.find("file not found") != std::string::npos);
  }
  beside.include_directories = {HOLDFAST_TEST_DATA};
  CHECK(compile("#include <shared.metal>\nkernel void f(device float* x) {}", "", beside).error ==
        "");
  // A folder and what is too large are no files to be included.
  CHECK(compile("#include \"../inner\"\nkernel void f(device float* x) {}", "", beside).error !=
        "");
}

TEST_CASE("parameters that a kernel cannot have") {
  auto error = [](const char* parameter) {
    return compile(std::string("kernel void f(device float* out, ") + parameter + ") {}").error;
  };
  CHECK(error("float x").find("body:1:40: error: parameter 'x' of kernel 'f' must be a buffer") !=
        std::string::npos);
  CHECK(error("float* x").find("must point to device, constant or threadgroup memory") !=
        std::string::npos);
  CHECK(error("float x [[thread_position_in_grid]]").find("integer") != std::string::npos);
  CHECK(error("device float* x [[buffer(0)]], device float* y [[buffer(0)]]")
            .find("of an earlier one") != std::string::npos);
  CHECK(error("device float* x [[buffer(40)]]").find("between 0 and 30") != std::string::npos);
  CHECK(compile("kernel int f(device float* x) { return 1; }").error.find("must return void") !=
        std::string::npos);
}
