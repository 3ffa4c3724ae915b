#include <metal_stdlib>
using namespace metal;
constant bool has_mask [[function_constant(20)]];
constant int m = is_function_constant_defined(has_mask) ? 4 : 3;
constant half factor [[function_constant(21)]];
constant float4 offset [[function_constant(22)]];
constant uchar3 small [[function_constant(23)]];
float f(device float* x, uint n) { float s = 0; for (uint i = 0; i < n; ++i) { if (x[i] > 0) s += x[i]; else s -= 1; } return s; }
float g(device float* x, uint n) { float s = 0; for (uint i = 0; i < n; ++i) { if (x[i] > 0) s += f(x, i); else s -= 1; } return s; }
kernel void k(device float* x [[buffer(0)]], const device bool* mask [[buffer(1), function_constant(has_mask)]],
              uint i [[thread_position_in_grid]]) {
  if (has_mask) x[i] = mask[i] ? f(x, i) : 0; else x[i] = g(x, m) * factor + offset.y + small.z;
}
