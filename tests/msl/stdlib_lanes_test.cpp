// simd_*, quad_*, simdgroup_matrix and atomics of our metal_stdlib over one simdgroup, on each
// lowering.
#include <doctest/doctest.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include <bit>
#include <cstdint>
#include <functional>

#include "msl/stdlib_testing.h"

using namespace holdfast;
using namespace holdfast::msl;
using namespace holdfast::msl::testing;

namespace {

constexpr uint32_t lanes = 32;

// out[i] = `expression` of lane i, whose value `x` is i * 5 % 7 + 1, in the type T. `expected`
// gives it for lane i.
struct Row {
  const char* type;
  const char* expression;
  std::function<double(uint32_t)> expected;
};

double value_of(uint32_t lane) { return lane * 5 % 7 + 1; }

double fold(uint32_t begin, uint32_t end, double start,
            const std::function<double(double, double)>& operation) {
  double result = start;
  for (uint32_t i = begin; i < end; ++i) result = operation(result, value_of(i));
  return result;
}
double sum(uint32_t begin, uint32_t end) { return fold(begin, end, 0, std::plus<double>()); }
double product(uint32_t begin, uint32_t end) {
  return fold(begin, end, 1, std::multiplies<double>());
}
double largest(uint32_t begin, uint32_t end) {
  return fold(begin, end, 0, [](double a, double b) { return std::max(a, b); });
}

// Runs every row with the same kernel text around it: one kernel, out[row * 32 + lane].
void check_rows(const std::vector<Row>& rows, uint32_t threads = lanes) {
  std::string body;
  for (size_t r = 0; r < rows.size(); ++r) {
    body += std::string("{ using T = ") + rows[r].type + "; T x = T(value); out[" +
            std::to_string(r * lanes) + " + lane] = float(" + rows[r].expression + "); }\n";
  }
  const KernelSource source = stdlib_source(
      "kernel void check(device float* out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) "
      "{\n"
      "float value = float(lane * 5 % 7 + 1);\n" +
      body + "}\n");
  REQUIRE(problem_of(source) == "");
  for (auto lowering : lowerings()) {
    std::vector<float> out(rows.size() * lanes);
    run_stdlib(source, lowering, {out.data()}, threads);
    for (size_t r = 0; r < rows.size(); ++r)
      for (uint32_t i = 0; i < threads; ++i) {
        INFO(std::string(rows[r].type), ": ", std::string(rows[r].expression), ", lane ", i);
        CHECK(out[r * lanes + i] == static_cast<float>(rows[r].expected(i)));
      }
  }
}

uint32_t quad(uint32_t i) { return i & ~3u; }

TEST_CASE("metal_stdlib: reductions and scans over a simdgroup, for every type") {
  std::vector<Row> rows;
  for (const char* type : {"float", "half", "bfloat", "int", "uint", "short", "ushort", "char",
                           "uchar", "long", "ulong"}) {
    rows.push_back({type, "simd_sum(x)", [](uint32_t) { return sum(0, 32); }});
    rows.push_back({type, "simd_max(x)", [](uint32_t) { return 7; }});
    rows.push_back({type, "simd_min(x)", [](uint32_t) { return 1; }});
    rows.push_back({type, "simd_prefix_exclusive_sum(x)", [](uint32_t i) { return sum(0, i); }});
    rows.push_back(
        {type, "simd_prefix_inclusive_sum(x)", [](uint32_t i) { return sum(0, i + 1); }});
    rows.push_back({type, "quad_sum(x)", [](uint32_t i) { return sum(quad(i), quad(i) + 4); }});
    rows.push_back({type, "quad_max(x)", [](uint32_t i) { return largest(quad(i), quad(i) + 4); }});
    rows.push_back(
        {type, "simd_product(lane < 2 ? x : T(1))", [](uint32_t) { return product(0, 2); }});
    rows.push_back(
        {type, "quad_prefix_inclusive_sum(x)", [](uint32_t i) { return sum(quad(i), i + 1); }});
    rows.push_back(
        {type, "quad_prefix_exclusive_sum(x)", [](uint32_t i) { return sum(quad(i), i); }});
  }
  rows.push_back({"float", "simd_prefix_inclusive_product(lane < 5 ? x : 1)",
                  [](uint32_t i) { return product(0, std::min(i + 1, 5u)); }});
  rows.push_back({"float", "simd_prefix_exclusive_product(lane < 5 ? x : 1)",
                  [](uint32_t i) { return product(0, std::min(i, 5u)); }});
  rows.push_back({"int", "simd_min(x - 4)", [](uint32_t) { return -3; }});
  rows.push_back({"long", "simd_min(x - 4)", [](uint32_t) { return -3; }});
  rows.push_back({"char", "simd_min(char(x - 4))", [](uint32_t) { return -3; }});
  rows.push_back({"uint", "simd_or(x)", [](uint32_t) { return 7; }});
  rows.push_back({"ushort", "simd_and(x)", [](uint32_t) { return 0; }});
  rows.push_back({"ulong", "simd_xor(x)", [](uint32_t) {
                    unsigned x = 0;
                    for (uint32_t i = 0; i < 32; ++i) x ^= static_cast<unsigned>(value_of(i));
                    return x;
                  }});
  rows.push_back(
      {"float", "simd_sum(float4(x, 2 * x, 0, 1)).y", [](uint32_t) { return 2 * sum(0, 32); }});
  rows.push_back({"half", "simd_max(half2(x, -x)).y", [](uint32_t) { return -1; }});
  check_rows(rows);
}

TEST_CASE("metal_stdlib: shuffles, for every type") {
  std::vector<Row> rows;
  for (const char* type : {"float", "half", "bfloat", "int", "ushort", "char", "long", "ulong"}) {
    rows.push_back(
        {type, "simd_shuffle(x, ushort(31 - lane))", [](uint32_t i) { return value_of(31 - i); }});
    rows.push_back({type, "simd_shuffle_xor(x, 5)", [](uint32_t i) { return value_of(i ^ 5); }});
    rows.push_back(
        {type, "simd_shuffle_up(x, 3)", [](uint32_t i) { return value_of(i < 3 ? i : i - 3); }});
    rows.push_back(
        {type, "simd_shuffle_down(x, 3)", [](uint32_t i) { return value_of(i > 28 ? i : i + 3); }});
    rows.push_back({type, "simd_broadcast(x, 7)", [](uint32_t) { return value_of(7); }});
    rows.push_back({type, "simd_broadcast_first(x)", [](uint32_t) { return value_of(0); }});
    rows.push_back(
        {type, "simd_shuffle_rotate_up(x, 3)", [](uint32_t i) { return value_of((i + 29) % 32); }});
    rows.push_back({type, "simd_shuffle_rotate_down(x, 3)",
                    [](uint32_t i) { return value_of((i + 3) % 32); }});
    rows.push_back({type, "simd_shuffle_and_fill_up(x, T(x + T(50)), 3)",
                    [](uint32_t i) { return i < 3 ? value_of(i + 29) + 50 : value_of(i - 3); }});
    rows.push_back({type, "simd_shuffle_and_fill_down(x, T(x + T(50)), 2, 8)",
                    [](uint32_t i) { return i % 8 > 5 ? value_of(i - 6) + 50 : value_of(i + 2); }});
    rows.push_back(
        {type, "quad_broadcast(x, 2)", [](uint32_t i) { return value_of(quad(i) + 2); }});
    rows.push_back({type, "quad_shuffle_xor(x, 3)", [](uint32_t i) { return value_of(i ^ 3); }});
    rows.push_back({type, "quad_shuffle_down(x, 1)",
                    [](uint32_t i) { return value_of(i % 4 == 3 ? i : i + 1); }});
    rows.push_back({type, "quad_shuffle_rotate_up(x, 1)",
                    [](uint32_t i) { return value_of(quad(i) + (i + 3) % 4); }});
  }
  rows.push_back(
      {"bool", "simd_shuffle_xor(lane % 3 == 0, 1)", [](uint32_t i) { return (i ^ 1) % 3 == 0; }});
  rows.push_back({"float", "simd_shuffle_down(float3(x, -x, 1), 1).y",
                  [](uint32_t i) { return -value_of(i == 31 ? i : i + 1); }});
  rows.push_back({"float", "simd_shuffle_xor(complex64_t(x, -x), 1).imag",
                  [](uint32_t i) { return -value_of(i ^ 1); }});
  check_rows(rows);
}

TEST_CASE("metal_stdlib: votes, and what missing lanes do") {
  check_rows(
      {
          {"uint", "(ulong)simd_ballot(lane < 3)", [](uint32_t) { return 7; }},
          {"uint", "simd_any(lane == 9)", [](uint32_t) { return 0; }},
          {"uint", "simd_all(lane < 7)", [](uint32_t) { return 1; }},
          {"uint", "(ulong)simd_active_threads_mask()", [](uint32_t) { return 127; }},
          {"uint", "simd_is_first()", [](uint32_t i) { return i == 0; }},
          {"uint", "(ulong)quad_ballot(lane % 2 == 0)", [](uint32_t) { return 5; }},
          {"uint", "quad_all(lane != 5)", [](uint32_t i) { return i < 4; }},
          {"uint", "quad_any(lane == 5)", [](uint32_t i) { return i >= 4; }},
          {"uint", "quad_is_first()", [](uint32_t i) { return i % 4 == 0; }},
          {"float", "simd_sum(x)", [](uint32_t) { return sum(0, 7); }},
          {"float", "quad_sum(x)",
           [](uint32_t i) { return sum(quad(i), std::min(quad(i) + 4, 7u)); }},
          {"int", "quad_product(x)",
           [](uint32_t i) { return product(quad(i), std::min(quad(i) + 4, 7u)); }},
          {"int", "quad_max(x)",
           [](uint32_t i) { return largest(quad(i), std::min(quad(i) + 4, 7u)); }},
      },
      7);
}

TEST_CASE("metal_stdlib: simdgroup_matrix loads, multiplies and stores 8 x 8 matrices") {
  const KernelSource source = stdlib_source(R"(
template <typename T>
void multiply(const device T* a, const device T* b, device T* d, uint lane, threadgroup T* shared) {
  simdgroup_matrix<T, 8, 8> A, B, C = make_filled_simdgroup_matrix<T, 8, 8>(T(1)), D;
  simdgroup_load(A, a, 16, ulong2(4, 2));
  simdgroup_load(B, b, 8, ulong2(0, 0), true);
  simdgroup_store(B, shared);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_load(B, shared);
  simdgroup_multiply_accumulate(D, A, B, C);
  D = (D + C - C) * T(2);
  D.thread_elements()[0] -= T(1);
  simdgroup_store(D, d, 8, 0, true);
}
kernel void check(const device float* a [[buffer(0)]], const device float* b [[buffer(1)]], device float* d [[buffer(2)]],
                  const device half* ha [[buffer(3)]], const device half* hb [[buffer(4)]], device half* hd [[buffer(5)]],
                  uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float shared[64];
  threadgroup half shared_half[64];
  multiply(a, b, d, lane, shared);
  multiply(ha, hb, hd, lane, shared_half);
  simdgroup_float8x8 E = simdgroup_float8x8(3.0), F, G;
  simdgroup_load(F, a, 16);
  simdgroup_multiply(G, E, F);
  simdgroup_half8x8 H;
  simdgroup_load(H, hb);
  simdgroup_multiply_accumulate(G, E, H, G);
  simdgroup_store(G, d + 64);
})");
  REQUIRE(problem_of(source) == "");
  std::vector<float> a(256), b(64);
  std::vector<_Float16> half_a(256), half_b(64);
  for (size_t i = 0; i < 256; ++i)
    half_a[i] = static_cast<_Float16>(a[i] = static_cast<float>(i % 5) - 2);
  for (size_t i = 0; i < 64; ++i)
    half_b[i] = static_cast<_Float16>(b[i] = static_cast<float>(i % 7) - 3);
  for (auto lowering : lowerings()) {
    std::vector<float> d(128);
    std::vector<_Float16> half_d(64);
    run_stdlib(source, lowering,
               {a.data(), b.data(), d.data(), half_a.data(), half_b.data(), half_d.data()}, lanes);
    for (size_t row = 0; row < 8; ++row)
      for (size_t column = 0; column < 8; ++column) {
        float expected = 1;
        for (size_t k = 0; k < 8; ++k) expected += a[(row + 2) * 16 + k + 4] * b[column * 8 + k];
        expected = expected * 2 - (column % 2 == 0 ? 1.0f : 0.0f);
        CHECK(d[column * 8 + row] == expected);
        CHECK(static_cast<float>(half_d[column * 8 + row]) == expected);
        CHECK(d[64 + row * 8 + column] == 3 * a[row * 16 + column] + 3 * b[row * 8 + column]);
      }
  }
}

TEST_CASE("metal_stdlib: a float4 in memory that is aligned for a float only") {
  const KernelSource source = stdlib_source(R"(
kernel void check(const device float* in [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  float4 v = ((const device float4*)(in + 1))[i];
  ((device float4*)(out + 1))[i] = v.wzyx + ((const device float4*)(in + 1))[0];
})");
  REQUIRE(problem_of(source) == "");
  std::vector<float> in(1 + 4 * lanes);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  llvm::LLVMContext context;
  KernelInterface interface;
  auto module = to_scalar_ir(source, context, interface);
  for (llvm::Function& function : *module)
    for (llvm::Instruction& instruction : llvm::instructions(function))
      if (llvm::isa<llvm::LoadInst, llvm::StoreInst>(instruction))
        CHECK(llvm::getLoadStoreAlignment(&instruction).value() <= 4);
  // The baseline has instructions that insist on alignment.
  for (auto set : {jit::InstructionSet::baseline, jit::host_instruction_set()})
    for (auto lowering : lowerings()) {
      std::vector<float> out(1 + 4 * lanes);
      run_stdlib(source, lowering, {in.data(), out.data()}, lanes, set);
      for (size_t i = 0; i < 4 * lanes; ++i) CHECK(out[1 + i] == in[1 + (i ^ 3)] + in[1 + i % 4]);
    }
}

TEST_CASE("metal_stdlib: atomics of every type, on device and threadgroup memory") {
  const KernelSource source = stdlib_source(R"(
kernel void check(device atomic_uint* u [[buffer(0)]], device atomic<float>* f [[buffer(1)]], device atomic_int* i [[buffer(2)]],
                  device uint* out [[buffer(3)]], device atomic_ulong* l [[buffer(4)]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup uint words[2];
  threadgroup atomic_int counter;
  if (lane < 2) words[lane] = 0;
  if (lane == 0) atomic_store_explicit(&counter, 5, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_or_explicit((threadgroup atomic_uint*)&words[lane & 1], 1u << lane, memory_order_relaxed);
  atomic_fetch_add_explicit(&counter, 2, memory_order_relaxed);
  atomic_fetch_add_explicit(u + 0, lane, memory_order_relaxed);
  atomic_fetch_sub_explicit(&u[1], 1u, memory_order_relaxed);
  atomic_fetch_max_explicit(&u[2], lane * 3, memory_order_relaxed);
  atomic_fetch_min_explicit(&u[3], lane + 4, memory_order_relaxed);
  atomic_fetch_xor_explicit(&u[4], 1u << lane, memory_order_relaxed);
  atomic_fetch_and_explicit(&u[5], ~(1u << lane), memory_order_relaxed);
  atomic_fetch_add_explicit(&f[0], 0.5, memory_order_relaxed);
  atomic_fetch_sub_explicit(&f[1], 0.25, memory_order_relaxed);
  atomic_fetch_min_explicit(&i[0], -(int)lane, memory_order_relaxed);
  atomic_fetch_max_explicit(&i[1], -(int)lane - 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&l[0], 1ul << 40, memory_order_relaxed);
  atomic_max_explicit(&l[1], ulong(lane), memory_order_relaxed);
  atomic_store_explicit(reinterpret_cast<device atomic_uint*>(out + 4), 9u, memory_order_relaxed);
  float old = atomic_load_explicit(&f[2], memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&f[2], &old, old + 1.5, memory_order_relaxed, memory_order_relaxed)) {}
  if (lane == 0) out[5] = as_type<uint>(atomic_exchange_explicit(&f[3], 2.0, memory_order_relaxed));
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  if (lane < 2) out[lane] = words[lane];
  if (lane == 0) out[2] = uint(atomic_load_explicit(&counter, memory_order_relaxed));
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
})");
  REQUIRE(problem_of(source) == "");
  for (auto lowering : lowerings()) {
    std::vector<uint32_t> u = {1, 100, 0, 99, 0, ~0u}, out(6);
    std::vector<float> f = {0, 0, 0, 4};
    std::vector<int32_t> i = {0, -100};
    std::vector<uint64_t> l = {0, 3};
    run_stdlib(source, lowering, {u.data(), f.data(), i.data(), out.data(), l.data()}, lanes);
    CHECK(u == std::vector<uint32_t>{497, 68, 93, 4, ~0u, 0});
    CHECK(f == std::vector<float>{16, -8, 48, 2});
    CHECK(i == std::vector<int32_t>{-31, -1});
    CHECK(l == std::vector<uint64_t>{uint64_t{32} << 40, 31});
    CHECK(out ==
          std::vector<uint32_t>{0x55555555u, 0xAAAAAAAAu, 69, 0, 9, std::bit_cast<uint32_t>(4.0f)});
  }
}

}  // namespace
