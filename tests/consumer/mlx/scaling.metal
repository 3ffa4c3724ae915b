#include <metal_stdlib>

#include "factor.h"

[[kernel]] void scale(device const int* x [[buffer(0)]], device int* y [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
  y[i] = SCALED(x[i], 1);
}
