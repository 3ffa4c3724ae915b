#include <metal_stdlib>
using namespace metal;
template <int N, int M> struct Wide { static constexpr int value = Wide<N - 1, M * 2>::value + Wide<N - 1, M * 2 + 1>::value; };
template <int M> struct Wide<0, M> { static constexpr int value = M; };
kernel void k(device int* x) { x[0] = Wide<26, 0>::value; }
