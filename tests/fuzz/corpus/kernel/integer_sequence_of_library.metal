#include <metal_stdlib>
using namespace metal;
using s = metal::make_index_sequence<3000000000>;
kernel void k(device int* x) { x[0] = s::size(); }
