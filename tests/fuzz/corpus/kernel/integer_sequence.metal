#include <metal_stdlib>
using namespace metal;
template <class T, T... v> struct seq {};
using s = __make_integer_seq<seq, int, 2000000000>;
kernel void k(device int* x) { x[0] = sizeof(s); }
