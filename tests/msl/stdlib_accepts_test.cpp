// Sources as people write them: each compiles, and nothing but scalars and our intrinsics is left.
// What must not compile says why.
#include <doctest/doctest.h>

#include "msl/stdlib_testing.h"

using namespace holdfast::msl;
using namespace holdfast::msl::testing;

namespace {

// Statements in a kernel with buffers of every type.
std::string in_kernel(const std::string& body, const std::string& header = "") {
  return header + R"(
struct Params { int n; float4 v; packed_float3 p; float m[3]; };
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], device half* h [[buffer(2)]],
              device bfloat* b [[buffer(3)]], constant Params& params [[buffer(4)]], const device uint8_t* w [[buffer(5)]],
              device atomic<float>* out [[buffer(6)]], constant float& eps [[buffer(7)]], device int64_t* l [[buffer(8)]],
              device float4* v [[buffer(9)]], device complex64_t* z [[buffer(10)]], constant int* shape [[buffer(11)]],
              constant int64_t* strides [[buffer(12)]], uint3 gid [[thread_position_in_grid]],
              ushort lane [[thread_index_in_simdgroup]]) {
  uint tid = gid.x;
)" + body +
         "\n}\n";
}

void check_accepted(const std::string& body, const std::string& header = "") {
  INFO(body);
  CHECK(problem_of(stdlib_source(in_kernel(body, header))) == "");
}

TEST_CASE("metal_stdlib: mixed types resolve as in Metal") {
  check_accepted(R"(
  y[0] = max(x[1], 0.0f) + max(h[1], half(0)) + max(float(b[1]), 0.0f) + max(x[0], 0) + max(b[1], b[2]);
  y[1] = x[tid] > 0 ? x[tid] : b[1]; y[2] = tid > 3 ? b[tid] : -1e30f;
  y[3] = min(int(tid), params.n - 1) + min(tid, uint(params.n)) + min(tid, 3u) + max(1, params.n) + max((int)tid, 0);
  y[4] = min(ushort(tid), ushort(3)) + max(l[0], l[1]) + min(int64_t(tid), l[1]) + max(0, (int(w[0]) * 32 + 5) / 4);
  y[5] = abs(x[1]) + fabs(h[1]) + metal::abs(h[2]) + abs(params.n) + abs(b[1]) + abs(-3);
  y[6] = clamp(x[1], -1.0f, 1.0f) + clamp(params.n, 0, 15) + clamp(x[1], 0, 1) + clamp(h[1], -1.0h, 1.0h);
  y[7] = pow(x[1], 2) + pow(x[1], 2.0f) + pow(2.0f, x[1]) + pow(h[1], h[2]) + select(x[1], 0.0f, x[1] < 0);
  h[3] = exp(h[1]) + h[1] * tanh(h[2]); b[4] = exp(b[1] - b[2]) * b[3]; b[5] = fma(b[1], b[2], b[3]);
  h[4] = x[1]; b[6] = x[1]; h[5] += x[1]; h[6] *= 2; b[7] += x[1]; h[7] = h[1] / 3; y[8] = 0.5 * x[1]; y[9] = 1 / h[1];
  y[10] = (float)(char)(w[1] & 0xFF); bool flag = x[1]; y[11] = flag ? 1.0f : 0.0; h[8] = 1.5h; l[2] = 1l << tid;
  v[1] = max(v[0], 0) - min(v[0], 0.0f) + fma(v[0], float4(x[1]), v[2]) * 0.5 + mix(v[0], v[1], 0.5) + 1;
  v[2] = tid < 9 ? v[1] : v[3]; v[3] = v[1] / (1 + exp(-v[1])); v[4] = select(v[0], v[1], v[0] > v[1]);
)");
}

TEST_CASE("metal_stdlib: pointers, casts, vectors") {
  check_accepted(R"(
  const device uint4* words = (const device uint4*)(w + tid * 16); uint4 q = words[0];
  y[0] = (q.x & 0xF) + (q[1] >> 4); half2 pair = as_type<half2>(q.x); y[1] = pair.x + pair.y;
  const auto p = x + tid; y[2] = p[params.n]; v[0] = params.v * eps; float3 position = params.p; y[3] = position.x + params.m[1];
  vec<half, 4> packed = *(device vec<half, 4>*)(h + 4 * tid); y[4] = dot(float4(packed), v[1]);
  *(device half4*)(h + 8) = half4(v[2]); *(device bfloat4*)(b + 8) = bfloat4(v[2]);
  int3 c = int3(gid) - 1; y[5] = any(c < 0) || all(c == int3(1, 2, 3)); uint3 rest = gid % uint3(3, 4, 5); y[6] = rest.x;
  ushort4 s = ushort4(q.x & 15, q.y, q.z, q.w); v[3] = float4(s) - 8.0f; v[4] = (float4)s; v[5] = static_cast<float4>(s);
  float4 u = 0.0f; u[tid & 3] = 2; u.w += dot(u.xyz, u.xyz); v[6] = u; v[7].xyz = cross(u.xyz, v[1].xyz); v[8].xy += u.zw;
  thread float registers[4]; for (int i = 0; i < 4; ++i) registers[i] = v[i].x; y[7] = registers[tid & 3];
  y += tid; y[8] = elem_to_loc(tid, shape, strides, 3) + elem_to_loc(gid, shape, strides, 3) + ceildiv(params.n, 4);
  mlx::os_log logger("kernels", "here"); logger.log_debug("thread %d", tid);
  auto twice = [&](float a) { return 2 * a + y[12]; }; y[13] = twice(x[0]);
  z[0] = z[1] * z[2] + 1.0f; z[3] = log1p(z[4]); y[9] = log1p(x[0]) + z[0].real; y[10] = Limits<float>::finite_min;
  atomic_fetch_add_explicit(&out[tid], 1, memory_order_relaxed); threadgroup atomic_uint counter; threadgroup half tile[64];
  if (tid == 0) atomic_store_explicit(&counter, 0, memory_order_relaxed); tile[lane] = h[tid];
  threadgroup_barrier(mem_flags::mem_threadgroup); y[11] = tile[lane ^ 1];
)",
                 "");
}

TEST_CASE("metal_stdlib: names that pasted libraries and kernels define are not ours") {
  check_accepted(
      R"(
  y[0] = sigmoid(x[0]) + erf(x[1]) + silu(h[1]) + expm1(x[2]) + Max<float>().simd_reduce(x[7]) + SIMD_SIZE;
  h[0] = sigmoid(h[0]); b[0] = sigmoid(b[0]); y[1] = clamp_to(x[0]); float grid = 1, input = 2, output = 3, time = 4, index = 5;
  y[2] = grid + input + output + time + index + square(x[1]) + lane_sum(x[2]);
  using E = typename metal::pointer_element<device float*>::type; E e = 1; y[3] = e + metal::is_empty<float>::value;
  metal::vec<float, 2> A(1, 2), D; Frag<float>::mma(D, A, A, A); y[4] = D.x + Frag<float>::get_coord(lane).x;
)",
      R"(
#include <metal_stdlib>
#include <metal_simdgroup>
#include <metal_simdgroup_matrix>
#include <metal_atomic>
#include <metal_math>
#pragma METAL internals : enable
using namespace metal;
template <typename T> METAL_FUNC T sigmoid(T x) { return T(1) / (T(1) + exp(-x)); }
template <typename T> METAL_FUNC T erf(T a) { return a; }
float expm1(float x) { return exp(x) - 1; }
inline float silu(float x) { return x / (1.0f + metal::exp(-x)); }
inline float square(float x) { return x * x; }
inline float lane_sum(float x) { return simd_sum(x); }
template <typename T> T clamp_to(T x) { return clamp(x, T(0), T(1)); }
static constant constexpr const int SIMD_SIZE = 32;
template <typename U> struct Max {
  U operator()(U a, U b) { return a > b ? a : b; }
  U simd_reduce(U v) { return simd_max(v); }
};
namespace metal {
template <typename T> struct is_empty : metal::bool_constant<__is_empty(T)> {};
template <typename... Ts> struct make_void { typedef void type; };
template <typename... Ts> using void_t = typename make_void<Ts...>::type;
template <typename T> struct pointer_element {};
template <typename T> struct pointer_element<thread T*> { using type = remove_cv_t<T>; };
template <typename T> struct pointer_element<device T*> { using type = remove_cv_t<T>; };
template <typename T> struct pointer_element<constant T*> { using type = remove_cv_t<T>; };
template <typename T> struct pointer_element<threadgroup T*> { using type = remove_cv_t<T>; };
}
inline uint64_t simd_shuffle_down(uint64_t data, uint16_t delta) {
  return as_type<uint64_t>(metal::simd_shuffle_down(as_type<uint2>(data), delta));
}
template <typename T> struct Frag {
  using frag_type = metal::vec<T, 2>;
  METAL_FUNC static void mma(thread frag_type& D, thread frag_type& A, thread frag_type& B, thread frag_type& C) {
    simdgroup_matrix<T, 8, 8> D_mat, A_mat, B_mat, C_mat;
    reinterpret_cast<thread frag_type&>(A_mat.thread_elements()) = A;
    reinterpret_cast<thread frag_type&>(B_mat.thread_elements()) = B;
    reinterpret_cast<thread frag_type&>(C_mat.thread_elements()) = C;
    simdgroup_multiply_accumulate(D_mat, A_mat, B_mat, C_mat);
    D = reinterpret_cast<thread frag_type&>(D_mat.thread_elements());
  }
  METAL_FUNC static constexpr short2 get_coord(ushort lane) {
    const short qid = lane / 4;
    const short fm = (qid & 4) + ((lane / 2) % 4);
    const short fn = (qid & 2) * 2 + (lane % 2) * 2;
    return short2{fn, fm};
  }
};
)");
}

TEST_CASE("metal_stdlib: the fast math mode chooses the fast functions") {
  const std::string text = in_kernel("y[tid] = exp(x[tid]);");
  auto instructions = [&](MathMode math) {
    llvm::LLVMContext context;
    KernelInterface interface;
    auto module = to_scalar_ir(stdlib_source(text, math), context, interface);
    return module->getInstructionCount();
  };
  CHECK(instructions(MathMode::fast) < instructions(MathMode::safe));
}

TEST_CASE("metal_stdlib: what the language lacks is refused with a reason") {
  auto message = [](const std::string& body, const std::string& header = "") {
    return problem_of(stdlib_source(in_kernel(body, header)));
  };
  auto contains = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(contains(message("simdgroup_matrix<float, 4, 4> m;"), "the only size is 8 x 8"));
  CHECK(contains(message("device atomic<half>* a = (device atomic<half>*)h; "
                         "atomic_fetch_add_explicit(a, 1.0h, memory_order_relaxed);"),
                 "atomic<T>: T must be"));
  CHECK(contains(message("y[0] = as_type<float>(h[0]);"), "must have the same size"));
  CHECK(contains(message("", "#include <metal_texture>\n"), "metal_texture"));
  CHECK(contains(message("", "#include <metal_tensor>\n"), "MetalPerformancePrimitives"));
  CHECK(contains(message("float4 f = float4(half4(1));  half4 g = f;"), "no viable conversion"));
}

}  // namespace
