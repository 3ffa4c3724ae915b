#include <metal_stdlib>
using namespace metal;
constant int zero = 0;
kernel void ints(device int* x, device uint* u, device long* l, device uchar* c, device short4* s, uint i [[thread_position_in_grid]]) {
  int a = x[i], b = x[i + 1];
  x[i] = a / b + a % b + (a << b) + (a >> 33) + a / zero + INT_MIN / -1;
  u[i] = popcount(u[i]) + clz(u[i]) + ctz(u[i]) + reverse_bits(u[i]) + rotate(u[i], 3u) + mulhi(u[i], 7u) + extract_bits(u[i], 3u, 9u);
  l[i] = l[i] * 0x7fffffffffffffffl / (l[i] | 1) + (1ul << 63);
  c[i] = c[i] + 200; s[i] = abs(s[i]) << short4(1, 2, 3, 40);
  x[i + 2147483647u] = madsat(a, b, 3); x[i] += as_type<int>(float(a)) + int(1e30f) + int(NAN) + addsat(a, b) + hadd(a, b);
}
