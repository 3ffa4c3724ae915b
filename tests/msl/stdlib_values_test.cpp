// What the functions of our metal_stdlib give: kernels that check themselves, on each lowering. A
// line of a kernel that does not hold is reported with its text.
#include <doctest/doctest.h>

#include <sstream>

#include "msl/stdlib_testing.h"

using namespace holdfast::msl;
using namespace holdfast::msl::testing;

namespace {

const std::string declarations = R"(
#define EXPECT(...) if (!(__VA_ARGS__)) { failures[0]++; failures[failures[0] & 255] = __LINE__; }
template <class A, class B> constexpr bool same = is_same_v<A, B>;
template <class T, int N> T first(vec<T, N> v) { return v.x; }
template <typename P> struct space_of { static constexpr int value = 0; };
template <typename T> struct space_of<device T*> { static constexpr int value = 1; };
template <typename T> struct space_of<threadgroup T*> { static constexpr int value = 3; };
template <typename T> struct space_of<constant T*> { static constexpr int value = 5; };
constant float table[4] = {1, 2, 3, 4};
struct P { float3 position; float radius; };
enum Kind { one, two };
METAL_FUNC float helper(thread float4& v, const thread float* a) { v.x += a[0]; return v.x; }
kernel void check(device int* failures [[buffer(0)]], const device float* in [[buffer(1)]]) {
#line 1
)";

// `body` on one thread; in[k] is k, and cannot be known when it is compiled.
void check_lines(const std::string& body) {
  std::vector<std::string> lines;
  std::istringstream stream(body);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  const KernelSource source = stdlib_source(declarations + body + "\n}\n");
  REQUIRE(problem_of(source) == "");
  for (auto lowering : lowerings()) {
    int failures[256] = {};
    float in[16];
    for (int k = 0; k < 16; ++k) in[k] = static_cast<float>(k);
    run_stdlib(source, lowering, {failures, in}, 1);
    for (int i = 1; i <= std::min(failures[0], 255); ++i) {
      FAIL_CHECK(lines.at(static_cast<size_t>(failures[i] - 1)));
    }
    CHECK(failures[0] == 0);
  }
}

TEST_CASE("metal_stdlib: the types and their operators") {
  check_lines(R"(// sizes
EXPECT(sizeof(float3) == 16)
EXPECT(sizeof(half3) == 8)
EXPECT(sizeof(packed_float3) == 12)
EXPECT(alignof(float4) == 16)
EXPECT(sizeof(bool4) == 4)
EXPECT(alignof(packed_half4) == 2)
EXPECT(sizeof(P) == 32)
EXPECT(sizeof(float3x3) == 48)
EXPECT(sizeof(float4x4) == 64)
EXPECT(sizeof(half2x2) == 8)
// constructors
float2 a2(1, 2);
float3 a3(a2, 3);
float3 b3(0, a2);
float4 a4(a3, 4), b4(a2, a2), c4(1, a2, 3), d4(1, 2, a2), e4(5, b3), g4(a2, 8, 9);
EXPECT(a3.z == 3)
EXPECT(b3.x == 0)
EXPECT(b3.y == 1)
EXPECT(b3.z == 2)
EXPECT(a4.w == 4)
EXPECT(b4.z == 1)
EXPECT(c4.y == 1)
EXPECT(c4.z == 2)
EXPECT(c4.w == 3)
EXPECT(d4.z == 1)
EXPECT(e4.w == 2)
EXPECT(g4.w == 9)
float4 z = 0;
float4 o = float4(1);
float4 list = {1, 2, 3, 4};
float4 braces{1, 2, 3, 4};
EXPECT(all(z == float4(0.0f)))
EXPECT(all(o == 1))
EXPECT(all(list == braces))
EXPECT(all(int4(float4(1.7f, -1.7f, 2, 3)) == int4(1, -1, 2, 3)))
EXPECT(all(half4(bfloat4(1, 2, 3, 4)) == half4(1, 2, 3, 4)))
// swizzles
float4 s(1, 2, 3, 4);
EXPECT(all(s.wzyx == float4(4, 3, 2, 1)))
EXPECT(all(s.xx == float2(1)))
EXPECT(all(s.rgb == s.xyz))
EXPECT(s.a == 4)
EXPECT(all(s.bgra == float4(3, 2, 1, 4)))
s.xz = float2(7, 8);
EXPECT(all(s == float4(7, 2, 8, 4)))
s.yx += 1;
EXPECT(all(s == float4(8, 3, 8, 4)))
s.rgba = s.abgr;
EXPECT(all(s == float4(4, 8, 3, 8)))
s.w = 1;
s[1] = 5;
s.g *= 2;
EXPECT(all(s == float4(4, 10, 3, 1)))
s.xyz = s.zxy;
EXPECT(all(s == float4(3, 4, 10, 1)))
s.zyx *= 2.0f;
EXPECT(all(s == float4(6, 8, 20, 1)))
// operators
int3 i3(7, -8, 9);
EXPECT(all(i3 / 2 == int3(3, -4, 4)))
EXPECT(all(i3 % 4 == int3(3, 0, 1)))
EXPECT(all(-i3 == int3(-7, 8, -9)))
EXPECT(all((i3 & 3) == int3(3, 0, 1)))
EXPECT(all((i3 << 1) == int3(14, -16, 18)))
EXPECT(all(~i3 == int3(-8, 7, -10)))
uint2 u2 = uint2(1, 2) << uint2(3, 4);
EXPECT(all(u2 == uint2(8, 32)))
EXPECT(all((1u << uint2(1, 2)) == uint2(2, 4)))
EXPECT(all((float3(1, 2, 3) < 2) == bool3(true, false, false)))
EXPECT(any(i3 < 0))
EXPECT(!all(i3 < 0))
EXPECT(all(!(i3 < 0) == bool3(true, false, true)))
EXPECT(all(2 * a2 - 1 == float2(1, 3)))
EXPECT(all(1.0f / a2 == float2(1, 0.5f)))
half4 h4 = half4(1, 2, 3, 4) * 0.5h;
EXPECT(all(h4 == half4(0.5h, 1, 1.5h, 2)))
h4 *= 2;
h4 += h4;
EXPECT(h4.w == 8)
char4 ch = char4(100) + char4(100);
EXPECT(ch.x == -56)
a2++;
++a2;
EXPECT(a2.x == 3)
EXPECT((a2--).x == 3)
EXPECT(a2.x == 2))");
}

TEST_CASE("metal_stdlib: the rules between scalars, and functions per component") {
  check_lines(R"(// scalar rules
half h = 1;
bfloat b = 2;
auto r1 = h + 1;
auto r2 = h * 2.0f;
auto r3 = b * 2.0f;
auto r4 = 1 / h;
auto r5 = b + 1;
EXPECT(same<decltype(r1), half>)
EXPECT(same<decltype(r2), float>)
EXPECT(same<decltype(r3), float>)
EXPECT(same<decltype(r4), half>)
EXPECT(same<decltype(r5), bfloat>)
EXPECT(same<decltype(exp(h)), half>)
EXPECT(same<decltype(exp(b)), bfloat>)
EXPECT(same<decltype(exp(1.0f)), float>)
EXPECT(same<decltype(exp(2)), float>)
EXPECT(same<decltype(abs(h)), half>)
EXPECT(same<decltype(max(h, h)), half>)
EXPECT(same<decltype(max(h, 1.0f)), float>)
EXPECT(same<decltype(abs(-3)), int>)
EXPECT(max(1.5f, 0) == 1.5f)
EXPECT(max(0, int(2.5f)) == 2)
EXPECT(min(3, 4u) == 3)
EXPECT(max(-1.0f, NAN) == -1.0f)
EXPECT(max(NAN, -1.0f) == -1.0f)
EXPECT(min(-INFINITY, 3.0f) == -INFINITY)
EXPECT(max(b, b) == 2.0f)
EXPECT(metal::max(h, half(0)) == 1)
EXPECT(fmax(1.0f, 2.0f) == 2)
EXPECT(precise::max(1.0f, 3.0f) == 3)
EXPECT(fast::min(1.0f, 3.0f) == 1)
EXPECT(max3(1, 5, 3) == 5)
EXPECT(median3(5, 1, 3) == 3)
EXPECT(min3(2.0f, 1.0f, 3.0f) == 1)
EXPECT(clamp(5, 0, 3) == 3)
EXPECT(clamp(-1.0f, 0.0f, 1.0f) == 0)
EXPECT(all(clamp(float3(-1, 0.5f, 2), 0, 1) == float3(0, 0.5f, 1)))
EXPECT(saturate(2.0f) == 1)
EXPECT(clamp(half(3), half(0), half(1)) == 1)
EXPECT(all(clamp(int2(5, -5), int2(0), int2(2)) == int2(2, 0)))
EXPECT(mix(1.0f, 3.0f, 0.5f) == 2)
EXPECT(all(mix(float2(0), float2(2, 4), 0.5f) == float2(1, 2)))
EXPECT(all(mix(float2(0), float2(2, 4), float2(0, 1)) == float2(0, 4)))
EXPECT(step(1.0f, 2.0f) == 1)
EXPECT(smoothstep(0.0f, 1.0f, 0.5f) == 0.5f)
EXPECT(sign(-2.0f) == -1)
EXPECT(sign(0.0f) == 0)
EXPECT(all(step(0.5f, float2(0, 1)) == float2(0, 1)))
EXPECT(select(1, 2, true) == 2)
EXPECT(select(1.0f, 2.0f, false) == 1)
EXPECT(all(select(float2(1), float2(2), bool2(true, false)) == float2(2, 1)))
EXPECT(all(select(int2(1), int2(2), int2(-1, 0)) == int2(2, 1)))
// math on vectors
EXPECT(all(floor(float2(1.5f, -1.5f)) == float2(1, -2)))
EXPECT(all(abs(int2(-1, 2)) == int2(1, 2)))
EXPECT(all(fma(float2(2), float2(3), float2(4)) == 10))
EXPECT(all(pow(float2(2, 3), 2) == float2(4, 9)))
EXPECT(rint(2.5f) == 2)
EXPECT(round(2.5f) == 3)
EXPECT(trunc(-1.7f) == -1)
EXPECT(fract(1.25f) == 0.25f)
EXPECT(all(sqrt(float2(4, 9)) == float2(2, 3)))
EXPECT(rsqrt(4.0f) == 0.5f)
EXPECT(all(ldexp(float2(1, 2), int2(1, 2)) == float2(2, 8)))
EXPECT(ldexp(half(1), 3) == 8)
float whole;
EXPECT(modf(2.25f, whole) == 0.25f)
EXPECT(whole == 2)
int e;
EXPECT(frexp(8.0f, e) == 0.5f)
EXPECT(e == 4)
float cosine;
EXPECT(sincos(0.0f, cosine) == 0)
EXPECT(cosine == 1)
EXPECT(fabs(-2.0f) == 2)
EXPECT(copysign(2.0f, -1.0f) == -2)
EXPECT(fmod(7.5f, 2.0f) == 1.5f)
// relational
EXPECT(isnan(NAN))
EXPECT(isinf(-INFINITY))
EXPECT(!isfinite(INFINITY))
EXPECT(isfinite(1.0f))
EXPECT(isnormal(1.0f))
EXPECT(!isnormal(0.0f))
EXPECT(signbit(-0.0f))
EXPECT(isordered(1.0f, 2.0f))
EXPECT(isunordered(1.0f, NAN))
EXPECT(isnan(half(NAN)))
EXPECT(any(isnan(float2(1, NAN))))
EXPECT(isinf(half(65536.0f)))
// geometric
EXPECT(dot(float3(1, 2, 3), float3(4, 5, 6)) == 32)
EXPECT(all(cross(float3(1, 0, 0), float3(0, 1, 0)) == float3(0, 0, 1)))
EXPECT(length(float2(3, 4)) == 5)
EXPECT(distance(float2(0), float2(3, 4)) == 5)
EXPECT(length_squared(float4(1)) == 4)
EXPECT(abs(length(normalize(float3(1, 2, 3))) - 1) < 1e-6f)
EXPECT(all(reflect(float2(1, -1), float2(0, 1)) == float2(1, 1)))
EXPECT(dot(int2(1, 2), int2(3, 4)) == 11))");
}

TEST_CASE("metal_stdlib: integers, bits, packed types and matrices") {
  check_lines(R"(// integer
EXPECT(popcount(255u) == 8)
EXPECT(clz(1u) == 31)
EXPECT(clz(0) == 32)
EXPECT(ctz(8u) == 3)
EXPECT(ctz(0u) == 32)
EXPECT(clz(uchar(1)) == 7)
EXPECT(clz(1ul) == 63)
EXPECT(reverse_bits(1u) == 0x80000000u)
EXPECT(reverse_bits(uchar(1)) == 128)
EXPECT(rotate(0x80000001u, 1u) == 3u)
EXPECT(popcount(ushort(0xFFFF)) == 16)
EXPECT(popcount(char(-1)) == 8)
EXPECT(mulhi(0x80000000u, 4u) == 2u)
EXPECT(mulhi(-1, 1) == -1)
EXPECT(mulhi(0x8000000000000000ul, 4ul) == 2ul)
EXPECT(mulhi(-1L, 5L) == -1L)
EXPECT(mulhi(short(-1), short(1)) == -1)
EXPECT(madhi(0x80000000u, 4u, 5u) == 7u)
EXPECT(addsat(0x7FFFFFFF, 1) == 0x7FFFFFFF)
EXPECT(addsat(-0x7FFFFFFF, -5) == INT_MIN)
EXPECT(subsat(0u, 1u) == 0u)
EXPECT(addsat(uchar(200), uchar(100)) == 255)
EXPECT(subsat(char(-100), char(100)) == -128)
EXPECT(addsat(0xFFFFFFFFu, 1u) == 0xFFFFFFFFu)
EXPECT(hadd(3, 4) == 3)
EXPECT(rhadd(3, 4) == 4)
EXPECT(absdiff(-1, 5) == 6u)
EXPECT(absdiff(INT_MIN, INT_MAX) == 0xFFFFFFFFu)
EXPECT(madsat(100000, 100000, 1) == INT_MAX)
EXPECT(madsat(uchar(10), uchar(20), uchar(100)) == 255)
EXPECT(madsat(LONG_MAX, 2L, 1L) == LONG_MAX)
EXPECT(madsat(-3L, 4L, 5L) == -7L)
EXPECT(madsat(LONG_MIN, 2L, 1L) == LONG_MIN)
EXPECT(extract_bits(0xF0u, 4, 4) == 15u)
EXPECT(extract_bits(-16, 4, 4) == -1)
EXPECT(extract_bits(0xFFu, 0, 0) == 0u)
EXPECT(extract_bits(0x80000000u, 31, 1) == 1u)
EXPECT(extract_bits(0xFFFFFFFFu, 0, 32) == 0xFFFFFFFFu)
EXPECT(insert_bits(0u, 15u, 4, 4) == 0xF0u)
EXPECT(insert_bits(0xFFFFFFFFu, 0u, 8, 8) == 0xFFFF00FFu)
EXPECT(extract_bits(uchar(0xF0), 4, 4) == 15)
EXPECT(extract_bits(char(-16), 4, 4) == -1)
EXPECT(insert_bits(0u, 7u, 0, 32) == 7u)
EXPECT(all(popcount(uint2(1, 3)) == uint2(1, 2)))
EXPECT(all(absdiff(int2(1, 5), int2(3, 2)) == uint2(2, 3)))
EXPECT(all(max(int2(1, 5), 3) == int2(3, 5)))
EXPECT(all(max(3, int2(1, 5)) == int2(3, 5)))
EXPECT(mul24(3, 4) == 12)
// bits
EXPECT(as_type<uint>(1.0f) == 0x3F800000u)
EXPECT(as_type<float>(0x40000000u) == 2.0f)
EXPECT(as_type<ushort>(half(1)) == 0x3C00)
EXPECT(as_type<bfloat>(ushort(0x3F80)) == 1.0f)
EXPECT(all(as_type<uchar4>(0x04030201u) == uchar4(1, 2, 3, 4)))
EXPECT(as_type<uint>(uchar4(1, 2, 3, 4)) == 0x04030201u)
EXPECT(all(as_type<half2>(0x40003C00u) == half2(1, 2)))
EXPECT(all(as_type<uint4>(float4(1, 2, 0, 0)) == uint4(0x3F800000u, 0x40000000u, 0, 0)))
EXPECT(all(as_type<bfloat4>(uint2(0x40003F80u, 0u)) == bfloat4(1, 2, 0, 0)))
EXPECT(as_type<ulong>(float2(0, 1)) == 0x3F80000000000000ul)
EXPECT(all(as_type<char4>(-1) == char4(-1)))
EXPECT(as_type<int>(packed_char4(1, 0, 0, 0)) == 1)
// packed
packed_float3 p3(1, 2, 3);
float3 q3 = p3;
EXPECT(all(q3 == float3(1, 2, 3)))
EXPECT(all(p3 * 2 == float3(2, 4, 6)))
EXPECT(p3[1] == 2)
EXPECT(all(p3.xy == float2(1, 2)))
EXPECT(dot(float3(p3), q3) == 14)
p3 = q3 * 2;
p3 += 1;
p3.xy = float2(9);
p3[2] = 0;
EXPECT(p3.x == 9)
EXPECT(p3.y == 9)
EXPECT(p3.z == 0)
packed_half4 ph(1, 2, 3, 4);
half4 hv = half4(ph);
EXPECT(hv.w == 4)
float4 fv = float4(ph);
EXPECT(fv.w == 4)
// matrices
float2x2 m(1, 2, 3, 4);
EXPECT(all(m * float2(1, 1) == float2(4, 6)))
EXPECT(all(float2(1, 1) * m == float2(3, 7)))
EXPECT(m[1][0] == 3)
EXPECT(m[1].y == 4)
EXPECT(determinant(m) == -2)
EXPECT(all((m * m)[0] == float2(7, 10)))
EXPECT(all(transpose(m)[0] == float2(1, 3)))
float3x3 id(1.0f);
EXPECT(all(id * float3(1, 2, 3) == float3(1, 2, 3)))
EXPECT(determinant(id) == 1)
float4x4 m4(float4(2, 0, 0, 0), float4(0, 2, 0, 0), float4(0, 0, 2, 0), float4(1, 2, 3, 1));
EXPECT(all(m4 * float4(1, 1, 1, 1) == float4(3, 4, 5, 1)))
EXPECT(determinant(m4) == 8)
m *= 2.0f;
m = m + m - m;
EXPECT(m[0][0] == 2)
EXPECT(all((2 * m)[1] == float2(12, 16)))
EXPECT(m == m)
float2x3 m23(float3(1, 2, 3), float3(4, 5, 6));
EXPECT(all(m23 * float2(1, 1) == float3(5, 7, 9)))
EXPECT(all((transpose(m23) * m23)[0] == float2(14, 32)))
// pack
EXPECT(pack_float_to_unorm4x8(float4(0, 1, 0.5f, 2)) == 0xFF80FF00u)
EXPECT(all(unpack_unorm4x8_to_float(0xFF000000u) == float4(0, 0, 0, 1)))
EXPECT(all(unpack_snorm4x8_to_float(0x81u) == float4(-1, 0, 0, 0)))
EXPECT(pack_float_to_snorm2x16(float2(-1, 1)) == 0x7FFF8001u)
EXPECT(pack_half_to_unorm4x8(half4(1)) == 0xFFFFFFFFu)
EXPECT(pack_float_to_unorm10a2(float4(1, 0, 1, 1)) == 0xFFF003FFu)
EXPECT(pack_float_to_unorm565(float3(1, 0, 1)) == 0xF81F)
EXPECT(all(unpack_unorm2x16_to_half(0xFFFF0000u) == half2(0, 1)))
// limits
EXPECT(numeric_limits<int>::max() == INT_MAX)
EXPECT(numeric_limits<int>::min() == INT_MIN)
EXPECT(numeric_limits<float>::infinity() == INFINITY)
EXPECT(numeric_limits<half>::max() == 65504.0h)
EXPECT(numeric_limits<uchar>::max() == 255)
EXPECT(numeric_limits<float>::lowest() == -FLT_MAX)
EXPECT(numeric_limits<float>::epsilon() == FLT_EPSILON)
EXPECT(metal::numeric_limits<bfloat>::max() > 3e38f)
EXPECT(numeric_limits<long>::digits == 63)
EXPECT(Limits<float>::min == -INFINITY)
EXPECT(Limits<int>::max == INT_MAX)
EXPECT(Limits<half>::finite_max == 65504.0h)
EXPECT(Limits<uint8_t>::min == 0)
EXPECT(Limits<float>::finite_min == -FLT_MAX)
EXPECT(Limits<bfloat16_t>::max == INFINITY))");
}

TEST_CASE("metal_stdlib: templates, address spaces, arrays, MLX's helpers and votes") {
  check_lines(R"(float4 z = 0;
// traits, spaces, templates
EXPECT(is_same_v<int, int>)
EXPECT(is_integral_v<char>)
EXPECT(is_floating_point_v<half>)
EXPECT(is_floating_point<bfloat>::value)
EXPECT(is_arithmetic_v<half>)
EXPECT(!is_integral_v<float>)
EXPECT(is_signed_v<int>)
EXPECT(is_unsigned<uint>::value)
EXPECT(is_same_v<conditional_t<true, int, float>, int>)
EXPECT(is_same_v<remove_reference_t<int&>, int>)
EXPECT(is_pointer_v<device int*>)
EXPECT(is_convertible_v<int, float>)
EXPECT(space_of<device int*>::value == 1)
EXPECT(space_of<threadgroup float4*>::value == 3)
EXPECT(space_of<constant half*>::value == 5)
EXPECT(space_of<thread int*>::value == 0)
EXPECT(first(float4(3)) == 3)
EXPECT(first(half2(1)) == 1)
EXPECT(table[2] == 3)
float q[2] = {5, 6};
float4 hh(1);
EXPECT(helper(hh, q) == 6)
EXPECT(hh.x == 6)
array<float, 3> arr = {1, 2, 3};
float total = 0;
for (auto x : arr) total += x;
EXPECT(total == 6)
EXPECT(arr.size() == 3)
EXPECT(arr[1] == 2)
complex64_t c1(1, 2), c2 = 3.0f;
EXPECT((c1 * c2).imag == 6)
EXPECT((c1 + c2).real == 4)
EXPECT((c1 / c1).real == 1)
EXPECT(c1 == c1)
EXPECT((c1 * 2).real == 2)
EXPECT((2.0f * c1).imag == 4)
EXPECT(c1 < c2)
EXPECT((float)c1 == 1)
EXPECT((-c1).real == -1)
EXPECT(abs(log1p(1e-4f) - 9.9995e-5f) < 1e-10f)
EXPECT(ceildiv(7, 2) == 4)
EXPECT(ceildiv(8u, 2) == 4)
EXPECT(fabs(log1p(complex64_t(0.0f, 1.0f)).real - 0.34657359f) < 1e-6f)
int idx[3] = {0, 1, 2};
idx[one] = max(int(two), 3);
EXPECT(idx[0] == 3)
ulong2 ul(1, 2);
EXPECT(ul.x + ul.y == 3)
bool2 bb(true, false);
EXPECT(any(bb))
EXPECT(!all(bb))
EXPECT((bb || bool2(false, true)).y)
float4 cond = failures[0] > 100 ? float4(1) : z;
EXPECT(cond.x == 0)
float4 cond2 = failures[0] > 100 ? z : 1;
EXPECT(cond2.x == 1)
simd_vote v = simd_ballot(true);
EXPECT((ulong)v == 1ul)
EXPECT(v.any())
EXPECT(!v.all())
EXPECT(simd_all(true))
EXPECT(simd_any(true))
EXPECT(!simd_any(false))
EXPECT(simd_is_first())
EXPECT(static_cast<simd_vote::vote_t>(simd_active_threads_mask()) == 1)
EXPECT(quad_sum(3.0f) == 3)
EXPECT(quad_product(3) == 3)
EXPECT(quad_max(2u) == 2u)
EXPECT(quad_prefix_inclusive_sum(4) == 4)
EXPECT(quad_prefix_exclusive_sum(4) == 0)
EXPECT(quad_is_first())
EXPECT(quad_all(true))
EXPECT(quad_broadcast(3, 1) == 3))");
}

TEST_CASE("metal_stdlib: functions of values that are known at run time only") {
  check_lines(
      R"(float x = in[2], y = in[3]; int i = int(x), j = int(y); uint u = uint(x); half h = half(x); bfloat b = bfloat(y);
float4 v = float4(in[0], in[1], in[2], in[3]);
EXPECT(abs(exp(x) - 7.3890561f) < 1e-6f)
EXPECT(abs(fast::exp(x) - 7.3890561f) < 4e-6f)
EXPECT(exp(-in[1] / in[0]) == 0)
EXPECT(abs(log(y) - 1.0986123f) < 2e-7f)
EXPECT(abs(sin(1e8f * x) - -0.67708746f) < 1e-6f)
EXPECT(pow(x, y) == 8 && pow(-x, y) == -8 && pow(x, in[0]) == 1)
EXPECT(fmod(in[7], y) == 1 && fmod(-in[7], y) == -1)
EXPECT(max(x, y) == 3 && max(in[0] / in[0], y) == 3 && min(y, in[0] / in[0]) == 3)
EXPECT(isnan(in[0] / in[0]) && isinf(in[1] / in[0]) && !isfinite(in[1] / in[0]))
EXPECT(h / 3 == half(0.6665f) && same<decltype(h / 3), half>)
EXPECT(float(b * b + b) == 12 && float(b) / 2 == 1.5f && same<decltype(b * b), bfloat>)
EXPECT(v[i] == 2 && v[u] == 2)
v[j] = 9; v[i - 1] += 5;
EXPECT(all(v == float4(0, 6, 2, 9)))
EXPECT(dot(v, v) == 121 && all(v.wz == float2(9, 2)) && length(v) == 11)
EXPECT(mulhi(int(1 << 30) * i, j) == -2 && rotate(u, 31u) == 1u && clz(u) == 30 && popcount(7u * u) == 3)
EXPECT(clz(uint(in[0])) == 32 && ctz(int(in[0])) == 32)
EXPECT(addsat(INT_MAX, i) == INT_MAX && subsat(u, 3u) == 0 && extract_bits(0xF0u * u, u + 3u, 4u) == 15u)
EXPECT(as_type<uint>(x) == 0x40000000u && as_type<ushort>(h) == 0x4000 && as_type<ushort>(b) == 0x4040)
EXPECT(all(as_type<uchar4>(0x01020304u * u) == uchar4(8, 6, 4, 2)) && as_type<uint>(half2(h, half(y))) == 0x42004000u)
EXPECT(rint(x + 0.5f) == 2 && round(x + 0.5f) == 3 && floor(-x - 0.5f) == -3 && ceil(x + 0.5f) == 3 && trunc(-x - 0.5f) == -2)
EXPECT(numeric_limits<float>::max() * x == INFINITY && -INFINITY < x)
float3x3 m(float3(x, 0, 0), float3(0, y, 0), float3(1, 2, 3));
EXPECT(determinant(m) == 18 && all(m * float3(1, 1, 1) == float3(3, 5, 3)))
array<float, 4> list = {x, y, x, y};
EXPECT(list[u] == 2 && list[j] == 3)
EXPECT(unpack_unorm4x8_to_float(0xFFu << (8 * u)).z == 1)
complex64_t z(x, y);
EXPECT((z * z).real == -5 && (z * z).imag == 12 && (z / z).real == 1 && (z + 1).real == 3)
)");
}

}  // namespace
