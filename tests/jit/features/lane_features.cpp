// SIMD-groups, quad-groups, matrices of a SIMD-group.
#include <cmath>

#include "jit/features/feature.h"

namespace holdfast::jit::testing {
namespace {

const std::string at =
    "uint i = thread_position_in_grid.x; uint lane = thread_index_in_simdgroup;\n";

// y[thread] = value(lanes of its simdgroup, how many there are, lane).
template <class T, class Value>
std::function<void(Arrays&)> per_lane(Value value) {
  return [value](Arrays& a) {
    each_simdgroup([&](size_t first, size_t count) {
      for (size_t lane = 0; lane < count; ++lane)
        a.out<T>()[first + lane] = static_cast<T>(value(a.in<T>() + first, count, lane));
    });
  };
}

float add(float a, float b) { return a + b; }
float larger(float a, float b) { return std::fmax(a, b); }
float smaller(float a, float b) { return std::fmin(a, b); }

template <class Value>
Feature on_floats(const char* name, const std::string& expression, Value value) {
  return {name,
          at + "float v = x[i]; y[i] = " + expression + ";",
          {floats("x")},
          {zeros("y", float32)},
          per_lane<float>(value)};
}
template <class Value>
Feature on_integers(const char* name, const std::string& expression, Value value) {
  return {name,
          at + "uint v = x[i]; y[i] = " + expression + ";",
          {integers("x", uint32, {threads}, 1, 50)},
          {zeros("y", uint32)},
          per_lane<uint32_t>(value)};
}

// The lane if it is there, or one's own.
size_t there(size_t other, size_t count, size_t lane) { return other < count ? other : lane; }

// y = a b for 8 × 8 matrices of one simdgroup; rows as the hardware adds: fused, from k = 0.
void multiply(const float* a, const float* b, float* y, float start) {
  for (size_t row = 0; row < 8; ++row) {
    for (size_t column = 0; column < 8; ++column) {
      float sum = start;
      for (size_t k = 0; k < 8; ++k) sum = std::fma(a[row * 8 + k], b[k * 8 + column], sum);
      y[row * 8 + column] = sum;
    }
  }
}

// A tiled matrix product as in MLX's steel headers: loaders and multipliers that are classes,
// chosen by address space, with fragments accessed by lane.
const char* const tiled_header = R"(
#pragma METAL internals : enable
#define STEEL_CONST static constant constexpr const
template <typename T> struct pointer_traits_of_tile {};
template <typename T> struct pointer_traits_of_tile<const device T*> { STEEL_CONST int space = 1; using element = T; };
template <typename T> struct pointer_traits_of_tile<threadgroup T*> { STEEL_CONST int space = 3; using element = T; };
template <int v> using Int = integral_constant<int, v>;
template <typename T, short ROWS, short COLUMNS, short THREADS>
struct TileLoader {
  STEEL_CONST short per_thread = (ROWS * COLUMNS) / THREADS;
  const int stride;
  const short first;
  threadgroup T* to;
  const device T* from;
  METAL_FUNC TileLoader(const device T* from_, const int stride_, threadgroup T* to_, ushort index [[thread_index_in_threadgroup]])
      : stride(stride_), first(index * per_thread), to(to_), from(from_) {}
  METAL_FUNC void load() const {
    #pragma clang loop unroll(full)
    for (short k = 0; k < per_thread; ++k) {
      const short e = first + k;
      to[e] = from[(e / COLUMNS) * stride + e % COLUMNS];
    }
  }
  METAL_FUNC void next(int columns) thread { from += columns; }
};
template <typename T, short ROWS, short COLUMNS>
struct Multiplier {
  simdgroup_matrix<float, 8, 8> results[ROWS / 8][COLUMNS / 8] = {{simdgroup_matrix<float, 8, 8>(0)}};
  METAL_FUNC Multiplier() thread {
    for (short r = 0; r < ROWS / 8; ++r) for (short c = 0; c < COLUMNS / 8; ++c) results[r][c] = simdgroup_matrix<float, 8, 8>(0);
  }
  METAL_FUNC void mma(const threadgroup T* a, const threadgroup T* b, short depth) thread {
    for (short k = 0; k < depth; k += 8) {
      simdgroup_barrier(mem_flags::mem_none);
      for (short r = 0; r < ROWS / 8; ++r) {
        simdgroup_matrix<T, 8, 8> left;
        simdgroup_load(left, a + r * 8 * depth + k, depth);
        for (short c = 0; c < COLUMNS / 8; ++c) {
          simdgroup_matrix<T, 8, 8> right;
          simdgroup_load(right, b + c * 8 * depth + k, depth, ulong2(0, 0), true);
          simdgroup_multiply_accumulate(results[r][c], left, right, results[r][c]);
        }
      }
    }
  }
  METAL_FUNC void store(device float* y, const int stride, ushort lane [[thread_index_in_simdgroup]]) const thread {
    const short quad = lane / 4;
    const short row = (quad & 4) + (lane / 2) % 4, column = (quad & 2) * 2 + (lane % 2) * 2;
    for (short r = 0; r < ROWS / 8; ++r)
      for (short c = 0; c < COLUMNS / 8; ++c) {
        thread const auto& elements = results[r][c].thread_elements();
        device float* to = y + (r * 8 + row) * stride + c * 8 + column;
        to[0] = elements[0];
        to[1] = elements[1];
      }
  }
};
)";

}  // namespace

Section lane_features() {
  std::vector<Feature> rows = {
      on_floats("simd_sum", "simd_sum(v)",
                [](const float* x, size_t n, size_t) { return butterfly(x, n, 0, add); }),
      on_integers("simd_sum of integers", "simd_sum(v)",
                  [](const uint32_t* x, size_t n, size_t) {
                    uint32_t sum = 0;
                    for (size_t i = 0; i < n; ++i) sum += x[i];
                    return sum;
                  }),
      {"simd_sum in loops and in branches that all lanes take",
       at + "float total = 0; for (int k = 0; k < 3; ++k) total += simd_sum(x[i] * float(k));\n"
            "if (n > 2) total += simd_sum(x[i]); y[i] = total;",
       {floats("x"), scalar("n", int32, 3)},
       {zeros("y", float32)},
       per_lane<float>([](const float* x, size_t n, size_t) {
         float total = 0;
         for (int k = 0; k < 3; ++k) {
           float scaled[32];
           for (size_t i = 0; i < n; ++i) scaled[i] = x[i] * static_cast<float>(k);
           total += butterfly(scaled, n, 0, add);
         }
         return total + butterfly(x, n, 0, add);
       })},
      on_floats(
          "simd_max", "simd_max(v)",
          [](const float* x, size_t n, size_t) { return butterfly(x, n, -INFINITY, larger); }),
      on_floats(
          "simd_min", "simd_min(v)",
          [](const float* x, size_t n, size_t) { return butterfly(x, n, INFINITY, smaller); }),
      on_floats("simd_shuffle_down", "simd_shuffle_down(v, 5)",
                [](const float* x, size_t n, size_t l) { return x[there(l + 5, n, l)]; }),
      on_floats(
          "simd_shuffle", "simd_shuffle(v, ushort((lane * 7 + 3) % 32))",
          [](const float* x, size_t n, size_t l) { return x[there((l * 7 + 3) % 32, n, l)]; }),
      on_floats("simd_broadcast", "simd_broadcast(v, 2) + simd_broadcast_first(v)",
                [](const float* x, size_t, size_t) { return x[2] + x[0]; }),
      on_integers("simd_prefix_exclusive_sum", "simd_prefix_exclusive_sum(v)",
                  [](const uint32_t* x, size_t, size_t l) {
                    uint32_t sum = 0;
                    for (size_t i = 0; i < l; ++i) sum += x[i];
                    return sum;
                  }),
      on_floats("simd_prefix_inclusive_sum", "simd_prefix_inclusive_sum(v)",
                [](const float* x, size_t, size_t l) { return *prefix_tree(x, ~0u, l + 1, add); }),
      on_floats("simd_prefix_inclusive_sum, simd_prefix_exclusive_product where lanes are missing",
                "0; if (lane % 3 != 1 && lane > 1) y[i] = simd_prefix_inclusive_sum(v) + "
                "simd_prefix_exclusive_product(v)",
                [](const float* x, size_t, size_t l) {
                  uint32_t active = 0;
                  for (uint32_t i = 2; i < 32; ++i) active |= (i % 3 != 1 ? 1u : 0u) << i;
                  if ((active >> l & 1) == 0) return 0.0f;
                  return *prefix_tree(x, active, l + 1, add) +
                         prefix_tree(x, active, l, [](float a, float b) {
                           return a * b;
                         }).value_or(1.0f);
                }),
      on_floats("simd_shuffle_xor: butterflies of a Hadamard transform",
                "v; for (ushort d = 1; d < 32; d *= 2) { float o = simd_shuffle_xor(v, d); v = "
                "lane & d ? o - v : v + o; } y[i] = v",
                [](const float* x, size_t n, size_t l) {
                  float values[32];
                  for (size_t i = 0; i < n; ++i) values[i] = x[i];
                  for (size_t d = 1; d < 32; d *= 2) {
                    float next[32];
                    for (size_t i = 0; i < n; ++i) {
                      const float other = values[there(i ^ d, n, i)];
                      next[i] = i & d ? other - values[i] : values[i] + other;
                    }
                    std::copy(next, next + n, values);
                  }
                  return values[l];
                }),
      on_floats("simd_shuffle_up", "simd_shuffle_up(v, 3)",
                [](const float* x, size_t, size_t l) { return x[l < 3 ? l : l - 3]; }),
      {"simdgroup_barrier",
       at + "threadgroup float s[64]; s[thread_index_in_threadgroup] = x[i]; "
            "simdgroup_barrier(mem_flags::mem_threadgroup);\n"
            "y[i] = s[thread_index_in_threadgroup - lane];",
       {floats("x")},
       {zeros("y", float32)},
       per_lane<float>([](const float* x, size_t, size_t) { return x[0]; })},
      on_floats("simd_shuffle_rotate_up, simd_shuffle_rotate_down",
                "simd_shuffle_rotate_up(v, 3) * 2 + simd_shuffle_rotate_down(v, 9)",
                [](const float* x, size_t n, size_t l) {
                  return x[there((l + 29) % 32, n, l)] * 2 + x[there((l + 9) % 32, n, l)];
                }),
      // Lanes that are not there give a lane's own value, so that only whole simdgroups are asked.
      {"simd_shuffle_and_fill_up, simd_shuffle_and_fill_down",
       at + "y[i] = simd_shuffle_and_fill_up(x[i], x[i] * 100, 3) + "
            "simd_shuffle_and_fill_down(x[i], x[i] * 10, 2);",
       {floats("x")},
       {zeros("y", float32)},
       [](Arrays& a) {
         for (size_t first = 0; first < 64; first += 32) {
           const float* x = a.in() + first;
           for (size_t l = 0; l < 32; ++l) {
             const float up = l < 3 ? x[l + 29] * 100 : x[l - 3];
             const float down = l > 29 ? x[l - 30] * 10 : x[l + 2];
             a.out()[first + l] = up + down;
           }
         }
       },
       {64, 1, 1}},
      on_integers("simd_product, simd_and, simd_or, simd_xor",
                  "simd_product(v) + simd_and(v | 32) * 3 + simd_or(v) * 5 + simd_xor(v) * 7",
                  [](const uint32_t* x, size_t n, size_t) {
                    uint32_t product = 1, all = ~0u, any = 0, odd = 0;
                    for (size_t i = 0; i < n; ++i) {
                      product *= x[i];
                      all &= x[i] | 32;
                      any |= x[i];
                      odd ^= x[i];
                    }
                    return product + all * 3 + any * 5 + odd * 7;
                  }),
      on_integers("simd_any, simd_all, simd_ballot, simd_vote",
                  "uint(ulong(simd_ballot(v % 3 == 0))) + simd_any(v == 7) + 2 * simd_all(v < 49); "
                  "simd_vote vote = simd_ballot(v > 25); if (vote.any()) y[i] += 1; if "
                  "(vote.all()) y[i] += 100",
                  [](const uint32_t* x, size_t n, size_t) {
                    uint32_t ballot = 0, any = 0, all = 1, large = 0;
                    for (size_t i = 0; i < n; ++i) {
                      ballot |= (x[i] % 3 == 0 ? 1u : 0u) << i;
                      any |= x[i] == 7;
                      all &= x[i] < 49;
                      large |= (x[i] > 25 ? 1u : 0u) << i;
                    }
                    return ballot + any + 2 * all + (large != 0) + (large == ~0u ? 100 : 0);
                  }),
      on_integers("simd_is_first, simd_active_threads_mask, in branches that some lanes take",
                  "0; if (v & 1) y[i] = uint(ulong(simd_active_threads_mask())) + (simd_is_first() "
                  "? 1u : 0u)",
                  [](const uint32_t* x, size_t n, size_t l) {
                    uint32_t mask = 0;
                    for (size_t i = 0; i < n; ++i) mask |= (x[i] & 1) << i;
                    if (!(x[l] & 1)) return 0u;
                    return mask + ((mask & ((1u << l) - 1)) == 0);
                  }),
      on_integers("quad_sum, quad_max, quad_min, quad_product, quad_and, quad_or, quad_xor",
                  "quad_sum(v) + 3 * quad_max(v) + 5 * quad_min(v) + quad_product(v) + 7 * "
                  "quad_and(v) + 11 * quad_or(v) + 13 * quad_xor(v)",
                  [](const uint32_t* x, size_t, size_t l) {
                    const uint32_t* q = x + l / 4 * 4;
                    return q[0] + q[1] + q[2] + q[3] + 3 * std::max({q[0], q[1], q[2], q[3]}) +
                           5 * std::min({q[0], q[1], q[2], q[3]}) + q[0] * q[1] * q[2] * q[3] +
                           7 * (q[0] & q[1] & q[2] & q[3]) + 11 * (q[0] | q[1] | q[2] | q[3]) +
                           13 * (q[0] ^ q[1] ^ q[2] ^ q[3]);
                  }),
      on_integers(
          "quad_broadcast, quad_shuffle, quad_shuffle_xor, quad_shuffle_up, quad_shuffle_down",
          "quad_broadcast(v, 1) + 3 * quad_shuffle(v, ushort(3 - lane % 4)) + 5 * "
          "quad_shuffle_xor(v, 2) + 7 * quad_shuffle_up(v, 1) + 11 * quad_shuffle_down(v, 2)",
          [](const uint32_t* x, size_t, size_t l) {
            const uint32_t* q = x + l / 4 * 4;
            const size_t k = l % 4;
            return q[1] + 3 * q[3 - k] + 5 * q[k ^ 2] + 7 * q[k < 1 ? k : k - 1] +
                   11 * q[k + 2 > 3 ? k : k + 2];
          }),
      on_integers("quad_prefix_inclusive_sum, quad_prefix_exclusive_sum, quad_any, quad_all, "
                  "quad_ballot, quad_is_first",
                  "quad_prefix_inclusive_sum(v) * 100 + quad_prefix_exclusive_sum(v) + (quad_any(v "
                  "== 9) ? 3 : 0) + (quad_all(v > 5) ? 7 : 0) + (quad_is_first() ? 11 : 0) + "
                  "uint(ulong(quad_ballot(v & 1))) * 100000",
                  [](const uint32_t* x, size_t, size_t l) {
                    const uint32_t* q = x + l / 4 * 4;
                    uint32_t before = 0, ballot = 0, any = 0, all = 1;
                    for (size_t k = 0; k < l % 4; ++k) before += q[k];
                    for (size_t k = 0; k < 4; ++k) {
                      ballot |= (q[k] & 1) << k;
                      any |= q[k] == 9;
                      all &= q[k] > 5;
                    }
                    return (before + x[l]) * 100 + before + any * 3 + all * 7 +
                           (l % 4 == 0 ? 11 : 0) + ballot * 100000;
                  }),
      {"shuffles and sums of half, bfloat, 8, 16 and 64 bits, bool, vectors, complex64_t",
       at + "long v = long(x[i]) << 33; y[i] = simd_sum(v) + simd_shuffle_xor(v, 1) + "
            "long(simd_shuffle_down(short(x[i]), 1)) + long(simd_shuffle(bool(x[i] & 1), 3));\n"
            "z[i] = float(simd_sum(half(x[i]))) + float(simd_max(bfloat(x[i]))) + "
            "simd_shuffle_xor(float2(x[i], 0.5), 2).x + simd_shuffle_xor(complex64_t(0.0f, x[i]), "
            "1).imag;",
       {integers("x", int32, {64}, 0, 20)},
       {zeros("y", int64, {64}), zeros("z", float32, {64})},
       [](Arrays& a) {
         for (size_t first = 0; first < 64; first += 32) {
           const int32_t* x = a.in<int32_t>() + first;
           int64_t sum = 0;
           int32_t top = 0;
           for (size_t i = 0; i < 32; ++i) {
             sum += x[i];
             top = std::max(top, x[i]);
           }
           for (size_t l = 0; l < 32; ++l) {
             a.out<int64_t>(0)[first + l] =
                 (sum + x[l ^ 1]) * (int64_t{1} << 33) + x[l == 31 ? l : l + 1] + (x[3] & 1);
             a.out<float>(1)[first + l] = static_cast<float>(sum + top + x[l ^ 2] + x[l ^ 1]);
           }
         }
       },
       {64, 1, 1}},
      {"simdgroup_matrix<T, 8, 8>, simdgroup_load, simdgroup_store, simdgroup_multiply_accumulate",
       "simdgroup_matrix<float, 8, 8> a, b, c = make_filled_simdgroup_matrix<float, 8, 8>(0.5); "
       "threadgroup float tile[64];\n"
       "uint lane = thread_index_in_simdgroup; tile[lane] = q[lane]; tile[lane + 32] = q[lane + "
       "32]; threadgroup_barrier(mem_flags::mem_threadgroup);\n"
       "simdgroup_load(a, p, 8); simdgroup_load(b, tile, 8); simdgroup_multiply_accumulate(c, a, "
       "b, c); simdgroup_store(c, y, 8);",
       {floats("p", {64}), floats("q", {64})},
       {zeros("y", float32, {64})},
       [](Arrays& a) { multiply(a.in(0), a.in(1), a.out(), 0.5f); },
       {32, 1, 1},
       {32, 1, 1}},
      {"simdgroup_float8x8, simdgroup_multiply, transposed and offset loads",
       "simdgroup_float8x8 a, b, c; simdgroup_load(a, p, 16, ulong2(4, 2)); simdgroup_load(b, q, "
       "8, ulong2(0, 0), true);\n"
       "simdgroup_multiply(c, a, b); simdgroup_store(c, y, 8); // thread_index_in_simdgroup",
       {floats("p", {256}), floats("q", {64})},
       {zeros("y", float32, {64})},
       [](Arrays& a) {
         float left[64], right[64];
         for (size_t r = 0; r < 8; ++r) {
           for (size_t c = 0; c < 8; ++c) {
             left[r * 8 + c] = a.in(0)[(r + 2) * 16 + c + 4];
             right[r * 8 + c] = a.in(1)[c * 8 + r];
           }
         }
         multiply(left, right, a.out(), 0);
       },
       {32, 1, 1},
       {32, 1, 1}},
      {"`.thread_elements()` in Apple's layout",
       "simdgroup_matrix<float, 8, 8> a; simdgroup_load(a, p, 8); uint lane = "
       "thread_index_in_simdgroup;\n"
       "y[2 * lane] = a.thread_elements()[0]; y[2 * lane + 1] = a.thread_elements()[1];\n"
       "a.thread_elements()[0] = float(lane); a.thread_elements()[1] = -1; simdgroup_store(a, z, "
       "8);",
       {floats("p", {64})},
       {zeros("y", float32, {64}), zeros("z", float32, {64})},
       [](Arrays& a) {
         for (size_t lane = 0; lane < 32; ++lane) {
           const size_t quad = lane / 4;
           const size_t row = (quad & 4) + (lane / 2) % 4, column = (quad & 2) * 2 + (lane % 2) * 2;
           a.out(0)[2 * lane] = a.in()[row * 8 + column];
           a.out(0)[2 * lane + 1] = a.in()[row * 8 + column + 1];
           a.out(1)[row * 8 + column] = static_cast<float>(lane);
           a.out(1)[row * 8 + column + 1] = -1;
         }
       },
       {32, 1, 1},
       {32, 1, 1}},
      {"simdgroup_half8x8 with sums in float",
       "simdgroup_half8x8 a, b; simdgroup_float8x8 c(0); simdgroup_load(a, p, 8); "
       "simdgroup_load(b, q, 8);\n"
       "simdgroup_multiply_accumulate(c, a, b, c); simdgroup_store(c, y, 8); // "
       "thread_index_in_simdgroup",
       {as(float16, floats("p", {64})), as(float16, floats("q", {64}))},
       {zeros("y", float32, {64})},
       [](Arrays& a) {
         float left[64], right[64];
         for (size_t i = 0; i < 64; ++i) {
           left[i] = static_cast<float>(a.in<_Float16>(0)[i]);
           right[i] = static_cast<float>(a.in<_Float16>(1)[i]);
         }
         multiply(left, right, a.out(), 0);
       },
       {32, 1, 1},
       {32, 1, 1}},
      {"tiled products as in MLX's steel headers: loaders and multipliers that are classes",
       "threadgroup float left[16 * 16]; threadgroup float right[16 * 16];\n"
       "TileLoader<float, 16, 16, 32> load_left(p, K, left, thread_index_in_threadgroup), "
       "load_right(q, K, right, thread_index_in_threadgroup);\n"
       "static_assert(pointer_traits_of_tile<threadgroup float*>::space == 3 && "
       "pointer_traits_of_tile<decltype(p)>::space == 1, \"\");\n"
       "Multiplier<float, 16, 16> multiplier; static_assert(Int<4>::value == 4, \"\");\n"
       "for (int k = 0; k < K; k += 16) { threadgroup_barrier(mem_flags::mem_threadgroup); "
       "load_left.load(); load_right.load();\n"
       "  threadgroup_barrier(mem_flags::mem_threadgroup); multiplier.mma(left, right, 16); "
       "load_left.next(16); load_right.next(16); }\n"
       "multiplier.store(y, 16, thread_index_in_simdgroup);",
       {floats("p", {16, 48}), floats("q", {16, 48})},
       {zeros("y", float32, {16, 16})},
       [](Arrays& a) {
         for (size_t r = 0; r < 16; ++r) {
           for (size_t c = 0; c < 16; ++c) {
             float sum = 0;
             for (size_t k = 0; k < 48; ++k)
               sum = std::fma(a.in(0)[r * 48 + k], a.in(1)[c * 48 + k], sum);
             a.out()[r * 16 + c] = sum;
           }
         }
       },
       {32, 1, 1},
       {32, 1, 1},
       tiled_header,
       {{"K", 48}}},
  };
  return {"SIMD-groups, quad-groups, matrices", std::move(rows)};
}

}  // namespace holdfast::jit::testing
