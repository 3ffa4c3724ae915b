#include <metal_stdlib>
using namespace metal;
#include "include_itself.metal"
#include __FILE__
kernel void k(device int* x) { x[0] = 1; }
