// `c ? x : y` where one operand lies in device memory and the other is a value of the same class.
#include <metal_stdlib>
using namespace metal;

struct complex_number {
  float real, imag;
  complex_number() = default;
  constexpr complex_number(float r, float i) : real(r), imag(i) {}
  complex_number(float r) : real(r), imag(0) {}
};

template <typename T>
METAL_FUNC T at_or_zero(const device T* x, int i, int n) {
  return i < n ? x[i] : T(0);
}
#define FIRST_OR(x, other) ((x) != nullptr ? *(x) : (other))

kernel void chosen(device uint* ok [[buffer(0)]], device complex_number* numbers [[buffer(1)]],
                   constant complex_number& given [[buffer(2)]], uint lane [[thread_index_in_simdgroup]]) {
  if (lane == 0) numbers[0] = complex_number(1, 2);
  threadgroup complex_number shared[1];
  shared[0] = complex_number(5, 6);
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  ok[0] = at_or_zero(numbers, 0, 1).imag == 2 && at_or_zero(numbers, 1, 1).imag == 0;
  const complex_number local(3, 4);
  ok[1] = FIRST_OR(numbers, local).real == 1;
  const complex_number either = lane < 32 ? shared[0] : numbers[0];
  ok[2] = either.imag == 6;
  const complex_number none = lane > 99 ? given : local;
  ok[3] = none.real == 3;
}
