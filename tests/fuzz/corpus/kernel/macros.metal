#include <metal_stdlib>
using namespace metal;
#define CAT(a, b) a##b
#define XCAT(a, b) CAT(a, b)
#define STR(x) #x
#define UNARY(name, T, e) kernel void XCAT(name, _##T)(device T* x, uint i [[thread_position_in_grid]]) { T v = x[i]; x[i] = e; }
#define EACH(F, ...) F(negate, float, -v) F(square, int, v * v __VA_ARGS__)
EACH(UNARY)
#if defined(__METAL__) && __METAL_VERSION__ >= 300 && !defined(NO)
UNARY(third, half, v / 3.0h)
#elif 0
#error STR(no)
#endif
