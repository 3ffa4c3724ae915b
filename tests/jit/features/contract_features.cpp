// MLX's contract around the body of a custom kernel.
#include "jit/features/feature.h"

namespace holdfast::jit::testing {
namespace {

const std::string at = "uint i = thread_position_in_grid.x;\n";

}  // namespace

Section contract_features() {
  return {
      "Around the body",
      {
          {"an input of 8 or more elements is `const device T*`",
           at + "const device float* p = x; y[i] = p[i] * 2;",
           {floats("x")},
           {zeros("y", float32)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i) a.out()[i] = a.in()[i] * 2;
           }},
          {"an input of fewer than 8 elements is `const constant T*`",
           at + "constant float* cs = small; const constant float* ct = cs + 1; y[i] = cs[i % 3] - "
                "*ct;",
           {floats("small", {7})},
           {zeros("y", float32)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i) a.out()[i] = a.in()[i % 3] - a.in()[1];
           }},
          {"a 0-d input is `const constant T&`: floats, integers, bools",
           at + "const constant float& f = factor; y[i] = flag ? x[i] * f + n : 0;",
           {floats("x"), scalar("factor", float32, 1.5f), scalar("n", int32, -3),
            scalar("flag", bool_, uint8_t{1})},
           {zeros("y", float32)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i) a.out()[i] = a.in()[i] * 1.5f + -3;
           }},
          {"`name_shape`, `name_strides`, `name_ndim`",
           at + "y[i] = x_shape[0] * 1000 + x_shape[1] * 100 + int(x_strides[0]) * 10 + "
                "int(x_strides[1]) + x_ndim;\n"
                "const constant int64_t* s = x_strides; const constant int* n = x_shape; y[i] += "
                "int(s[1]) + n[2] * 10000;",
           {floats("x", {2, 3, 4})},
           {zeros("y", int32)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i)
               a.out<int32_t>()[i] = 2 * 1000 + 3 * 100 + 12 * 10 + 4 + 3 + 4 + 40000;
           }},
          {"outputs are read back, and are scratch",
           at + "y[i] = x[i]; z[i] = y[i] + 1; for (int k = 0; k < 3; ++k) z[i] = z[i] * y[i];",
           {floats("x")},
           {zeros("y", float32), zeros("z", float32)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i) {
               const float x = a.in()[i];
               a.out(0)[i] = x;
               a.out(1)[i] = ((x + 1) * x) * x * x;
             }
           }},
          {"outputs start with what was there: `init_value`",
           at + "if (i % 3 == 0) y[i] += 1;",
           {},
           {values<float>("y", float32, std::vector<float>(threads, 7.5f))},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; i += 3) a.out()[i] = 8.5f;
           }},
          {"`atomic_outputs`",
           at + "atomic_fetch_add_explicit(&y[i % 7], 1, memory_order_relaxed);",
           {},
           {zeros("y", int32, {7})},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i) ++a.out<int32_t>()[i % 7];
           },
           {100, 1, 1},
           {64, 1, 1},
           {},
           {},
           0,
           true},
          {"template arguments: int, bool, dtype",
           at + "T v = T(x[i]); y[i] = flag ? float(v) * N : 0.0;",
           {floats("x")},
           {zeros("y", float32)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i)
               a.out()[i] = static_cast<float>(static_cast<_Float16>(a.in()[i])) * -5;
           },
           {100, 1, 1},
           {64, 1, 1},
           {},
           {{"T", float16}, {"N", -5}, {"flag", true}}},
          {"attributes are found by their name anywhere in the body",
           "#define POSITION thread_position_in_grid.x\ny[POSITION] = float(POSITION) + 0.5;",
           {},
           {zeros("y", float32)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i) a.out()[i] = static_cast<float>(i) + 0.5f;
           }},
          {"grids count threads, threadgroups are clamped to the grid",
           at + "y[i] = threads_per_threadgroup.x + 1000 * threadgroups_per_grid.x;",
           {},
           {zeros("y", uint32)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i) a.out<uint32_t>()[i] = 100 + 1000;
           },
           {100, 1, 1},
           {1024, 8, 1}},
          {"threadgroups of 1024 threads",
           at + "threadgroup float s[1024]; uint t = thread_index_in_threadgroup; s[t] = x[i];\n"
                "threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = s[1023 - t] + "
                "float(simdgroup_index_in_threadgroup);",
           {floats("x", {2048})},
           {zeros("y", float32, {2048})},
           [](Arrays& a) {
             for (size_t i = 0; i < 2048; ++i) {
               const size_t t = i % 1024;
               a.out()[i] = a.in()[i - t + 1023 - t] + static_cast<float>(t / 32);
             }
           },
           {2048, 1, 1},
           {1024, 1, 1}},
          {"math modes: `safe` by default, `__FAST_MATH__` unset",
           at + "#ifdef __FAST_MATH__\ny[i] = -1;\n#else\ny[i] = x[i] / 3.0 + (x[i] - "
                "x[i]);\n#endif",
           {floats("x")},
           {zeros("y", float32)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i)
               a.out()[i] = a.in()[i] / 3.0f + (a.in()[i] - a.in()[i]);
           }},
          {"math modes: `fast`, `__FAST_MATH__` set",
           at + "#ifdef __FAST_MATH__\ny[i] = exp(x[i]) / 3.0;\n#else\ny[i] = -1;\n#endif",
           {floats("x")},
           {zeros("y", float32)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i)
               a.out()[i] = static_cast<float>(std::exp(static_cast<double>(a.in()[i])) / 3);
           },
           {100, 1, 1},
           {64, 1, 1},
           {},
           {},
           8,
           false,
           msl::MathMode::fast},
          {"inputs and outputs of every dtype",
           at + "uint k = i % 16;\n"
                "b[i] = !flags[k]; c[i] = i8[k] * 2; d[i] = u8[k] + 1; e[i] = i16[k] - 1; f[i] = "
                "u16[k] + 2;\n"
                "g[i] = u32[k] ^ 5; h[i] = i64[k] * 3; l[i] = u64[k] >> 1; m[i] = h16[k] * 2; n[i] "
                "= bf[k] + bfloat(1);",
           {integers("flags", bool_, {16}, 0, 1), integers("i8", int8, {16}, -60, 60),
            integers("u8", uint8, {16}, 0, 255), integers("i16", int16, {16}, -30000, 30000),
            integers("u16", uint16, {16}, 0, 65535), integers("u32", uint32, {16}, 0, 0xFFFFFFFF),
            integers("i64", int64, {16}, -(int64_t{1} << 60), int64_t{1} << 60),
            integers("u64", uint64, {16}, 0, -1), as(float16, floats("h16", {16})),
            as(bfloat16, floats("bf", {16}))},
           {zeros("b", bool_), zeros("c", int8), zeros("d", uint8), zeros("e", int16),
            zeros("f", uint16), zeros("g", uint32), zeros("h", int64), zeros("l", uint64),
            zeros("m", float16), zeros("n", bfloat16)},
           [](Arrays& a) {
             for (size_t i = 0; i < threads; ++i) {
               const size_t k = i % 16;
               a.out<uint8_t>(0)[i] = !a.in<uint8_t>(0)[k];
               a.out<int8_t>(1)[i] = static_cast<int8_t>(a.in<int8_t>(1)[k] * 2);
               a.out<uint8_t>(2)[i] = static_cast<uint8_t>(a.in<uint8_t>(2)[k] + 1);
               a.out<int16_t>(3)[i] = static_cast<int16_t>(a.in<int16_t>(3)[k] - 1);
               a.out<uint16_t>(4)[i] = static_cast<uint16_t>(a.in<uint16_t>(4)[k] + 2);
               a.out<uint32_t>(5)[i] = a.in<uint32_t>(5)[k] ^ 5;
               a.out<int64_t>(6)[i] = a.in<int64_t>(6)[k] * 3;
               a.out<uint64_t>(7)[i] = a.in<uint64_t>(7)[k] >> 1;
               a.out<float16_t>(8)[i] = float16_t(static_cast<float>(a.in<float16_t>(8)[k]) * 2);
               a.out<bfloat16_t>(9)[i] = bfloat16_t(static_cast<float>(a.in<bfloat16_t>(9)[k]) + 1);
             }
           }},
      }};
}

}  // namespace holdfast::jit::testing
