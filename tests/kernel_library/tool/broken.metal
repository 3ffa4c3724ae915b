#include <metal_stdlib>
kernel void broken(device float* y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  y[i] = no_such_function(i);
}
