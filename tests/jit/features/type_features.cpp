// Types and conversions.
#include <bit>
#include <cmath>
#include <cstring>

#include <holdfast/types.h>

#include "jit/features/feature.h"

namespace holdfast::jit::testing {
namespace {

const std::string at = "uint i = thread_position_in_grid.x;\n";
using Bits = uint32_t;

template <class T = float, class Value>
std::function<void(Arrays&)> each(Value value) {
  return [value](Arrays& a) {
    for (size_t i = 0; i < threads; ++i) a.out<T>()[i] = static_cast<T>(value(a, i));
  };
}

// y[i] = statement(…) over floats x; value(x, i) in C++.
template <class Value>
Feature row(const char* name, const std::string& body, Value value, std::string header = "") {
  return {name,
          at + body,
          {floats("x", {128})},
          {zeros("y", float32)},
          each([value](Arrays& a, size_t i) { return value(a.in(), i); }),
          {100, 1, 1},
          {64, 1, 1},
          std::move(header)};
}

// The same over 32-bit words.
template <class Value>
Feature words(const char* name, const std::string& body, Value value, std::string header = "") {
  return {name,
          at + body,
          {integers("x", uint32, {512}, 0, 0xFFFFFFFF)},
          {zeros("y", uint32)},
          each<uint32_t>([value](Arrays& a, size_t i) { return value(a.in<uint32_t>(), i); }),
          {100, 1, 1},
          {64, 1, 1},
          std::move(header)};
}

}  // namespace

Section type_features() {
  std::vector<Feature> rows = {
      row("`device T*` locals: arithmetic, ternaries, comparisons",
          "const device float* p = x + i; const device float* q = i & 1 ? p : x; y[i] = *p + q[1] "
          "+ float(p - x) + (p > q ? 1 : 0);",
          [](const float* x, size_t i) {
            const float* q = i & 1 ? x + i : x;
            return x[i] + q[1] + static_cast<float>(i) + (x + i > q ? 1 : 0);
          }),
      words(
          "`(const device uint4*)(p + i)`, uchar*, ushort*, half4*, long* casts",
          "const device uint4* v = (const device uint4*)(x + 4 * i); uint4 w = v[0]; const device "
          "uchar* b = (const device uchar*)x;\n"
          "const device ushort* s = (const device ushort*)(x + i); const device int64_t* l = "
          "(const device int64_t*)x;\n"
          "half4 h = *(const device half4*)(x + 2 * i); ushort hx = as_type<ushort>(h.z);\n"
          "y[i] = w.x + 3 * w.y + 5 * w.w + 7 * b[i] + 11 * s[1] + 13 * uint(l[i / 2] >> 40) + hx;",
          [](const uint32_t* x, size_t i) {
            auto* bytes = reinterpret_cast<const uint8_t*>(x);
            int64_t l;
            std::memcpy(&l, bytes + 8 * (i / 2), 8);
            uint16_t h;
            std::memcpy(&h, bytes + 8 * i + 4, 2);
            return x[4 * i] + 3 * x[4 * i + 1] + 5 * x[4 * i + 3] + 7u * bytes[i] +
                   11u * (x[i] >> 16) + 13u * static_cast<uint32_t>(l >> 40) + h;
          }),
      row("casts that drop `const`: `(device T*)x`",
          "device float* p = (device float*)x; y[i] = p[i] * 2;",
          [](const float* x, size_t i) { return x[i] * 2; }),
      {"casts between half and bfloat go through float, in templates and macros too",
       at + "half a = half(b[i]); bfloat c = (bfloat)h[i]; auto d = static_cast<bfloat16_t>(a * "
            "h[i]);\n"
            "half e = half(bfloat(h[i] + 1.5h)); half f = to<half>(b[i]) + HALVED(c) + "
            "half(1.5bf);\n"
            "y[i] = float(a) + float(c) + float(d) + float(e) + float(f) + float(to<long>(n[i]) - "
            "9007199254740990);",
       {as(float16, floats("h")), as(bfloat16, floats("b")),
        integers("n", int64, {threads}, 9007199254740993, 9007199254740999)},
       {zeros("y", float32)},
       [](Arrays& arrays) {
         auto half = [](float x) { return static_cast<float>(static_cast<_Float16>(x)); };
         auto bfloat = [](float x) { return static_cast<float>(bfloat16_t(x)); };
         for (size_t i = 0; i < threads; ++i) {
           const float h = static_cast<float>(arrays.in<_Float16>(0)[i]);
           const float b = static_cast<float>(arrays.in<bfloat16_t>(1)[i]);
           const float a = half(b), c = bfloat(h), d = bfloat(half(a * h));
           const float e = half(bfloat(half(h + 1.5f)));
           const float f = half(half(half(b) + half(-c)) + 1.5f);
           arrays.out()[i] =
               a + c + d + e + f + static_cast<float>(arrays.in<int64_t>(2)[i] - 9007199254740990);
         }
       },
       {100, 1, 1},
       {64, 1, 1},
       "template <class T, class U> T to(U x) { return T(x); }\n#define HALVED(x) half(-x)"},
      words("reinterpret_cast",
            "y[i] = *reinterpret_cast<const device uint*>(reinterpret_cast<const device uchar*>(x) "
            "+ 4 * i) + 1;",
            [](const uint32_t* x, size_t i) { return x[i] + 1; }),
      {"`constant T*`, `constant T&`",
       at + "y[i] = pick(c, i) + first(c[1]);",
       {floats("c", {5})},
       {zeros("y", float32)},
       each([](Arrays& a, size_t i) { return a.in()[i % 5] + a.in()[1]; }),
       {100, 1, 1},
       {64, 1, 1},
       "float pick(constant float* c, uint i) { return c[i % 5]; } float first(constant float& c) "
       "{ return c; }"},
      row(
          "program-scope tables: `constant T table[]`",
          "y[i] = nf4[i % 4] * scale + float(order[i % 3]) + pairs[i & 1][1];",
          [](const float*, size_t i) {
            const float nf4[] = {-1.0f, -0.5f, 0.25f, 1e-3f};
            const int order[] = {2, 0, 1};
            const float pairs[][2] = {{1, 2}, {3, 4}};
            return nf4[i % 4] * 0.75f + static_cast<float>(order[i % 3]) + pairs[i & 1][1];
          },
          "constant float nf4[4] = {-1.0, -0.5, 0.25, 1e-3};\nconstexpr constant uchar order[3] = "
          "{2, 0, 1};\n"
          "static constant constexpr float scale = 0.75;\nconstant float pairs[2][2] = {{1, 2}, "
          "{3, 4}};"),
      row(
          "`thread T&`, `thread T v[N]`, member functions marked `thread`",
          "thread float q[4]; for (int k = 0; k < 4; ++k) q[k] = x[i + k]; Sum s; s.take(q); "
          "bump(s.total); y[i] = s.get();",
          [](const float* x, size_t i) { return x[i] + x[i + 1] + x[i + 2] + x[i + 3] + 1; },
          "struct Sum { float total = 0; void take(const thread float* v) thread { for (int k = 0; "
          "k < 4; ++k) total += v[k]; } float get() const thread { return total; } };\n"
          "void bump(thread float& v) { v += 1; }"),
      words("as_type<T> between float, uint, half, bfloat, float4, char4, half2, bfloat4",
            "uint u = x[i]; float f = as_type<float>((u & 0x007FFFFF) | 0x3F800000); char4 c = "
            "as_type<char4>(int(u)); half2 h = as_type<half2>((u & 0x03FF03FF) | 0x3C003C00);\n"
            "bfloat b = as_type<bfloat>(ushort((u & 0x7F) | 0x3F80)); bfloat4 b4 = "
            "as_type<bfloat4>(uint2(0x40003F80u, u & 0x3FFF3FFF)); uint4 f4 = "
            "as_type<uint4>(float4(f, 1, 2, 3));\n"
            "y[i] = as_type<uint>(f) + uint(int(c.x) + 256 * int(c.w)) + as_type<ushort>(h.y) + "
            "uint(float(b) * 128) + uint(as_type<ushort>(b4.y)) + f4.z + as_type<uint>(h);",
            [](const uint32_t* x, size_t i) {
              const uint32_t u = x[i];
              const uint32_t f = (u & 0x007FFFFF) | 0x3F800000, h = (u & 0x03FF03FF) | 0x3C003C00;
              const uint32_t b = (u & 0x7F) | 0x3F80;
              const float bf = std::bit_cast<float>(b << 16);
              return f +
                     static_cast<uint32_t>(static_cast<int8_t>(u) +
                                           256 * static_cast<int8_t>(u >> 24)) +
                     (h >> 16) + static_cast<uint32_t>(bf * 128) + 0x4000u +
                     std::bit_cast<uint32_t>(2.0f) + h;
            }),
      row("bfloat: rounding to nearest even, arithmetic in bfloat",
          "bfloat b = bfloat(x[i]); bfloat c = b * b + bfloat(x[i + 1]); y[i] = float(c);",
          [](const float* x, size_t i) {
            const float b = bfloat16_t(x[i]);
            return static_cast<float>(bfloat16_t(static_cast<float>(bfloat16_t(b * b)) +
                                                 static_cast<float>(bfloat16_t(x[i + 1]))));
          }),
      row("bfloat16_t, `c ? bfloat : float`",
          "bfloat16_t b = static_cast<bfloat16_t>(x[i]); y[i] = i & 1 ? b : -1e30f;",
          [](const float* x, size_t i) {
            return i & 1 ? static_cast<float>(bfloat16_t(x[i])) : -1e30f;
          }),
      row("half: rounding to nearest even, arithmetic in half",
          "half h = half(x[i]); half c = h * h + half(x[i + 1]); y[i] = float(c);",
          [](const float* x, size_t i) {
            const _Float16 h = static_cast<_Float16>(x[i]);
            const _Float16 square =
                static_cast<_Float16>(static_cast<float>(h) * static_cast<float>(h));
            return static_cast<float>(static_cast<_Float16>(
                static_cast<float>(square) + static_cast<float>(static_cast<_Float16>(x[i + 1]))));
          }),
      row("float16_t", "float16_t h = float16_t(x[i]); y[i] = h;",
          [](const float* x, size_t i) { return static_cast<float>(static_cast<_Float16>(x[i])); }),
      {"complex64_t: inputs, `.real`, `.imag`, arithmetic",
       at + "complex64_t a = z[i], b = z[i + 1]; complex64_t c = a * b + a; y[2 * i] = c.real; y[2 "
            "* i + 1] = c.imag;",
       {[] {
         Argument z = floats("z", {202});
         z.dtype = complex64;
         z.shape = {101};
         return z;
       }()},
       {zeros("y", float32, {200})},
       [](Arrays& a) {
         for (size_t i = 0; i < threads; ++i) {
           const float* z = a.in() + 2 * i;
           a.out()[2 * i] = z[0] * z[2] - z[1] * z[3] + z[0];
           a.out()[2 * i + 1] = z[0] * z[3] + z[1] * z[2] + z[1];
         }
       }},
      words(
          "64-bit integers: products, shifts, comparisons",
          "ulong u = ulong(x[i]) * x[i + 1]; long l = -long(x[i]) * 77; int64_t m = l >> 3; "
          "uint64_t w = u << 5;\n"
          "y[i] = uint(u >> 32) + uint(m) + uint(w >> 40) + (l < m ? 1 : 0) + uint(u % 1000003ul);",
          [](const uint32_t* x, size_t i) {
            const uint64_t u = uint64_t{x[i]} * x[i + 1];
            const int64_t l = -int64_t{x[i]} * 77, m = l >> 3;
            return static_cast<uint32_t>(u >> 32) + static_cast<uint32_t>(m) +
                   static_cast<uint32_t>((u << 5) >> 40) + (l < m ? 1 : 0) +
                   static_cast<uint32_t>(u % 1000003);
          }),
      words("size_t, ptrdiff_t",
            "size_t k = size_t(i) * 3; ptrdiff_t d = ptrdiff_t(k) - 100; y[i] = uint(k) + uint(d < "
            "0) + uint(sizeof(size_t));",
            [](const uint32_t*, size_t i) {
              return static_cast<uint32_t>(3 * i + (3 * i < 100 ? 1 : 0) + 8);
            }),
      words("8-bit integers: `(float)(char)(x & 0xFF)` is signed",
            "char c = (char)(x[i] & 0xFF); uchar u = uchar(x[i]); int8_t d = int8_t(c + 100); y[i] "
            "= as_type<uint>((float)c + (float)(char)((x[i] >> 8) & 0xFF)) + u + uint(d);",
            [](const uint32_t* x, size_t i) {
              const auto c = static_cast<int8_t>(x[i]);
              return std::bit_cast<uint32_t>(static_cast<float>(c) +
                                             static_cast<float>(static_cast<int8_t>(x[i] >> 8))) +
                     (x[i] & 0xFF) + static_cast<uint32_t>(static_cast<int8_t>(c + 100));
            }),
      words("16-bit integers",
            "short s = short(x[i]); ushort u = ushort(x[i] >> 16); s += 5; u = u * 3 + 1; y[i] = "
            "uint(s) + u + uint(short(s * s));",
            [](const uint32_t* x, size_t i) {
              auto s = static_cast<int16_t>(x[i]);
              auto u = static_cast<uint16_t>(x[i] >> 16);
              s = static_cast<int16_t>(s + 5);
              u = static_cast<uint16_t>(u * 3 + 1);
              return static_cast<uint32_t>(s) + u +
                     static_cast<uint32_t>(static_cast<int16_t>(s * s));
            }),
      words(
          "uint2, uint3, uint4, ushort4, short2, int2, int3, uchar4, char4, ulong2",
          "uint3 a = uint3(x[i], x[i + 1], 7); uint2 b = a.xy + 1; uint4 c = uint4(a, 9) * 3u; "
          "ushort4 d = ushort4(c); short2 e = short2(d.xy); int2 f = int2(e) - 5; int3 g(f, 3);\n"
          "uchar4 h = uchar4(x[i]); char4 k = char4(h); ulong2 l = ulong2(b) * 5ul; y[i] = a.z + "
          "b.y + c.w + d.x + uint(e.y) + uint(f.x) + uint(g.z) + h.z + uint(k.w) + uint(l.x >> 3);",
          [](const uint32_t* x, size_t i) {
            const uint32_t a = x[i], b = x[i + 1];
            auto d = [](uint32_t v) { return static_cast<uint16_t>(v); };
            auto e = [&](uint32_t v) { return static_cast<int16_t>(d(v)); };
            return 7 + (b + 1) + 27 + d(a * 3) + static_cast<uint32_t>(e(b * 3)) +
                   static_cast<uint32_t>(e(a * 3) - 5) + 3 + (a & 0xFF) +
                   static_cast<uint32_t>(static_cast<int8_t>(a)) +
                   static_cast<uint32_t>((uint64_t{a + 1} * 5) >> 3);
          }),
      row("float2, float3, float4: constructors, operators",
          "float2 a(x[i], 2); float3 b(a, x[i + 1]); float4 c = float4(b, 1) * 0.5 + float4(x[i]); "
          "c -= float4(1, 2, 3, 4); y[i] = c.x + c.y * c.z - c.w;",
          [](const float* x, size_t i) {
            const float c[] = {x[i] * 0.5f + x[i] - 1, 2 * 0.5f + x[i] - 2,
                               x[i + 1] * 0.5f + x[i] - 3, 1 * 0.5f + x[i] - 4};
            return c[0] + c[1] * c[2] - c[3];
          }),
      row("half2, half4, bfloat4, bfloat2",
          "half2 h = half2(x[i], x[i + 1]); h = h + half2(1); half4 k(h, h); bfloat4 b = "
          "bfloat4(x[i]); bfloat2 c = b.xy; y[i] = float(k.w) + float(c.y);",
          [](const float* x, size_t i) {
            const auto h =
                static_cast<_Float16>(static_cast<float>(static_cast<_Float16>(x[i + 1])) + 1);
            return static_cast<float>(h) + static_cast<float>(bfloat16_t(x[i]));
          }),
      {"vec<T, N> in templates",
       at + "using T4 = vec<T, 4>; T4 v = T4(T(x[i]), T(x[i + 1]), 1, 2); y[i] = float(total(v)) + "
            "float(((thread T*)&v)[3]);",
       {floats("x", {128})},
       {zeros("y", float32)},
       each([](Arrays& a, size_t i) { return a.in()[i] + a.in()[i + 1] + 1 + 2 + 2; }),
       {100, 1, 1},
       {64, 1, 1},
       "template <typename U, int N> U total(vec<U, N> v) { U s = 0; for (int k = 0; k < N; ++k) s "
       "+= v[k]; return s; }",
       {{"T", float32}}},
      row("swizzles: read, written, `.rgba`",
          "float4 v(x[i], x[i + 1], 3, 4); float3 w = v.zyx; v.xw = w.yz; v.yz += v.rg; y[i] = v.x "
          "+ 2 * v.y + 3 * v.b + 5 * v.a;",
          [](const float* x, size_t i) {
            const float a = x[i], b = x[i + 1];
            const float vx = b, vw = a, vy = b + vx, vz = 3 + b;
            return vx + 2 * vy + 3 * vz + 5 * vw;
          }),
      row("literals without a suffix are float: `0.1`, `1e-6`, `-1e30`",
          "float a = 0.1 * x[i]; y[i] = a + 1e-6 + (x[i] > 5.0 ? -1e30 : .3) + sizeof(0.5);",
          [](const float* x, size_t i) { return 0.1f * x[i] + 1e-6f + 0.3f + 4; }),
      row("`1.0h`, `0.5bf`",
          "half h = half(x[i]) * 1.5h; y[i] = float(h) + float(0.25bf) + sizeof(1.0h);",
          [](const float* x, size_t i) {
            const auto h =
                static_cast<_Float16>(static_cast<float>(static_cast<_Float16>(x[i])) * 1.5f);
            return static_cast<float>(h) + 0.25f + 2;
          }),
      {"packed_float3, packed_half4: memory without gaps",
       at + "packed_float3 p = ((const device packed_float3*)x)[i]; float3 q = p; q += "
            "float3(p.zyx); y[i] = q.x * q.y + float(sizeof(packed_float3));",
       {floats("x", {300})},
       {zeros("y", float32)},
       each([](Arrays& a, size_t i) {
         const float* p = a.in() + 3 * i;
         return (p[0] + p[2]) * (p[1] + p[1]) + 12;
       })},
      row("matrices: float2x2, float3x3, float4x4",
          "float3x3 m(float3(x[i], 0, 1), float3(2, x[i + 1], 0), float3(0, 0, 3)); float3 v = m * "
          "float3(1, 2, 3); y[i] = v.x + v.y * v.z + transpose(m)[0].y + determinant(float2x2(1, "
          "2, 3, 4));",
          [](const float* x, size_t i) {
            const float vx = x[i] * 1 + 2 * 2 + 0 * 3, vy = 0 * 1 + x[i + 1] * 2 + 0 * 3,
                        vz = 1 * 1 + 0 * 2 + 3 * 3;
            return vx + vy * vz + 2 + -2;
          }),
      row("structs with alignment as in Metal: float3 has 16 bytes",
          "struct P { float3 position; float radius; }; P p; p.position = float3(x[i]); p.radius = "
          "2; y[i] = p.position.y + p.radius + sizeof(P);",
          [](const float* x, size_t i) { return x[i] + 2 + 32; }),
  };
  return {"Types and conversions", std::move(rows)};
}

}  // namespace holdfast::jit::testing
