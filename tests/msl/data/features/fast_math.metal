// A header that gives mathematical functions to a type of its own, by the functions underneath.
#include <metal_stdlib>
using namespace metal;

struct tiny_float {
  ushort bits;
  tiny_float() = default;
  tiny_float(float x) : bits(ushort(as_type<uint>(x) >> 16)) {}
  operator float() const thread { return as_type<float>(uint(bits) << 16); }
  operator float() const device { return as_type<float>(uint(bits) << 16); }
};

#define INSTANTIATE_MATH(itype, ctype, mode)                                        \
  METAL_FUNC itype exp(itype x) { return itype(__metal_exp(ctype(x), mode)); }      \
  METAL_FUNC itype log2(itype x) { return itype(__metal_log2(ctype(x), mode)); }    \
  METAL_FUNC itype abs(itype x) { return itype(__metal_fabs(ctype(x), mode)); }     \
  METAL_FUNC itype pow(itype x, itype y) {                                          \
    return itype(__metal_pow(ctype(x), ctype(y), mode));                            \
  }                                                                                 \
  METAL_FUNC itype fma(itype x, itype y, itype z) {                                 \
    return itype(__metal_fma(ctype(x), ctype(y), ctype(z)));                        \
  }                                                                                 \
  METAL_FUNC itype ldexp(itype x, int k) {                                          \
    return itype(__metal_ldexp(ctype(x), k, mode));                                 \
  }                                                                                 \
  METAL_FUNC itype frexp(itype x, thread int& exponent) {                           \
    return itype(__metal_frexp(ctype(x), &exponent));                               \
  }                                                                                 \
  METAL_FUNC bool isnan(itype x) { return __metal_isnan(ctype(x), mode); }

#define INSTANTIATE_LANES(itype, ctype)                                                       \
  METAL_FUNC itype simd_sum(itype x) { return itype(__metal_simd_sum(ctype(x))); }            \
  METAL_FUNC itype simd_max(itype x) { return itype(__metal_simd_max(ctype(x))); }            \
  METAL_FUNC itype simd_xor(itype x) { return itype(__metal_simd_xor(ctype(x))); }            \
  METAL_FUNC itype simd_broadcast(itype x, ushort lane) {                                     \
    return itype(__metal_simd_broadcast(ctype(x), lane));                                     \
  }                                                                                           \
  METAL_FUNC itype simd_shuffle_and_fill_up(itype x, itype filling, ushort delta) {           \
    return itype(__metal_simd_shuffle_and_fill_up(ctype(x), ctype(filling), delta,            \
                                                  __metal_get_simdgroup_size(ushort())));     \
  }

namespace metal {
INSTANTIATE_MATH(tiny_float, float, __METAL_MAYBE_FAST_MATH__)
INSTANTIATE_LANES(tiny_float, float)
namespace fast {
INSTANTIATE_MATH(tiny_float, float, __METAL_FAST_MATH__)
}
namespace precise {
INSTANTIATE_MATH(tiny_float, float, __METAL_PRECISE_MATH__)
}
}  // namespace metal

kernel void functions(device uint* ok [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  const tiny_float two(2.0), three(3.0);
  int exponent = 0;
  const float part = metal::frexp(three, exponent);
  ok[0] = float(metal::pow(two, three)) == 8.0 && float(metal::log2(two)) == 1.0;
  ok[1] = float(metal::exp(tiny_float(0.0))) == 1.0 && float(metal::fast::exp(tiny_float(0.0))) == 1.0;
  ok[2] = float(metal::precise::fma(two, three, two)) == 8.0 && float(metal::abs(tiny_float(-2.0))) == 2.0;
  ok[3] = part == 0.75 && exponent == 2 && float(metal::ldexp(three, 2)) == 12.0;
  ok[4] = metal::isnan(tiny_float(NAN)) && !metal::isnan(two);
  const tiny_float mine{float(lane)};
  ok[5] = float(simd_sum(mine)) == 496.0 && float(simd_max(mine)) == 31.0;
  ok[6] = float(simd_broadcast(mine, 7)) == 7.0;
  const float shifted = simd_shuffle_and_fill_up(mine, two, 1);
  ok[7] = simd_all(shifted == (lane == 0 ? 2.0 : float(lane - 1)));
  ok[8] = float(simd_xor(two)) == 0.0;  // an even number of lanes
}
