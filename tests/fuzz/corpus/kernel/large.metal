#include <metal_stdlib>
using namespace metal;
constant float table[1 << 16] = {1, 2, 3};
struct Big { int a[1 << 12]; };
kernel void large(device float* x, device Big* big, uint i [[thread_position_in_grid]]) {
  float values[2048] = {}; Big copy = big[i];
  values[i & 2047] = table[i & 0xffff] + copy.a[i & 4095];
  x[i] = values[(i * 7) & 2047]; big[i + 1] = copy;
}
