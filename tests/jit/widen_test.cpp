// The widening compiler against the reference lowering, on kernels as people write them.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "jit/widen_testing.h"

namespace {

using namespace holdfast::jit;
using testing::Buffer;
using testing::check_widened;
using testing::Dispatch;

// Whole groups, partial groups, partial simdgroups, rows that are no multiple of a simdgroup.
const std::vector<Dispatch> shapes = {
    {{1024, 1, 1}, {256, 1, 1}}, {{1000, 1, 1}, {256, 1, 1}}, {{1, 1, 1}, {1, 1, 1}},
    {{77, 1, 1}, {77, 1, 1}},    {{64, 8, 1}, {32, 4, 1}},    {{24, 12, 2}, {8, 8, 1}},
    {{50, 3, 2}, {40, 2, 2}},
};

// One row: where two threads of a grid would write to one place.
const std::vector<Dispatch> rows(shapes.begin(), shapes.begin() + 4);

}  // namespace

TEST_CASE("widen: saxpy") {
  check_widened(R"(
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
              uint gid [[thread_position_in_grid]]) {
  y[gid] = 2.5f * x[gid] + y[gid];
})",
                {Buffer::floats(1024, 1), Buffer::floats(1024, 2)}, rows);
}

TEST_CASE("widen: positions of all kinds") {
  check_widened(R"(
kernel void k(device uint* out [[buffer(0)]], uint3 p [[thread_position_in_grid]],
              uint3 size [[threads_per_grid]], uint3 t [[thread_position_in_threadgroup]],
              uint3 g [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
              uint simd [[simdgroup_index_in_threadgroup]],
              uint index [[thread_index_in_threadgroup]], uint3 full [[threads_per_threadgroup]]) {
  device uint* to = out + 12 * (p.x + size.x * (p.y + size.y * p.z));
  to[0] = p.x; to[1] = p.y; to[2] = p.z; to[3] = t.x; to[4] = t.y; to[5] = t.z;
  to[6] = g.x; to[7] = lane; to[8] = simd; to[9] = index; to[10] = full.x;
  to[11] = index / 32 * 1000 + index % 32 + t.x / 32 + p.x / 32 * 3 + p.x % 32;
})",
                {Buffer::zeros(12 * 4 * 1024)}, shapes);
}

TEST_CASE("widen: branches, loops and early returns") {
  check_widened(R"(
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
              device const uint* n [[buffer(2)]], uint gid [[thread_position_in_grid]]) {
  if (gid >= 900) return;
  float a = x[gid];
  float sum = 0;
  for (uint i = 0; i < n[gid]; ++i) {
    if (a < 0) { a = -a * 0.5f; if (i > 20) break; else continue; }
    if (i % 3 == 0) sum += a; else sum -= a * 0.25f;
    a = a * 1.5f - 1.0f;
    if (sum > 100) { y[gid] = sum; return; }
  }
  y[gid] = sum;
  if (gid & 1) y[gid] += 1; else if (gid % 5 == 2) y[gid] *= 2;
})",
                {Buffer::floats(1024, 1), Buffer::zeros(4096), Buffer::integers(1024, 3, 40)},
                shapes);
}

TEST_CASE("widen: strided loop over a row, with a remainder") {
  check_widened(R"(
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
              uint tid [[thread_position_in_threadgroup]], uint3 size [[threads_per_threadgroup]],
              uint3 g [[threadgroup_position_in_grid]], uint gid [[thread_position_in_grid]]) {
  float sum = 0;
  for (uint i = tid; i < 333; i += size.x) sum += x[g.x * 333 + i];
  y[gid] = sum;
})",
                {Buffer::floats(1024 * 333, 1), Buffer::zeros(4096)}, shapes);
}

TEST_CASE("widen: arrays of pointers to threadgroup memory") {
  check_widened(R"(
    kernel void k(device float* out [[buffer(0)]], device const float* in [[buffer(1)]],
                  uint gid [[thread_position_in_grid]], uint tid [[thread_index_in_threadgroup]],
                  uint n [[threads_per_threadgroup]]) {
      threadgroup float a[1024], b[1024];
      threadgroup float* tiles[2] = {a, b};
      float sum = 0;
      for (uint k = 0; k < 5; ++k) {
        tiles[k & 1][tid] = in[gid] * k;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        sum += tiles[k & 1][n - 1 - tid];
      }
      out[gid] = sum;
    })",
                {Buffer::zeros(256 * 4), Buffer::floats(256, 3)}, {{256, 1, 1}, {64, 1, 1}});
}

TEST_CASE("widen: a place in threadgroup memory or in a buffer, by a choice") {
  check_widened(R"(
kernel void k(device float* out [[buffer(0)]], device float* x [[buffer(1)]],
              uint gid [[thread_position_in_grid]]) {
  threadgroup float shared[2];
  shared[0] = 5; shared[1] = 6;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const thread float* p = x[gid] > 0 ? (const thread float*)(shared + 1) : (const thread float*)(x + 1);
  const thread float* q = x[3] > 0 ? (const thread float*)(shared + 1) : (const thread float*)(x + 1);
  out[gid] = *p + 2 * *q;
})",
                {Buffer::zeros(256 * 4), Buffer::floats(256, 3)}, {{256, 1, 1}, {64, 1, 1}});
}

TEST_CASE("widen: private arrays") {
  check_widened(R"(
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
              device const uint* n [[buffer(2)]], uint gid [[thread_position_in_grid]]) {
  float a[24];
  for (uint i = 0; i < 24; ++i) a[i] = x[gid] * float(i);
  a[n[gid] % 24] = 7;
  for (uint i = 0; i < n[gid]; ++i) a[(i * 7) % 24] += a[(i * 5 + gid) % 24];
  struct { float f; uchar b[8]; } s;
  s.f = a[n[gid] % 24];
  for (uint i = 0; i < 8; ++i) s.b[i] = uchar(i * gid);
  float r = s.f + s.b[gid % 8];
  thread uchar* bytes = (thread uchar*)&s.f;
  bytes[gid % 4] ^= 1;
  y[gid] = r + s.f + a[3];
})",
                {Buffer::floats(1024, 1), Buffer::zeros(4096), Buffer::integers(1024, 3, 40)},
                shapes);
}

TEST_CASE("widen: reductions, scans, shuffles, ballots") {
  check_widened(R"(
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
              device const uint* n [[buffer(2)]], device uint* z [[buffer(3)]],
              uint gid [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  float a = x[gid];
  uint u = n[gid];
  float r = simd_sum(a) + simd_max(a) * 2 + simd_min(a) + simd_product(a);
  r += simd_prefix_exclusive_sum(a) + simd_prefix_inclusive_sum(a) * 3;
  uint v = simd_sum(u) + simd_prefix_exclusive_sum(u) * 3 + simd_prefix_inclusive_sum(u);
  v ^= simd_shuffle(u, 3) + simd_shuffle(u, u & 31) * 5 + simd_shuffle_xor(u, 7);
  v += simd_shuffle_up(u, 3) ^ simd_shuffle_down(u, 2) ^ simd_broadcast(u, 1);
  v += simd_shuffle_down(u, u & 7) * 3 + simd_shuffle_xor(u, u & 15) * 11;
  if (u % 3 == 0) {
    r += simd_sum(a);
    v += simd_shuffle(u, (lane + 1) & 31) + simd_prefix_inclusive_sum(u) + simd_max(u);
    v ^= simd_shuffle_xor(u, 5);
    r += simd_prefix_inclusive_sum(a) - simd_prefix_inclusive_product(a);
    r += simd_prefix_exclusive_product(a);
    v ^= as_type<uint>(simd_prefix_exclusive_sum(u % 2 == 0 ? -0.0f : a));
  }
  if (simd_any(u % 7 == 1)) v += 1;
  if (simd_all(u > 0)) v += 2;
  y[gid] = r;
  z[gid] = v;
})",
                {Buffer::floats(1024, 1), Buffer::zeros(4096), Buffer::integers(1024, 3, 100),
                 Buffer::zeros(4096)},
                shapes);
}

TEST_CASE("widen: barriers and threadgroup memory") {
  check_widened(R"(
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
              uint gid [[thread_position_in_grid]], uint index [[thread_index_in_threadgroup]],
              uint lane [[thread_index_in_simdgroup]],
              uint simd [[simdgroup_index_in_threadgroup]],
              uint simds [[simdgroups_per_threadgroup]], uint3 size [[threads_per_threadgroup]]) {
  threadgroup float part[32];
  threadgroup float all[1024];
  float a = x[gid];
  all[index] = a;
  float s = simd_sum(a * a);
  if (lane == 0) part[simd] = s;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simd == 0) {
    float v = lane < simds ? part[lane] : 0;
    v = simd_sum(v);
    if (lane == 0) part[0] = v;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float total = part[0];
  uint threads = size.x * size.y * size.z;
  float b = 0;
  for (uint i = 0; i < 4; ++i) {
    b += all[(index + i * 37) % threads];
    threadgroup_barrier(mem_flags::mem_none);
    all[index] = b;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  y[gid] = a * rsqrt(total) + b;
})",
                {Buffer::floats(1024, 1), Buffer::zeros(4096)}, shapes);
}

TEST_CASE("widen: whole simdgroups return before a barrier") {
  check_widened(R"(
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
              uint gid [[thread_position_in_grid]],
              uint index [[thread_index_in_threadgroup]]) {
  threadgroup float all[1024];
  all[index] = x[gid];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (index >= 32) return;
  float sum = 0;
  for (uint i = 0; i < index % 3 + 1; ++i) sum += all[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  all[index] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[gid] = all[index ^ 1];
})",
                {Buffer::floats(1024, 1), Buffer::zeros(4096)},
                {{{1024, 1, 1}, {256, 1, 1}}, {{32, 1, 1}, {32, 1, 1}}});
}

TEST_CASE("widen: atomics") {
  check_widened(
      R"(
kernel void k(device const uint* n [[buffer(0)]], device atomic_uint* counts [[buffer(1)]],
              device atomic_float* sums [[buffer(2)]], device uint* old [[buffer(3)]],
              uint gid [[thread_position_in_grid]], uint index [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint local[16];
  if (index < 16) atomic_store_explicit(&local[index], 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint u = n[gid];
  atomic_fetch_add_explicit(&local[u % 16], u, memory_order_relaxed);
  atomic_fetch_add_explicit(&counts[16], 1u, memory_order_relaxed);
  atomic_fetch_max_explicit(&counts[17], u, memory_order_relaxed);
  if (u % 3 == 0) atomic_fetch_add_explicit(&sums[u % 4], 0.25f, memory_order_relaxed);
  old[gid] = atomic_fetch_add_explicit(&counts[20 + u % 4], u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (index < 16)
    atomic_fetch_add_explicit(&counts[index], atomic_load_explicit(&local[index], memory_order_relaxed),
                              memory_order_relaxed);
  uint expected = 5;
  atomic_compare_exchange_weak_explicit(&counts[30 + u % 2], &expected, u, memory_order_relaxed,
                                        memory_order_relaxed);
  old[gid] += expected;
})",
      {Buffer::integers(1024, 3, 100), Buffer::zeros(256), Buffer::zeros(64), Buffer::zeros(4096)},
      shapes);
}

TEST_CASE("widen: atomics of threadgroup memory go lane by lane") {
  check_widened(R"(
kernel void k(device const uint* n [[buffer(0)]], device const float* x [[buffer(1)]],
              device float* y [[buffer(2)]], device uint* z [[buffer(3)]],
              uint gid [[thread_position_in_grid]], uint index [[thread_index_in_threadgroup]],
              uint group [[threadgroup_position_in_grid]]) {
  threadgroup atomic_uint flips[8], last[8], top[8], other_top[8];
  threadgroup atomic_float sums[8];
  if (index < 8) {
    atomic_store_explicit(&flips[index], 9u, memory_order_relaxed);
    atomic_store_explicit(&top[index], 0u, memory_order_relaxed);
    atomic_store_explicit(&other_top[index], 0u, memory_order_relaxed);
    atomic_store_explicit(&last[index], 7u, memory_order_relaxed);
    atomic_store_explicit(&sums[index], 0.0f, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint u = n[gid];
  atomic_fetch_add_explicit(&sums[u % 8], x[gid] * 1.1f, memory_order_relaxed);
  atomic_exchange_explicit(&last[u / 8 % 8], u, memory_order_relaxed);
  atomic_fetch_xor_explicit(&flips[7 - u % 4], 5u, memory_order_relaxed);
  threadgroup atomic_uint* either = x[gid] > 0 ? &top[u % 8] : &other_top[u % 5];
  atomic_fetch_max_explicit(either, u / 3, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (index < 8) {
    uint at = group * 8 + index;
    y[at] = atomic_load_explicit(&sums[index], memory_order_relaxed);
    z[at * 4] = atomic_load_explicit(&flips[index], memory_order_relaxed);
    z[at * 4 + 1] = atomic_load_explicit(&last[index], memory_order_relaxed);
    z[at * 4 + 2] = atomic_load_explicit(&top[index], memory_order_relaxed);
    z[at * 4 + 3] = atomic_load_explicit(&other_top[index], memory_order_relaxed);
  }
})",
                {Buffer::integers(1024, 5), Buffer::floats(1024, 6), Buffer::zeros(4096),
                 Buffer::zeros(8192)},
                rows);
}

TEST_CASE("widen: integers of all widths, division and shifts") {
  check_widened(R"(
kernel void k(device const uint* n [[buffer(0)]], device const int* m [[buffer(1)]],
              device uint* out [[buffer(2)]], device long* wide [[buffer(3)]],
              device const uchar* bytes [[buffer(4)]], uint gid [[thread_position_in_grid]]) {
  uint u = n[gid], v = n[(gid * 7 + 1) % 1024] % 5;
  int a = m[gid], b = m[(gid + 1) % 1024] % 4;
  uint r = u / v + u % v * 3 + (u << (v * 11)) + (u >> u);
  r += uint(a / b) + uint(a % b) + uint(a >> (u & 63)) + uint(INT_MIN / b);
  r += bytes[gid] * 3 + bytes[(u * 5) % 1024] + uint(char(bytes[gid * 3 % 1024]));
  ushort s = ushort(u * 3), t = ushort(v);
  r += ushort(s / t) + ushort(s % t) + popcount(u) + clz(u) + ctz(u);
  out[gid] = r + mulhi(u, v + 77);
  wide[gid] = long(a) * long(u) / long(b) + long(a) % long(v);
})",
                {Buffer::integers(1024, 3), Buffer::integers(1024, 4), Buffer::zeros(4096),
                 Buffer::zeros(8192), Buffer::integers(256, 5)},
                shapes);
}

TEST_CASE("widen: half and bfloat") {
  check_widened(R"(
kernel void k(device const half* h [[buffer(0)]], device const bfloat* b [[buffer(1)]],
              device half* ho [[buffer(2)]], device bfloat* bo [[buffer(3)]],
              device const float* x [[buffer(4)]], uint gid [[thread_position_in_grid]]) {
  half a = h[gid];
  bfloat c = b[gid];
  for (uint i = 0; i < gid % 4; ++i) { a = a * a + half(x[gid]); c = c * c - bfloat(x[gid]); }
  ho[gid] = a > half(0.5) ? a + half(1) : half(float(a) * x[gid]);
  bo[gid] = c < bfloat(0.25f) ? c + bfloat(2) : bfloat(x[gid] * 1.7f);
})",
                {Buffer::integers(512, 3), Buffer::integers(512, 4), Buffer::zeros(2048),
                 Buffer::zeros(2048), Buffer::floats(1024, 5)},
                shapes);
}

TEST_CASE("widen: float functions, fma and rounding") {
  check_widened(R"(
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
              uint gid [[thread_position_in_grid]]) {
  float a = x[gid] * 100, b = x[(gid * 5) % 1024];
  float r = fma(a, b, 0.1f) + floor(a) + ceil(b) * 2 + trunc(a * 3) + rint(a * 0.5f) + round(b * 4);
  r += exp(b) + log(fabs(a) + 1) + sin(b) + tanh(b) + sqrt(fabs(a)) + rsqrt(fabs(b) + 1);
  r += fmin(a, b) + fmax(a, b) * 2 + clamp(a, -1.0f, 1.0f) + pow(fabs(b), 1.5f) + float(int(a)) + float(uint(fabs(a)));
  y[gid] = r;
})",
                {Buffer::floats(1024, 1), Buffer::zeros(4096)}, shapes);
}

TEST_CASE("widen: exponentials from zero to infinity, the same on every instruction set") {
  std::vector<float> values(1024);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.3f - 165.0f;
  values[3] = std::numeric_limits<float>::infinity();
  values[40] = -std::numeric_limits<float>::infinity();
  values[77] = std::nanf("7");
  const std::string text = R"(
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
              uint gid [[thread_position_in_grid]]) {
  float v = x[gid];
  device float* to = y + gid * 6;
  to[0] = exp(v);
  to[1] = exp2(v);
  to[2] = exp10(v * 0.4f);
  to[3] = fast::exp(v);
  to[4] = pow(1.7f, v);
  to[5] = exp(x[5]) + tanh(v);
})";
  const Dispatch whole = {{1024, 1, 1}, {256, 1, 1}};
  check_widened(text, {Buffer::of(values), Buffer::zeros(6 * 4096)}, rows);
  std::vector<Buffer> first;
  for (InstructionSet set : testing::instruction_sets()) {
    std::vector<Buffer> got = testing::run_msl(
        text, Lowering::widened, set, {Buffer::of(values), Buffer::zeros(6 * 4096)}, whole);
    if (first.empty()) first = got;
    CHECK(got[1].bytes == first[1].bytes);
  }
}

TEST_CASE("widen: matrices of a simdgroup") {
  check_widened(R"(
kernel void k(device const float* x [[buffer(0)]], device const float* w [[buffer(1)]],
              device float* y [[buffer(2)]], uint3 g [[threadgroup_position_in_grid]],
              uint simd [[simdgroup_index_in_threadgroup]]) {
  simdgroup_float8x8 a, b, c = make_filled_simdgroup_matrix<float, 8, 8>(0.5f);
  for (uint i = 0; i < 4; ++i) {
    simdgroup_load(a, x + i * 8, 32);
    simdgroup_load(b, w + i * 8 * 8, 8);
    simdgroup_multiply_accumulate(c, a, b, c);
  }
  simdgroup_store(c, y + (g.x * 8 + simd) * 64, 8);
})",
                {Buffer::floats(256, 1), Buffer::floats(256, 2), Buffer::zeros(64 * 64 * 4)},
                {{{256, 1, 1}, {256, 1, 1}}, {{64, 1, 1}, {32, 1, 1}}});
}

TEST_CASE("widen: rows of vectors and packed bytes") {
  check_widened(R"(
kernel void k(device const uint4* q [[buffer(0)]], device const float4* x [[buffer(1)]],
              device float* y [[buffer(2)]], device const uchar* p [[buffer(3)]],
              uint gid [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  uint4 w = q[gid];
  float4 v = x[gid % 256];
  float s = 0;
  for (uint i = 0; i < 4; ++i) {
    s += v[i] * float(w[i] & 15) - float((w[i] >> 12) & 15);
    s += float(p[lane * 4 + i]) * 0.5f + float(p[gid * 2 + (i & 1)]);
  }
  s += float(((device const ushort*)p)[lane * 2 + 1]);
  y[gid] = s + x[lane].y + ((device const float*)x)[lane * 3 + 1];
})",
                {Buffer::integers(4096, 3), Buffer::floats(1024, 4), Buffer::zeros(4096),
                 Buffer::integers(1024, 7)},
                shapes);
}

TEST_CASE("widen: places in threadgroup memory that are known when compiling") {
  check_widened(R"(
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
              uint gid [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
              uint simd [[simdgroup_index_in_threadgroup]]) {
  threadgroup float part[2 * 32];
  float sum = simd_sum(x[gid]);
  if (lane == 0) { part[simd] = sum; part[32 + simd] = sum * sum; }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float total = 0, squares = 0;
  for (uint i = 0; i < 1; ++i) { total += part[i]; squares += part[32 + i]; }
  y[gid] = total * x[gid] + squares;
})",
                {Buffer::floats(1024, 1), Buffer::floats(1024, 2)}, rows);
}

TEST_CASE("widen: indices made of bits") {
  check_widened(R"(
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
              uint3 p [[thread_position_in_grid]], uint3 size [[threads_per_grid]],
              uint lane [[thread_index_in_simdgroup]], uint3 g [[threadgroup_position_in_grid]],
              uint index [[thread_index_in_threadgroup]]) {
  float s = x[p.x >> 3] + x[(p.x & ~7u) + 5] * 2 + x[(p.x ^ (p.y * 32)) % 1024] * 3;
  s += x[lane | (p.y * 16)] * 4 + x[(index >> 2) | (g.x << 6)] * 5 + x[(p.y << 4) ^ p.x] * 6;
  s += x[(p.x >> 2 | p.y << 8) & 1023] * 7 + x[((lane & 3) << 3) + (lane >> 2)] * 8;
  for (uint i = lane; i < 300; i += 32) s += x[(g.x << 7 | i >> 3) & 1023] * x[i * 2 + 1];
  y[p.x + size.x * (p.y + size.y * p.z)] = s;
})",
                {Buffer::floats(2048, 1), Buffer::zeros(4096)}, shapes);
}

// Small sides of a branch run under a mask while lanes stay together.
TEST_CASE("widen: small sides of branches") {
  check_widened(
      R"(
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
              device const uint* n [[buffer(2)]], device float* z [[buffer(3)]],
              device atomic_uint* counts [[buffer(4)]], device long* w [[buffer(5)]],
              uint gid [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  float a = x[gid];
  uint u = n[gid];
  float sum = simd_sum(a);
  if (lane == 0) z[gid / 32] = sum;
  // A side with loads and divisions, another without, and values that differ after them.
  float v;
  long q = gid;
  if (u % 3 == 1) {
    v = x[(gid * 7) % 1024] / (a + 3);
    q = long(gid) * 1000000007 / long(u);
  } else {
    v = a * 2;
  }
  y[gid] = v;
  w[gid] = q;
  // Lane 0 is off, and its index is negative.
  int down = int(gid * 2 - 11);
  if (down >= 0) (y + 1024)[down] = v + 1;
  int mirrored = 900 - int(gid);
  if (mirrored >= 0) (y + 4096)[mirrored] = v - 1;
  if (u & 4) atomic_fetch_add_explicit(&counts[u % 8], 1, memory_order_relaxed);
  float some = 0;
  if (u & 8) some = simd_sum(a) + simd_shuffle_xor(a, 3);
  y[5120 + gid] = some;
  // One side for nearly all lanes.
  if (gid < 990) y[6144 + gid] = some * v;
})",
      {Buffer::floats(1024, 1), Buffer::zeros(4 * 8 * 1024), Buffer::integers(1024, 3, 40),
       Buffer::zeros(4096), Buffer::zeros(64), Buffer::zeros(8192)},
      rows);
}

// Neighbouring elements by indices that are sums of all kinds: addresses share what they can.
TEST_CASE("widen: neighbours of an index") {
  check_widened(R"(
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
              device const int* n [[buffer(2)]], uint gid [[thread_position_in_grid]]) {
  float sum = 0;
  for (int i = 0; i < 4; ++i) sum += x[gid * 4 + i] * float(i + 1);
  int s = int(gid * 2) - 3;
  if (s >= 0) sum += x[s + 3] - x[s + 1];
  uint near_end = gid - 8;
  sum += x[near_end + 9] * 3 + x[(near_end + 8) & 4095] + x[(near_end & ~3u) + 8 & 4095];
  int j = n[gid];
  sum += x[j + 5] + x[j + 6] * 2 + x[ulong(j) + 7];
  y[gid] = sum;
})",
                {Buffer::floats(5000, 1), Buffer::zeros(4096), Buffer::integers(1024, 3, 4000)},
                rows);
}

TEST_CASE("widen: functions that several places of a kernel share") {
  // Converged, where lanes part, with arguments that are the same in all lanes, and with rare ways
  // that some, all or no lanes take.
  check_widened(
      R"(
float curve(float a, uint n) {
  float r = sin(a) + float(n / ((n & 7) | 1)) * 0.125f;
  if (a > 1.5f) {
    r = r * r / (a + 0.5f) + exp(-a) + float(ulong(n) * 77 / (ulong(n) + 1));
    if (n & 1) r = tanh(r) * 3 - log(abs(r) + 1);
  }
  return r + pow(abs(a), 1.25f);
}
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
              device const float* huge [[buffer(2)]], uint gid [[thread_position_in_grid]],
              uint group [[threadgroup_position_in_grid]]) {
  float a = x[gid], sum = curve(a, gid) + sin(huge[gid]);
  sum += curve(float(group) * 0.5f, group) + sin(float(group) * 1e9f);
  for (uint i = 0; i < (gid & 7); ++i) {
    a = a * 1.25f + 0.25f;
    if (a > 1) sum += curve(a, i) + sin(a); else sum -= curve(-a, gid) * sin(a * 3e8f);
    if (sum > 20) break;
  }
  y[gid] = sum + curve(sum, 3) + sin(sum);
})",
      {Buffer::floats(1024, 1), Buffer::zeros(4096), Buffer::floats(1024, 2, -1e12f, 1e12f)}, rows);
}

TEST_CASE("widen: smaller and larger of NaNs and zeros") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("1");
  const float odd[] = {nan, 0.0f, -0.0f, inf, -inf, 1.5f, -nan, -1.5f};
  std::vector<float> values(1024);
  for (size_t i = 0; i < values.size(); ++i) values[i] = odd[(i * 5 + i / 8 + i / 64 * 3) % 8];
  check_widened(R"(
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
              uint gid [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  float mine = x[gid];
  for (ushort distance = 16; distance > 0; distance /= 2) {
    float other = simd_shuffle_xor(mine, distance);
    float next = (lane & distance) == 0 ? min(mine, other) : max(mine, other);
    float by_value = x[(gid + distance) % 1024] > 0 ? max(other, next) : min(other, next);
    mine = gid % 3 == 0 ? by_value : next;
  }
  y[gid] = mine;
  y[1024 + gid] = simd_max(x[gid]) + min(x[gid], x[(gid * 7 + 1) % 1024]);
})",
                {Buffer::of(values), Buffer::zeros(8192)}, rows);
}

// Optimised to a product with its overflow, a pair of results.
TEST_CASE("widen: a test for overflow") {
  check_widened(R"(
kernel void k(device const uint* x [[buffer(0)]], device uint* y [[buffer(1)]],
              uint gid [[thread_position_in_grid]]) {
  uint a = x[gid], b = x[gid ^ 1] | 1;
  uint product = a * b;
  y[gid] = product / b != a ? 7 : product;
})",
                {Buffer::integers(1024, 1, 100000), Buffer::zeros(4096)}, rows);
}

// Words of which a lane takes some bits as the place in a table that lanes hold together.
TEST_CASE("widen: tables that are looked up by shuffles") {
  check_widened(R"(
kernel void k(device const uint* x [[buffer(0)]], device const float* table [[buffer(1)]],
              device float* y [[buffer(2)]], uint gid [[thread_position_in_grid]],
              uint lane [[thread_index_in_simdgroup]], uint n [[threads_per_grid]]) {
  float four = table[lane % 4], eight = table[lane % 8], sixteen = table[lane % 16];
  float turned = table[lane * 5 % 16], all = table[lane];
  device const uint* words = x + gid / 32 * 16;
  float sums[8] = {0};
  for (uint j = 0; j < 4; ++j) {
    uint packed = words[j * 2 + lane / 16] >> (lane % 16), other = words[j * 4 + lane / 8];
    sums[0] += simd_shuffle(four, ushort(packed & 3));
    sums[1] += simd_shuffle(four, ushort(packed & 14));
    sums[2] += simd_shuffle(eight, ushort(packed & 3));
    sums[3] += simd_shuffle(sixteen, ushort(packed & 31));
    sums[4] += simd_shuffle(turned, ushort(other & 15));
    sums[5] += simd_shuffle(all, ushort(other & 15));
    sums[6] += simd_shuffle(all, ushort(other & 31));
    sums[7] += simd_shuffle(all, ushort(other & 63)) + simd_shuffle(eight, ushort(other & lane));
  }
  for (uint i = 0; i < 8; ++i) y[n * i + gid] = sums[i];
})",
                {Buffer::integers(1024, 1), Buffer::floats(32, 2), Buffer::zeros(4 * 8 * 1024)},
                rows);
}

// What is kept on disk and shared must not depend on where LLVM's objects happen to lie.
TEST_CASE("widen: one source gives the same object, byte for byte, each time") {
  const char* text = R"(
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
              device const uint* n [[buffer(2)]], uint gid [[thread_position_in_grid]],
              uint tid [[thread_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) {
  threadgroup float shared[256];
  float a = x[gid], b = x[gid + 1], c = a * b, d = 0;
  uint i = group, j = group * 2, m = group + 3, q = group ^ 5, r = group | 9;
  for (uint t = 0; t < n[gid]; ++t) {
    if (a < b) { i += 3; j ^= i; c += x[i]; } else { m += j; q ^= m; d += x[m & 255]; }
    if (c > 100) break;
    r += i + q;
    a = c - d;
  }
  shared[tid] = a + float(i + j);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float e = shared[255 - tid] * b;
  for (uint t = 0; t < n[0]; ++t) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    shared[tid] = e + c;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    e += shared[(tid + t) & 255] * d;
  }
  y[gid] = e + float(m + q + r);
})";
  for (InstructionSet set : testing::instruction_sets()) {
    std::vector<char> first = testing::compile_msl(text, Lowering::widened, set).object;
    std::vector<std::vector<char>> in_between;
    for (size_t i = 1; i < 6; ++i) {
      in_between.emplace_back(i * 1000);
      CHECK(testing::compile_msl(text, Lowering::widened, set).object == first);
    }
  }
}
