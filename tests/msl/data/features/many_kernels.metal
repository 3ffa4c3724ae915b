// A file that instantiates many kernels; some of them do not compile.
#include <metal_stdlib>
using namespace metal;

template <typename T, int N>
struct Sizes {
  static_assert(N != 13, "thirteen is never asked for");
  T values[N];
};

template <typename T, int N>
[[kernel]] void filled(device uint* ok [[buffer(0)]], uint tid [[thread_position_in_grid]]) {
  Sizes<T, N> sizes;
  for (int i = 0; i < N; ++i) sizes.values[i] = T(i);
  ok[tid] = sizes.values[N - 1] == T(N - 1);
}

#define instantiate(type, n)                          \
  template [[host_name("filled_" #type "_" #n)]] [[kernel]] decltype(filled<type, n>) filled<type, n>;
#define instantiate_sizes(type) \
  instantiate(type, 1) instantiate(type, 2) instantiate(type, 13) instantiate(type, 16) instantiate(type, 31)
instantiate_sizes(float)
instantiate_sizes(half)
instantiate_sizes(int)
instantiate_sizes(uchar)
template [[host_name("filled_long")]] [[kernel]] void filled<long, 3>(device uint* ok [[buffer(0)]],
                                                                       uint tid [[thread_position_in_grid]]);
