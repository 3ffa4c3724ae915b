// A file with kernels that need products of cooperative tensors, and one that does not.
#include <metal_stdlib>
#include <metal_simdgroup>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;

template <typename T>
METAL_FUNC void multiply_fragment(thread T* a, thread T* b, thread float* c) {
  constexpr auto description = mpp::tensor_ops::matmul2d_descriptor(
      16, 32, 16, false, true, true, mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);
  mpp::tensor_ops::matmul2d<description, metal::execution_simdgroup> product;
  auto left = product.template get_left_input_cooperative_tensor<T, T, float>();
  auto right = product.template get_right_input_cooperative_tensor<T, T, float>();
  auto sums = product.template get_destination_cooperative_tensor<remove_addrspace_t<decltype(left)>,
                                                                  remove_addrspace_t<decltype(right)>, float>();
  for (short i = 0; i < 8; ++i) {
    left[i] = a[i];
    right[i] = b[i];
    sums[i] = c[i];
  }
  product.run(left, right, sums);
  for (short i = 0; i < sums.get_capacity() && i < 8; ++i) c[i] = sums[i];
}

template <typename T>
[[kernel]] void product(device uint* ok [[buffer(0)]]) {
  T a[8] = {}, b[8] = {};
  float c[8] = {};
  multiply_fragment<T>(a, b, c);
  ok[0] = c[0] == 0;
}
template [[host_name("product_half")]] [[kernel]] decltype(product<half>) product<half>;

kernel void plain(device uint* ok [[buffer(0)]]) { ok[0] = 1; }
