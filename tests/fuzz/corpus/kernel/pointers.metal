#include <metal_stdlib>
using namespace metal;
struct Node { device int* next; int value; };
void swap_them(thread int& a, thread int& b) { int t = a; a = b; b = t; }
int pick(threadgroup int* t, device int* d, bool c, uint i) { return c ? t[i] : d[i]; }
kernel void pointers(device int* x, device Node* nodes, constant int* c, threadgroup int* t [[threadgroup(1)]], uint i [[thread_position_in_grid]]) {
  int a = x[i], b = c[i]; swap_them(a, b);
  device int* p = a > b ? x : nodes[i].next; threadgroup int* q = t + i; thread int* r = i & 1 ? &a : &b;
  threadgroup int* tables[2] = {t, t + 4}; tables[i & 1][i] = *r;
  threadgroup_barrier(mem_flags::mem_none);
  x[i] = pick(q, p, a > 0, i) + *(device int*)((device char*)x + 3) + int(p - x) + (p == nullptr);
  *reinterpret_cast<device float4*>(x + 1) = float4(a, b, *q, 1); ((device uchar*)x)[i] = 1; 
}
