#include <metal_stdlib>
using namespace metal;
kernel void switches(device int* x, uint i [[thread_position_in_grid]]) {
  int r = 0;
  for (int k = 0; k < x[1]; ++k) {
    switch (x[k + i] & 15) {
      case 0: r = 1; case 1: r += 2; break;
      case 2 ... 5: { int t = r; r = t * x[k]; continue; }
      case 6: if (r > 3) return; switch (r) { case 1: r = 7; break; default: r = 8; } break;
      default: r ^= k;
    }
    r = r > 5 ? (r & 1 ? r / 3 : r % 3) : r << 2;
  }
  x[i] = r;
}
