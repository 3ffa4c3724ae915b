#include <metal_stdlib>
using namespace metal;

// Calls that multiply: `slow` takes the compiler many seconds.
float f0(float x, device float* p) {
  p[0] = x;
  return x * x + p[int(x)];
}
#define CALLS(n, m)                   \
  float f##n(float x, device float* p) { \
    if (p[n] > x) return f##m(x + 1, p); \
    return f##m(x, p) + p[n];            \
  }
CALLS(1, 0)
CALLS(2, 1)
CALLS(3, 2)
CALLS(4, 3)
CALLS(5, 4)
CALLS(6, 5)
CALLS(7, 6)
CALLS(8, 7)
CALLS(9, 8)
CALLS(10, 9)
CALLS(11, 10)
CALLS(12, 11)
kernel void slow(device float* x) { x[0] = f12(x[1], x); }
kernel void after(device float* x) { x[0] = 1; }
