#include <metal_stdlib>
using namespace metal;
float f0(float x, device float* p) { p[0] = x; return x * x + p[int(x)]; }
#define TWICE(n, m) float f##n(float x, device float* p) { if (p[n] > x) return f##m(x + 1, p) - f##m(x, p); return f##m(x, p) + p[n] * f##m(x - 1, p); }
TWICE(1, 0) TWICE(2, 1) TWICE(3, 2) TWICE(4, 3) TWICE(5, 4) TWICE(6, 5) TWICE(7, 6) TWICE(8, 7) TWICE(9, 8) TWICE(10, 9) TWICE(11, 10) TWICE(12, 11)
TWICE(13, 12) TWICE(14, 13) TWICE(15, 14) TWICE(16, 15) TWICE(17, 16) TWICE(18, 17) TWICE(19, 18) TWICE(20, 19) TWICE(21, 20) TWICE(22, 21)
kernel void blowup(device float* x) { x[0] = f22(x[1], x); }
