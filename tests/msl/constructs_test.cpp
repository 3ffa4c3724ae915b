// What real kernels are made of compiles, and becomes well-formed scalar IR.
#include <doctest/doctest.h>
#include <llvm/Support/raw_ostream.h>

#include <thread>

#include "msl/signature.h"
#include "msl/sources.h"

using namespace holdfast;
using namespace holdfast::msl;

namespace {

struct Construct {
  const char* name;
  const char* header;
  const char* body;
};

// x: 100 × T; small: 4 floats in constant memory; count: an int scalar; out: T; N = 8; T is varied.
const Construct constructs[] = {
    {"constexpr locals, auto pointers", "",
     "constexpr int M = N * 2; auto p = x + M; auto q = out + thread_position_in_grid.x; *q = "
     "p[0];"},
    {"template functions and structs in the header",
     "template <typename U, int K> struct Box { U v[K]; U sum() const thread { U s = 0; for (int i "
     "= 0; i < K; ++i) s += v[i]; return s; } };\n"
     "template <typename U> METAL_FUNC U twice(U u) { return u * 2; }",
     "Box<float, N> b; for (int i = 0; i < N; ++i) b.v[i] = x[i]; out[0] = T(twice(b.sum()));"},
    {"#define and #undef in the body", "#if defined(__METAL__)\n#define SCALE 2.0\n#endif",
     "#define READ(i) float(x[i])\nout[0] = T(READ(1) * SCALE);\n#undef READ"},
    {"loops of all kinds", "",
     "float s = 0; int i = 0; while (i < count) { s += float(x[i++]); } do { s *= 0.5; } while (s "
     "> 4.0); out[0] = T(s);"},
    {"using and typedef in the body", "",
     "typedef float U; using T4 = vec<U, 4>; T4 v(1.0); out[0] = T(v.x + v.w);"},
    {"pragmas for unrolling", "",
     "float s = 0;\n#pragma unroll\nfor (int i = 0; i < N; ++i) s += float(x[i]);\n#pragma clang "
     "loop unroll(full)\n"
     "for (int i = 0; i < 4; ++i) s += small[i];\n_Pragma(\"unroll\") for (int i = 0; i < 2; ++i) "
     "s += 1.0;\nout[0] = T(s);"},
    {"includes and using again",
     "#include <metal_stdlib>\n#include <metal_simdgroup>\n#include "
     "<metal_simdgroup_matrix>\nusing namespace metal;",
     "out[0] = T(metal::max(1.0f, float(x[0])));"},
    {"if constexpr and static_assert", "",
     "static_assert(N == 8, \"N\"); if constexpr (N > 4) { out[0] = x[1]; } else { out[0] = x[2]; "
     "}"},
    {"structs, unions, bit fields",
     "union Bits { float f; uint u; uchar b[4]; };\nstruct Nibbles { uchar low : 4; uchar high : "
     "4; };",
     "Bits b; b.f = float(x[0]); Nibbles n; n.low = b.u & 15; n.high = b.b[3] >> 4; out[0] = "
     "T(float(n.low + n.high));"},
    {"switch", "",
     "float r; switch (count) { case 0: r = 1; break; case 1: r = 2.5; break; case 7: r = 3; "
     "break; default: r = 4; } out[0] = T(r);"},
    {"argument pointers advance", "",
     "x += thread_position_in_grid.x; out += 3; out[0] = x[0]; small += 1; out[1] = T(small[0]);"},
    {"an array of device pointers", "",
     "const device T* ps[2] = {x, x + 8}; out[0] = ps[count & 1][0];"},
    {"constant pointers from small inputs", "",
     "constant float* cs = small; const constant float* ct = cs + 1; out[0] = T(cs[0] + ct[0]);"},
    {"threadgroup memory anywhere",
     "float total(threadgroup const float values[8]) { float s = 0; for (int i = 0; i < 8; ++i) s "
     "+= values[i]; return s; }",
     "if (count > 99) return; if (count > 1) { threadgroup float inner[8]; "
     "inner[thread_index_in_simdgroup & 7] = 1.5;\n"
     "threadgroup_barrier(mem_flags::mem_none); out[0] = T(total(inner)); }\nthreadgroup float "
     "one; one = 2.0; threadgroup_barrier(mem_flags::mem_threadgroup); out[1] = T(one);"},
    {"casts between pointers", "",
     "const device uint4* v = (const device uint4*)(x); uint4 w = v[0]; out[0] = T(float(w.x & "
     "0xFF));\n"
     "device T* mutable_x = (device T*)x; out[1] = mutable_x[1]; out[2] = T(float((char)(w.y & "
     "0xFF)));"},
    {"atomics through casts", "",
     "threadgroup uint bins[32]; atomic_fetch_or_explicit((threadgroup atomic_uint*)&bins[3], 4u, "
     "memory_order_relaxed);\n"
     "atomic_fetch_add_explicit(reinterpret_cast<device atomic_uint*>(out), 1u, "
     "memory_order_relaxed); out[1] = T(float(bins[3]));"},
    {"attributes on helper parameters",
     "METAL_FUNC short2 coordinates(ushort lane [[thread_index_in_simdgroup]]) { return "
     "short2(lane / 4, lane % 4); }",
     "short2 c = coordinates(ushort(thread_index_in_simdgroup)); out[0] = T(float(c.x * 8 + "
     "c.y));"},
    {"specialisation on address spaces",
     "template <typename P> struct Space;\ntemplate <typename U> struct Space<device U*> { static "
     "constant constexpr int value = 1; };\n"
     "template <typename U> struct Space<const device U*> { static constant constexpr int value = "
     "5; };\n"
     "template <typename U> struct Space<const constant U*> { static constant constexpr int value "
     "= 2; };\n"
     "template <typename U> struct Space<threadgroup U*> { static constant constexpr int value = "
     "3; };\n"
     "template <typename U> struct Space<thread U*> { static constant constexpr int value = 4; };",
     "float mine[2]; threadgroup float ours[2]; (void)mine; (void)ours;\n"
     "static_assert(Space<decltype(out)>::value == 1 && Space<decltype(x)>::value == 5 && "
     "Space<decltype(small)>::value == 2, \"\");\n"
     "static_assert(Space<threadgroup float*>::value == 3 && Space<thread float*>::value == 4, "
     "\"\"); out[0] = T(1.0);"},
    {"overloads on address spaces",
     "int where(const device half*) { return 1; }\nint where(const device float*) { return 1; "
     "}\nint where(const device bfloat*) { return 1; }\n"
     "int where(const constant float*) { return 2; }\nint where(threadgroup float*) { return 3; "
     "}\nint where(thread float*) { return 4; }",
     "float mine[2] = {0, 1}; threadgroup float ours[2]; out[0] = T(float(where(x) + where(small) "
     "* 10 + where(ours) * 100 + where(mine) * 1000));"},
    {"tables at program scope",
     "constant float nf4[4] = {-1.0, -0.5, 0.5, 1.0};\nconstexpr constant uchar order[3] = {2, 0, "
     "1};\nstatic constexpr constant float half_of = 0.5;\nconstexpr float plain[2] = {1.5, 2.5};",
     "out[0] = T(nf4[count & 3] + order[count % 3] + half_of + plain[count & 1]);"},
    {"lambdas", "", "auto f = [&](int i) { return float(x[i]) * 2.0; }; out[0] = T(f(1) + f(2));"},
    {"floating-point pragmas first in the body", "",
     "#pragma clang fp contract(off)\nout[0] = T(float(x[0]) * 2.0 + 1.0);"},
    {"64-bit integers", "",
     "int64_t a = int64_t(x_strides[0]) * count; ulong b = ulong(a) >> 3; out[0] = T(float(b % "
     "7ul));"},
    {"swizzles and vector constructors", "",
     "float4 v = float4(small[0], 2.0, float2(3.0, 4.0)); float3 w = v.zyx; v.xy = w.yz; out[0] = "
     "T(dot(v, v) + w.x);"},
    {"half and bfloat literals and arithmetic", "",
     "half h = half(float(x[0])) * 1.5h; bfloat b = bfloat(float(h)) + 0.5bf; out[0] = T(float(h + "
     "1) + float(b) "
     "+ (count > 1 ? float(b) : -1e30));"},
    {"element locations and limits of MLX", "",
     "auto loc = elem_to_loc(thread_position_in_grid.x, x_shape, x_strides, x_ndim); out[0] = "
     "x[loc]; if (float(x[0]) > Limits<float>::max) out[1] = T(ceildiv(count, 3));"},
    {"simd reductions and shuffles", "",
     "float v = float(x[thread_index_in_simdgroup]); v = simd_sum(v) + simd_shuffle_xor(v, 4) + "
     "simd_shuffle_down(v, 2) + simd_prefix_exclusive_sum(v) + simd_broadcast(v, 3); out[0] = "
     "T(v);"},
    {"matrices of a simdgroup", "",
     "simdgroup_matrix<float, 8, 8> a, b, c(0.0); threadgroup float tile[64]; "
     "tile[thread_index_in_simdgroup] = float(x[0]);\n"
     "simdgroup_barrier(mem_flags::mem_threadgroup); simdgroup_load(a, tile, 8); simdgroup_load(b, "
     "tile, 8); simdgroup_multiply_accumulate(c, a, b, c); out[0] = T(c.thread_elements()[0]);"},
    {"division by what may be zero, long shifts", "",
     "int d = count; int s = 1 << (d + 40); out[0] = T(float(7 / d + 9 % d + s));"},
    {"a float stored without a cast", "",
     "float v = 1.5; out[0] = v * float(x[0]); out[1] = 1 / small[0];"},
    {"functions of fast and precise", "",
     "float v = float(x[0]); out[0] = T(metal::fast::exp(v) + precise::tanh(v) + fast::rsqrt(v) + "
     "metal::exp(-INFINITY) + M_PI_F + log1p(v));"},
    {"early return before a barrier", "",
     "threadgroup float s[32]; if (thread_index_in_simdgroup > 20) return; "
     "s[thread_index_in_simdgroup] = float(x[0]); threadgroup_barrier(mem_flags::mem_threadgroup); "
     "out[0] = T(simd_sum(s[3]));"},
    {"goto", "", "int i = 0; again: i += 3; if (i < count) goto again; out[0] = T(float(i));"},
};

GeneratedKernel kernel_of(const Construct& construct, Dtype type, MathMode math = MathMode::safe) {
  Signature signature;
  signature.name = construct.name;
  signature.input_names = {"x", "small", "count"};
  signature.output_names = {"out"};
  signature.header = construct.header;
  // Used in every body, so that each kernel has them.
  signature.body =
      std::string(construct.body) + "\n// thread_position_in_grid thread_index_in_simdgroup";
  signature.math = math;
  std::vector<SignatureInput> inputs = {{type, 100, 2}, {float32, 4, 1}, {int32, 1, 0}};
  std::vector<Dtype> outputs = {type};
  std::vector<std::pair<std::string, TemplateValue>> arguments = {{"T", type}, {"N", 8}};
  return generate(signature, inputs, outputs, arguments);
}

std::string compile_and_check(const KernelSource& source, std::string* text = nullptr) {
  llvm::LLVMContext context;
  KernelInterface interface;
  try {
    auto module = to_scalar_ir(source, context, interface);
    if (text != nullptr) {
      llvm::raw_string_ostream stream(*text);
      module->print(stream, nullptr);
    }
    return check_scalar_ir(*module, interface);
  } catch (const CompileError& error) {
    return error.what();
  }
}

std::string text_of(const char* header, const char* body, MathMode math = MathMode::safe,
                    Dtype type = float32) {
  std::string text;
  std::string wrong =
      compile_and_check(kernel_of({"text", header, body}, type, math).source, &text);
  return wrong.empty() ? text : wrong;
}

unsigned count(const std::string& text, const std::string& what) {
  unsigned found = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++found;
  return found;
}

}  // namespace

TEST_CASE("constructs of real kernels, for three types") {
  for (const Construct& construct : constructs) {
    for (Dtype type : {float32, float16, bfloat16}) {
      std::string wrong = compile_and_check(kernel_of(construct, type).source);
      CHECK_MESSAGE(wrong == "", construct.name << ": " << wrong);
    }
  }
}

TEST_CASE("cross-lane calls stay where they are") {
  // Other lanes are active after the branch: these three sums differ.
  CHECK(count(text_of("",
                      "float v = x[thread_index_in_simdgroup]; float s = simd_sum(v);\n"
                      "if (thread_index_in_simdgroup > 5) { out[1] = simd_sum(v) + s; return; }\n"
                      "out[0] = simd_sum(v) + s;"),
              "call float @__hf_reduce_add_f32") == 3);
  // Nor do the two sides of a branch share one, nor does a loop lose one.
  CHECK(count(text_of(
                  "",
                  "float v = x[thread_index_in_simdgroup], s = 0;\n"
                  "if (thread_index_in_simdgroup & 1) s = simd_max(v); else s = simd_max(v) * 2;\n"
                  "for (int i = thread_index_in_simdgroup; i < count; ++i) s += "
                  "simd_sum(v);\nout[0] = s;"),
              "call float @__hf_reduce_max_f32") == 2);
}

TEST_CASE("barriers keep what is before them and after them apart") {
  std::string text = text_of("",
                             "threadgroup float s[32]; s[thread_index_in_simdgroup] = 1.0;\n"
                             "threadgroup_barrier(mem_flags::mem_none);\nfloat a = s[0];\n"
                             "threadgroup_barrier(mem_flags::mem_none);\nout[0] = a + s[0];");
  CHECK(count(text, "call void @__hf_threadgroup_barrier") == 2);
  CHECK(count(text, "load float, ptr addrspace(3)") == 2);
}

TEST_CASE("arithmetic of half and bfloat keeps its type") {
  std::string text = text_of("", "out[0] = x[0] * x[1] + 1;", MathMode::safe, float16);
  CHECK(count(text, "fmul half") == 1);
  CHECK(count(text, "fadd half") == 1);
  text = text_of("", "out[0] = x[0] * x[1] + 1;", MathMode::safe, bfloat16);
  CHECK(count(text, "fmul bfloat") == 1);
  CHECK(count(text, "fadd bfloat") == 1);
  CHECK(count(text_of("", "out[0] = x[0] * 0.5 + 0.25;", MathMode::safe, float16), "fmul float") ==
        1);
}

TEST_CASE("shifts count modulo the width, endless loops stay, nothing is fused") {
  CHECK(count(text_of("", "out[0] = float(1 << count);"), "and i32") >= 1);
  CHECK(count(text_of("", "while (true) { if (count == 3) break; } out[0] = 1;"), "br i1") >= 1);
  CHECK(count(text_of("", "#pragma clang fp contract(fast)\nout[0] = x[0] * x[1] + x[2];"),
              "fmuladd") == 0);
}

TEST_CASE("loads through a vector's pointer promise no alignment of a vector") {
  std::string text =
      text_of("", "float4 v = *(const device float4*)(x + count); out[0] = v.x + v.y + v.z + v.w;");
  CHECK(count(text, "align 16") == 0);
  CHECK(count(text, "load float, ptr addrspace(1)") == 4);
}

TEST_CASE("math modes") {
  const char* body =
      "#ifdef __FAST_MATH__\nout[1] = 7.0;\n#else\nout[1] = 9.0;\n#endif\nout[0] = x[0] / 3.0 + "
      "0.0;";
  std::string safe = text_of("", body), relaxed = text_of("", body, MathMode::relaxed),
              fast = text_of("", body, MathMode::fast);
  CHECK(count(safe, "store float 9") == 1);
  CHECK(count(relaxed, "store float 9") == 1);
  CHECK(count(fast, "store float 7") == 1);
  CHECK(count(safe, "fdiv") == 1);
  CHECK(count(fast, "fdiv") == 0);  // by a constant: a product
  // No flag is left that would let two lowerings differ.
  for (const std::string& text : {safe, relaxed, fast}) {
    CHECK(count(text, "reassoc") == 0);
    CHECK(count(text, "arcp") == 0);
  }
  // A block that asks for safe arithmetic gets it.
  CHECK(count(text_of("", "#pragma METAL fp math_mode(safe)\nout[0] = x[0] / 3.0;", MathMode::fast),
              "fdiv") == 1);
}

TEST_CASE("several compilations at once") {
  std::vector<std::thread> threads;
  std::vector<std::string> wrong(8);
  for (size_t i = 0; i < wrong.size(); ++i) {
    threads.emplace_back([i, &wrong] {
      for (int round = 0; round < 4; ++round) {
        const Construct& construct = constructs[(i * 4 + round) % std::size(constructs)];
        wrong[i] += compile_and_check(kernel_of(construct, round % 2 ? float32 : float16).source);
        // One that fails beside those that do not.
        std::string error =
            compile_and_check(kernel_of({"bad", "", "out[0] = nothing_like_it;"}, float32).source);
        if (error.find("body:1:10: error: use of undeclared identifier 'nothing_like_it'") ==
            std::string::npos)
          wrong[i] += error;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& message : wrong) CHECK(message == "");
}
