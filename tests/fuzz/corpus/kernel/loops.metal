#include <metal_stdlib>
using namespace metal;
kernel void loops(device float* x, constant int* dims, uint i [[thread_position_in_grid]]) {
  float acc[4][4];
  for (int a = 0; a < 4; ++a) for (int b = 0; b < 4; ++b) acc[a][b] = x[a * 4 + b];
  int n = dims[0];
  while (n != 1 && n > 0) { n = n % 2 ? 3 * n + 1 : n / 2; if (n == dims[1]) goto done; }
  for (uint k = i; k < 1000000; k += 32) { for (int j = dims[2]; j-- > 0;) { if (x[j] < 0) continue; acc[j & 3][k & 3] += x[k]; if (acc[0][j & 3] > 9) return; } }
done:
  thread float* p = &acc[i & 3][0];
  for (auto q = p; q != p + 4; ++q) x[i] += *q;
  for (;;) { if (x[i]++ > 100) break; }
}
