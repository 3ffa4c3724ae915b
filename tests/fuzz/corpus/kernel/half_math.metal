#include <metal_stdlib>
using namespace metal;
kernel void math(device half4* h, device float2* f, device bfloat* b, uint i [[thread_position_in_grid]]) {
  half4 v = h[i];
  v = sin(v) + cos(v.wzyx) * exp2(v) - pow(abs(v), 0.5h) + fma(v, v, 1.5h) + clamp(v, 0.0h, 1.0h);
  h[i] = normalize(v) * dot(v, v.yxwz) + length(v) + half(b[i]) + rsqrt(v) + mix(v, v.xxxx, 0.25h);
  float e; f[i] = float2(frexp(f[i].x, *(thread int*)&e), modf(f[i].y, e)) + ldexp(f[i], int2(3, 4)) + float2(precise::atan2(f[i].x, f[i].y), fast::log(f[i].x));
  b[i] = bfloat(f[i].x) * bfloat(2.5) + b[i]; h[i].xz = half2(f[i]);
}
