#include <metal_stdlib>
using namespace metal;
struct Params { int shape[4]; long strides[4]; float scale; bool flag; packed_float3 offset; };
struct complex64 { float real, imag; constexpr complex64(float r, float i) : real(r), imag(i) {}
  constexpr complex64 operator*(complex64 b) const thread { return {real * b.real - imag * b.imag, real * b.imag + imag * b.real}; } };
union Bits { float f; uint u; uchar4 b; };
enum class Mode : uchar { add, multiply = 7 };
constant int lookup[8] = {1, 1, 2, 3, 5, 8, 13, 21};
kernel void mixed(device float* x [[buffer(0)]], constant Params& p [[buffer(1)]], device complex64* z [[buffer(2)]],
                  uint2 pos [[thread_position_in_grid]], uint2 grid [[threads_per_grid]]) {
  uint i = pos.x + pos.y * grid.x;
  Bits bits; bits.f = x[i];
  Mode mode = Mode(i & 7);
  float r = 0;
  switch (mode) {
    case Mode::add: r = x[i] + p.offset.y; break;
    case Mode::multiply: r = x[i] * p.scale;
    default: for (int d = 3; d >= 0; --d) { if (p.shape[d] == 0) continue; r += (i % p.shape[d]) * p.strides[d]; if (r > 100) break; }
  }
  z[i] = z[i] * complex64(r, as_type<float>(bits.u ^ 1));
  do { r -= lookup[uint(r) & 7]; } while (r > 10 && p.flag);
  x[i] = select(r, float(bits.b.y), isnan(r));
}
