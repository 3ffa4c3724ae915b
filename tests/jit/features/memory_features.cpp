// Threadgroup memory, barriers, atomics.
#include "jit/features/feature.h"

namespace holdfast::jit::testing {
namespace {

const std::string at =
    "uint i = thread_position_in_grid.x; uint t = thread_index_in_threadgroup; uint n = "
    "threads_per_threadgroup.x;\n";

// y[thread] = value(inputs of its threadgroup, how many, index in it).
template <class T = float, class Value>
std::function<void(Arrays&)> per_group(Value value) {
  return [value](Arrays& a) {
    for (size_t first = 0; first < threads; first += 64) {
      const size_t count = std::min<size_t>(64, threads - first);
      for (size_t t = 0; t < count; ++t)
        a.out<T>()[first + t] = static_cast<T>(value(a.in<T>() + first, count, t));
    }
  };
}

float opposite(const float* x, size_t n, size_t t) { return x[n - 1 - t]; }

// Writes to threadgroup memory, `between`, reads what another thread wrote.
Feature with_barrier(const char* name, const std::string& between) {
  return {name,
          at + "threadgroup float s[64]; s[t] = x[i];\n" + between + "\ny[i] = s[n - 1 - t];",
          {floats("x")},
          {zeros("y", float32)},
          per_group(opposite)};
}

// Atomics on one word that starts with `start`; the result does not depend on the order.
Feature atomic(const char* name, Dtype dtype, const std::string& statement,
               std::function<void(Arrays&)> expected, Argument output) {
  return {name,
          at + statement,
          {integers("x", dtype, {threads}, 0, 1000)},
          {std::move(output)},
          std::move(expected)};
}

}  // namespace

Section memory_features() {
  return {
      "Threadgroup memory, barriers, atomics",
      {
          with_barrier("`threadgroup T name[N]` in the body",
                       "threadgroup_barrier(mem_flags::mem_threadgroup);"),
          {"threadgroup arrays in the middle of the body, in blocks, after early returns",
           at + "if (i >= 64) return;\nfloat v = x[i];\nif (m > 1) { threadgroup float inner[64]; "
                "inner[t] = v;\n"
                "threadgroup_barrier(mem_flags::mem_threadgroup); v = inner[63 - t]; }\n"
                "threadgroup float later[64]; later[t] = v + 1; "
                "threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = later[t ^ 1];",
           {floats("x"), scalar("m", int32, 2)},
           {zeros("y", float32)},
           [](Arrays& a) {
             for (size_t i = 0; i < 64; ++i) a.out()[i] = a.in()[63 - (i ^ 1)] + 1;
           }},
          {"sizes from template arguments",
           at + "constexpr int M = D / 2; threadgroup float s[M][2]; s[t / 2][t & 1] = x[i];\n"
                "threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = s[t / 2][1 - (t & 1)];",
           {floats("x")},
           {zeros("y", float32)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i) a.out()[i] = a.in()[i ^ 1];
           },
           {100, 1, 1},
           {64, 1, 1},
           {},
           {{"D", 64}}},
          {"all 32 KiB of threadgroup memory",
           at + "threadgroup float s[8192]; for (uint k = t; k < 8192; k += n) s[k] = float(k) * "
                "0.5;\n"
                "threadgroup_barrier(mem_flags::mem_threadgroup); float total = 0; for (uint k = "
                "t; k < 8192; k += 64) total += s[8191 - k]; y[i] = total;",
           {},
           {zeros("y", float32)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i) {
               float total = 0;
               for (size_t k = i % 64; k < 8192; k += 64)
                 total += static_cast<float>(8191 - k) * 0.5f;
               a.out()[i] = total;
             }
           }},
          {"`threadgroup T name;`",
           at + "threadgroup float one; if (t == 3) one = x[i]; "
                "threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = one * 2;",
           {floats("x")},
           {zeros("y", float32)},
           per_group([](const float* x, size_t, size_t) { return x[3] * 2; })},
          {"`threadgroup T*`: passed to helpers, arithmetic",
           at + "threadgroup float s[64]; threadgroup float* p = s + t; *p = x[i]; "
                "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                "y[i] = total(s, n) + *(p - t);",
           {floats("x")},
           {zeros("y", float32)},
           per_group([](const float* x, size_t n, size_t) {
             float sum = 0;
             for (size_t i = 0; i < n; ++i) sum += x[i];
             return sum + x[0];
           }),
           {100, 1, 1},
           {64, 1, 1},
           "float total(const threadgroup float* v, uint n) { float s = 0; for (uint i = 0; i < n; "
           "++i) s += v[i]; return s; }"},
          with_barrier("mem_flags::mem_threadgroup",
                       "threadgroup_barrier(mem_flags::mem_threadgroup);"),
          with_barrier("mem_flags::mem_none synchronises",
                       "threadgroup_barrier(mem_flags::mem_none);"),
          with_barrier("mem_flags::mem_device, and flags combined",
                       "threadgroup_barrier(mem_flags::mem_device); "
                       "threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);"),
          {"barriers in loops, tree reductions",
           at + "threadgroup float s[64]; s[t] = x[i]; "
                "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                "for (uint half_n = 32; half_n > 0; half_n /= 2) { if (t < half_n && t + half_n < "
                "n) s[t] += s[t + half_n];\n"
                "threadgroup_barrier(mem_flags::mem_threadgroup); } y[i] = s[0];",
           {floats("x")},
           {zeros("y", float32)},
           per_group([](const float* x, size_t n, size_t) {
             std::vector<float> s(x, x + n);
             for (size_t h = 32; h > 0; h /= 2)
               for (size_t t = 0; t < h && t + h < n; ++t) s[t] += s[t + h];
             return s[0];
           })},
          {"early `return;` of whole threadgroups and rows before a barrier",
           at + "if (threadgroup_position_in_grid.x == 0) return; threadgroup float s[64]; s[t] = "
                "x[i];\n"
                "threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = s[n - 1 - t];",
           {floats("x")},
           {zeros("y", float32)},
           [](Arrays& a) {
             for (size_t i = 64; i < threads; ++i) a.out()[i] = a.in()[64 + 99 - i];
           }},
          {"early `return;` of some threads before a barrier of the others",
           at + "threadgroup float s[64]; s[t] = x[i]; "
                "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                "if (t >= 20) return; float v = s[t + 1]; "
                "threadgroup_barrier(mem_flags::mem_threadgroup); s[t] = v;\n"
                "threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = s[19 - t];",
           {floats("x")},
           {zeros("y", float32)},
           [](Arrays& a) {
             for (size_t first : {0, 64})
               for (size_t t = 0; t < 20; ++t) a.out()[first + t] = a.in()[first + 19 - t + 1];
           }},
          atomic(
              "atomic_fetch_add_explicit of uint", uint32,
              "atomic_fetch_add_explicit((device atomic_uint*)&y[x[i] % 5], x[i], "
              "memory_order_relaxed);",
              [](Arrays& a) {
                for (size_t i = 0; i < threads; ++i) {
                  const uint32_t v = a.in<uint32_t>()[i];
                  a.out<uint32_t>()[v % 5] += v;
                }
              },
              zeros("y", uint32, {5})),
          {"atomic_fetch_add_explicit of float, atomic_float is atomic<float>",
           at + "device atomic_float* p = (device atomic_float*)y; device atomic<float>* q = p;\n"
                "atomic_fetch_add_explicit(&q[x[i] % 5], float(x[i]) * 0.5, memory_order_relaxed);",
           {integers("x", uint32, {threads}, 0, 1000)},
           {zeros("y", float32, {5})},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i) {
               const uint32_t v = a.in<uint32_t>()[i];
               a.out()[v % 5] += static_cast<float>(v) * 0.5f;
             }
           }},
          {"atomic_store_explicit, atomic_load_explicit, on threadgroup memory",
           at + "threadgroup atomic_uint counts[4]; if (t < 4) atomic_store_explicit(&counts[t], t "
                "* 10, memory_order_relaxed);\n"
                "threadgroup_barrier(mem_flags::mem_threadgroup); "
                "atomic_fetch_add_explicit(&counts[x[i] % 4], 1u, memory_order_relaxed);\n"
                "threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = "
                "atomic_load_explicit(&counts[t % 4], memory_order_relaxed);",
           {integers("x", uint32, {threads}, 0, 1000)},
           {zeros("y", uint32)},
           per_group<uint32_t>([](const uint32_t* x, size_t n, size_t t) {
             uint32_t count = static_cast<uint32_t>(t % 4) * 10;
             for (size_t i = 0; i < n; ++i) count += x[i] % 4 == t % 4;
             return count;
           })},
          {"atomic_fetch_or_explicit through `(threadgroup atomic_uint*)&words[i]` and "
           "`reinterpret_cast<device atomic_uint*>`",
           at + "threadgroup uint words[2]; if (t < 2) words[t] = 0; "
                "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                "atomic_fetch_or_explicit((threadgroup atomic_uint*)&words[t & 1], 1u << (x[i] % "
                "32), memory_order_relaxed);\n"
                "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                "if (t < 2) atomic_fetch_or_explicit(reinterpret_cast<device atomic_uint*>(y + t), "
                "words[t], memory_order_relaxed);",
           {integers("x", uint32, {threads}, 0, 1000)},
           {zeros("y", uint32, {2})},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i)
               a.out<uint32_t>()[i & 1] |= 1u << (a.in<uint32_t>()[i] % 32);
           }},
          atomic(
              "fetch_min, fetch_max, fetch_and, fetch_xor, fetch_sub", int32,
              "device atomic_int* p = (device atomic_int*)y; atomic_fetch_min_explicit(p, x[i], "
              "memory_order_relaxed); atomic_fetch_max_explicit(p + 1, x[i], "
              "memory_order_relaxed);\n"
              "atomic_fetch_and_explicit(p + 2, x[i] | 1, memory_order_relaxed); "
              "atomic_fetch_xor_explicit(p + 3, x[i], memory_order_relaxed); "
              "atomic_fetch_sub_explicit(p + 4, x[i], memory_order_relaxed);",
              [](Arrays& a) {
                int32_t* y = a.out<int32_t>();
                for (size_t i = 0; i < threads; ++i) {
                  const int32_t v = a.in<int32_t>()[i];
                  y[0] = std::min(y[0], v);
                  y[1] = std::max(y[1], v);
                  y[2] &= v | 1;
                  y[3] ^= v;
                  y[4] -= v;
                }
              },
              values<int32_t>("y", int32, {500, 500, -1, 0, 0, 0, 0, 0})),
          {"atomic_compare_exchange_weak_explicit, atomic_exchange_explicit",
           at + "device atomic<float>* p = (device atomic<float>*)y; float old = "
                "atomic_load_explicit(p, memory_order_relaxed);\n"
                "while (!atomic_compare_exchange_weak_explicit(p, &old, old * 0.5 + 8, "
                "memory_order_relaxed, memory_order_relaxed)) {}\n"
                "if (i == 7) y[2] = atomic_exchange_explicit(p + 1, 2.5, memory_order_relaxed);",
           {},
           {values<float>("y", float32, {1, 4, 0, 0, 0, 0, 0, 0})},
           [](Arrays& a) {
             float v = 1;
             for (size_t i = 0; i < threads; ++i) v = v * 0.5f + 8;
             a.out()[0] = v;
             a.out()[1] = 2.5f;
             a.out()[2] = 4;
           }},
          {"atomics of 64 bits, atomic_thread_fence",
           at + "atomic_fetch_add_explicit((device atomic_ulong*)y, ulong(x[i]) << 20, "
                "memory_order_relaxed); atomic_max_explicit((device atomic_ulong*)y + 1, "
                "ulong(x[i]), memory_order_relaxed);\n"
                "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, "
                "thread_scope_device);",
           {integers("x", uint32, {threads}, 0, 1000)},
           {zeros("y", uint64, {8})},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i) {
               const uint64_t v = a.in<uint32_t>()[i];
               a.out<uint64_t>()[0] += v << 20;
               a.out<uint64_t>()[1] = std::max(a.out<uint64_t>()[1], v);
             }
           }},
          {"what an atomic returns: each old value once",
           at + "uint old = atomic_fetch_add_explicit((device atomic_uint*)y, 1u, "
                "memory_order_relaxed); atomic_fetch_add_explicit((device atomic_uint*)(y + 1 + "
                "old), 1u, memory_order_relaxed);",
           {},
           {zeros("y", uint32, {101})},
           [](Arrays& a) {
             a.out<uint32_t>()[0] = threads;
             for (size_t i = 0; i < threads; ++i) a.out<uint32_t>()[1 + i] = 1;
           }},
      }};
}

}  // namespace holdfast::jit::testing
