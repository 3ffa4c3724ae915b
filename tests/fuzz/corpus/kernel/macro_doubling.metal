#include <metal_stdlib>
using namespace metal;
#define A(x) x, x
#define B A(A(A(A(A(A(A(A(1))))))))
#define C B, B, B, B, B, B, B, B
#define D C, C, C, C, C, C, C, C
#define E2 D, D, D, D, D, D, D, D, D, D, D, D, D, D, D, D
#define F E2, E2, E2, E2, E2, E2, E2, E2, E2, E2, E2, E2, E2, E2, E2, E2
constant char table[] = {F, F, F, F};
kernel void k(device int* x) { x[0] = table[x[1]]; }
