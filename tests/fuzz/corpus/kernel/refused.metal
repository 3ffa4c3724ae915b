#include <metal_stdlib>
using namespace metal;
struct Base { virtual int v() { return 1; } virtual ~Base() {} };
struct Derived : Base { int v() override { return 2; } };
kernel void refused(device int* x, uint i [[thread_position_in_grid]]) {
  Derived d; Base& b = d; x[0] = b.v();
  asm volatile("nop" ::: "memory");
  int vla[x[0]]; vla[0] = 1;
  void* here = &&label; goto *here;
label:
  x[1] = *new int(3) + __builtin_clz(x[0]) + (int)(long)__builtin_alloca(x[0]);
  int (*call)(int) = nullptr; x[2] = call(1);
}
