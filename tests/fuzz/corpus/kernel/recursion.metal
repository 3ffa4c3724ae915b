#include <metal_stdlib>
using namespace metal;
template <int N> struct Deep { static constexpr int value = Deep<N - 1>::value + 1; };
template <> struct Deep<0> { static constexpr int value = 0; };
template <int N> struct Endless { static constexpr int value = Endless<N + 1>::value; };
int even(int a); int odd(int a) { return a ? even(a - 1) : 0; } int even(int a) { return a ? odd(a - 1) : 1; }
kernel void fine(device int* x) { x[0] = Deep<100>::value; }
kernel void recursive(device int* x) { x[0] = even(x[1]); }
kernel void endless(device int* x) { x[0] = 1; }
