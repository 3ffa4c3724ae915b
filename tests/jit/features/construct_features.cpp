// C++ as kernels write it.
#include <bit>

#include "jit/features/feature.h"

namespace holdfast::jit::testing {
namespace {

const std::string at = "uint i = thread_position_in_grid.x;\n";

// y[i] from floats x; N = 4, T = float as template arguments.
template <class Value>
Feature row(const char* name, const std::string& body, Value value, std::string header = "") {
  return {name,
          at + body,
          {floats("x", {256}), scalar("n", int32, 3)},
          {zeros("y", float32)},
          [value](Arrays& a) {
            for (size_t i = 0; i < threads; ++i) a.out()[i] = value(a.in() + i, i);
          },
          {100, 1, 1},
          {64, 1, 1},
          std::move(header),
          {{"T", float32}, {"N", 4}}};
}

}  // namespace

Section construct_features() {
  return {
      "C++",
      {
          row("`constexpr` locals from template arguments",
              "constexpr int M = N * 2; float q[M]; for (int k = 0; k < M; ++k) q[k] = x[i + k]; "
              "y[i] = q[M - 1] - q[0];",
              [](const float* x, size_t) { return x[7] - x[0]; }),
          row("`auto`, also for pointers",
              "auto p = x + i; auto v = p[1]; auto q = y + i; *q = v * 2;",
              [](const float* x, size_t) { return x[1] * 2; }),
          row("static_cast, C casts, functional casts",
              "y[i] = static_cast<float>(int(x[i] * 10)) + (float)(uint)(abs(x[i]) * 100) + T(n);",
              [](const float* x, size_t) {
                return static_cast<float>(static_cast<int>(x[0] * 10)) +
                       static_cast<float>(static_cast<unsigned>(std::abs(x[0]) * 100)) + 3;
              }),
          row(
              "template functions and structs in the header",
              "Box<T, N> b; for (int k = 0; k < N; ++k) b.v[k] = x[i + k]; y[i] = twice(b.sum()) + "
              "pack_sum(x[i], 2.0f, 3);",
              [](const float* x, size_t) {
                return (0 + x[0] + x[1] + x[2] + x[3]) * 2 + (x[0] + (2.0f + 3));
              },
              "template <typename U, int K> struct Box { U v[K]; U sum() const thread { U s = 0; "
              "for (int i = 0; i < K; ++i) s += v[i]; return s; } };\n"
              "template <typename U> METAL_FUNC U twice(U u) { return u * 2; }\n"
              "template <typename... A> float pack_sum(A... a) { return (a + ...); "
              "}"),
          row(
              "`#define`, `#if`, `#undef` in header and body",
              "#define READ(k) float(x[i + k])\n#if defined(__METAL__) && WIDTH == 2\ny[i] = "
              "READ(1) * WIDTH;\n#else\ny[i] = 0;\n#endif\n#undef READ",
              [](const float* x, size_t) { return x[1] * 2; }, "#define WIDTH 2"),
          row("while and do loops, break, continue",
              "float s = 0; int k = 0; while (k < int(i % 7)) { if (++k == 3) continue; s += x[i + "
              "k]; if (s > 4) break; } do { s *= 0.5; } while (s > 1); y[i] = s;",
              [](const float* x, size_t i) {
                float s = 0;
                int k = 0;
                while (k < static_cast<int>(i % 7)) {
                  if (++k == 3) continue;
                  s += x[k];
                  if (s > 4) break;
                }
                do {
                  s *= 0.5f;
                } while (s > 1);
                return s;
              }),
          row("`using` and `typedef` inside the body",
              "typedef float U; using V = vec<U, 4>; V v(x[i], 1, 2, 3); y[i] = v.x + v.w;",
              [](const float* x, size_t) { return x[0] + 3; }),
          row("`#pragma unroll`, `#pragma clang loop unroll(full)`, `_Pragma(\"unroll\")`",
              "float s = 0;\n#pragma unroll\nfor (int k = 0; k < N; ++k) s += x[i + k];\n#pragma "
              "clang loop unroll(full)\nfor (int k = 0; k < 3; ++k) s *= 1.5;\n_Pragma(\"unroll\") "
              "for (int k = 0; k < 2; ++k) s += 1;\n#pragma unroll(4)\nfor (int k = 0; k < n; ++k) "
              "s -= x[i];\ny[i] = s;",
              [](const float* x, size_t) {
                float s = 0;
                for (int k = 0; k < 4; ++k) s += x[k];
                for (int k = 0; k < 3; ++k) s *= 1.5f;
                s += 1;
                s += 1;
                for (int k = 0; k < 3; ++k) s -= x[0];
                return s;
              }),
          row(
              "`#include <metal_stdlib>`, <metal_simdgroup>, <metal_simdgroup_matrix>, "
              "<metal_atomic>, <metal_math>; `using namespace metal;`",
              "y[i] = metal::max(x[i], 0.5f) + max(x[i], 0.25f);",
              [](const float* x, size_t) { return std::max(x[0], 0.5f) + std::max(x[0], 0.25f); },
              "#include <metal_stdlib>\n#include <metal_simdgroup>\n#include "
              "<metal_simdgroup_matrix>\n#include <metal_atomic>\n#include <metal_math>\nusing "
              "namespace metal;"),
          row(
              "`if constexpr`",
              "if constexpr (N > 2) { y[i] = x[i] + N; } else { y[i] = no_such_function(x[i], "
              "T()); }",
              [](const float* x, size_t) { return x[0] + 4; },
              "template <typename U> U no_such_function(U, int) = delete; float "
              "no_such_function(float a, float b) { return a - b; }"),
          row("static_assert", "static_assert(N == 4 && sizeof(T) == 4, \"float\"); y[i] = x[i];",
              [](const float* x, size_t) { return x[0]; }),
          row(
              "structs, unions, bit fields, enums",
              "Bits b; b.f = x[i]; Nibbles m; m.low = b.u & 15; m.high = b.b[3] >> 4; y[i] = "
              "float(m.low + 16 * m.high) + (b.u & mask ? green : red);",
              [](const float* x, size_t) {
                const auto u = std::bit_cast<uint32_t>(x[0]);
                return static_cast<float>((u & 15) + 16 * (u >> 28)) + (u & 256 ? 7.0f : 0.0f);
              },
              "union Bits { float f; uint u; uchar b[4]; };\nstruct Nibbles { uchar low : 4; uchar "
              "high : 4; };\nenum Colour { red, green = 7 };\nenum { mask = 256 };"),
          row("switch, with fall-through",
              "float r = 0; switch (i % 5) { case 0: r = x[i]; break; case 1: r = 1; case 2: r += "
              "2.5; break; case 4: return; default: r = -x[i]; } y[i] = r;",
              [](const float* x, size_t i) {
                switch (i % 5) {
                  case 0:
                    return x[0];
                  case 1:
                    return 3.5f;
                  case 2:
                    return 2.5f;
                  case 4:
                    return 0.0f;
                  default:
                    return -x[0];
                }
              }),
          row("argument pointers advance: `y += …`",
              "x += i; y += i; for (int k = 0; k < 3; ++k) { *y += *x; ++x; }",
              [](const float* x, size_t) { return 0 + x[0] + x[1] + x[2]; }),
          row("arrays of device pointers",
              "const device float* ps[3] = {x, x + 8, x + 16}; float s = 0; for (int k = 0; k < 3; "
              "++k) { s += ps[k][i]; ps[k] += 1; } y[i] = s + *ps[(i + n) % 3];",
              [](const float* x, size_t i) {
                return 0 + x[0] + x[8] + x[16] + (x - i)[8 * ((i + 3) % 3) + 1];
              }),
          row("lambdas", "auto f = [&](int k) { return x[i + k] * 2.0; }; y[i] = f(1) + f(2);",
              [](const float* x, size_t) { return x[1] * 2 + x[2] * 2; }),
          row("goto", "int k = 0; again: k += 3; if (k < int(i % 11)) goto again; y[i] = float(k);",
              [](const float*, size_t i) {
                int k = 0;
                do k += 3;
                while (k < static_cast<int>(i % 11));
                return static_cast<float>(k);
              }),
          row(
              "operators of one's own, references, default arguments, namespaces",
              "geo::Pair a{x[i], 1}, b{2, x[i + 1]}; geo::Pair c = a + b; geo::scale(c); y[i] = "
              "c.p * c.q;",
              [](const float* x, size_t) { return (x[0] + 2) * 3 * ((1 + x[1]) * 3); },
              "namespace geo { struct Pair { float p, q; }; Pair operator+(Pair a, Pair b) { "
              "return {a.p + b.p, a.q + b.q}; } void scale(thread Pair& a, float by = 3) { a.p *= "
              "by; a.q *= by; } }"),
          row("private arrays with an index known at run time",
              "float q[8]; for (int k = 0; k < 8; ++k) q[k] = x[i + k]; q[(i * 3) % 8] = 9; y[i] = "
              "q[i % 8] + q[(i + 5) % 8];",
              [](const float* x, size_t i) {
                float q[8];
                for (int k = 0; k < 8; ++k) q[k] = x[k];
                q[(i * 3) % 8] = 9;
                return q[i % 8] + q[(i + 5) % 8];
              }),
          row("divergent loops: another number of rounds in each thread",
              "float a = x[i]; int k = 0; while (k < 200 && a * a < 50) { a = a * a + 0.3; ++k; } "
              "y[i] = a + float(k);",
              [](const float* x, size_t) {
                float a = x[0];
                int k = 0;
                while (k < 200 && a * a < 50) {
                  a = a * a + 0.3f;
                  ++k;
                }
                return a + static_cast<float>(k);
              }),
      }};
}

}  // namespace holdfast::jit::testing
