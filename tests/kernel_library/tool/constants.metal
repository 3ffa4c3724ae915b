#include <metal_stdlib>
using namespace metal;

constant bool has_mask [[function_constant(20)]];
constant half factor [[function_constant(21)]];
constant float4 offset [[function_constant(22)]];
constant uchar3 small [[function_constant(23)]];
constant int count [[function_constant(24)]];
constant int chosen = is_function_constant_defined(has_mask) ? 4 : 3;
constant int twice = is_function_constant_defined(count) ? 2 * count : 0;

// Loops in functions that are inlined, beside variables that have no value: once a crash.
float sum(device float* x, uint n) {
  float s = 0;
  for (uint i = 0; i < n; ++i) s += x[i] > 0 ? x[i] : -1;
  return s;
}
float nested(device float* x, uint n) {
  float s = 0;
  for (uint i = 0; i < n; ++i) s += x[i] > 0 ? sum(x, i) : -1;
  return s;
}

kernel void masked(device float* x [[buffer(0)]], const device bool* mask [[buffer(1), function_constant(has_mask)]],
                   uint i [[thread_position_in_grid]]) {
  if (has_mask)
    x[i] = mask[i] ? sum(x, i) : 0;
  else
    x[i] = nested(x, chosen) * factor + offset.y + small.z + twice;
}
// Whether they are defined is known without their values.
kernel void defaults(device float* x, uint i [[thread_position_in_grid]]) {
  x[i] = is_function_constant_defined(has_mask) ? 4 : 3;
}
