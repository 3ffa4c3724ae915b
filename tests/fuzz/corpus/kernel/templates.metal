#include <metal_stdlib>
using namespace metal;
template <typename T, int N = 4, bool align = true>
[[kernel]] void copy_n(const device T* src [[buffer(0)]], device T* dst [[buffer(1)]], constant int& size [[buffer(2)]],
                       uint i [[thread_position_in_grid]]) {
#pragma clang loop unroll(full)
  for (int k = 0; k < N; ++k) {
    if constexpr (align) dst[i * N + k] = src[i * N + k];
    else if (int(i * N + k) < size) dst[i * N + k] = static_cast<T>(src[i * N + k] + T(1));
  }
}
#define instantiate(name, type, n, a) \
  template [[host_name(name)]] [[kernel]] decltype(copy_n<type, n, a>) copy_n<type, n, a>;
instantiate("copy_f32", float, 4, true)
instantiate("copy_f16", half, 2, false)
instantiate("copy_i64", int64_t, 1, false)
