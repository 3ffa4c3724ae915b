// Function constants with defaults, and constexpr ones.
#include <metal_stdlib>
using namespace metal;

constant bool has_mask [[function_constant(0)]];
constant int block [[function_constant(1)]] = 2 * (3 + 1);
constexpr constant bool is_transposed [[function_constant(2)]] = true;
constant constexpr float scale [[function_constant(3)]] = 0.5;
constant float2 offsets [[function_constant(4)]] = float2(1, 2);
constant bool masks = is_function_constant_defined(has_mask) ? has_mask : false;
constant int rows = is_transposed ? block : 1;

kernel void defaults(device uint* ok [[buffer(0)]],
                     device float* mask [[buffer(1), function_constant(has_mask)]]) {
  ok[0] = block == 8 && rows == 8;
  ok[1] = is_transposed && scale == 0.5 && offsets.y == 2;
  ok[2] = !masks && !is_function_constant_defined(block);
}
