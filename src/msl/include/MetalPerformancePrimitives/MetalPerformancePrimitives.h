// The names of MetalPerformancePrimitives' products of cooperative tensors, so that files with some
// kernels that use them compile: such a kernel itself is refused (check_scalar_ir.cpp). How Apple's
// GPUs lay out these tensors among threads is not documented.
#pragma once

#include <metal_stdlib>

extern "C" void __hf_needs_performance_primitives();

namespace metal {

struct execution_thread {};
struct execution_simdgroup {};
template <int count>
struct execution_simdgroups {};
struct execution_threadgroup {};

}  // namespace metal

namespace mpp {
namespace tensor_ops {

template <class T>
inline constexpr T dynamic_length_v = static_cast<T>(-1);

struct matmul2d_descriptor {
  enum class mode { multiply, multiply_accumulate };

  HF_INLINE constexpr matmul2d_descriptor(int m, int n, int k = dynamic_length_v<int>,
                                          bool transpose_left = false, bool transpose_right = false,
                                          bool relaxed_precision = false,
                                          mode kind = mode::multiply)
      : rows(m), columns(n), depth(k) {
    (void)transpose_left, (void)transpose_right, (void)relaxed_precision, (void)kind;
  }
  // As an argument of matmul2d: C++17 takes no classes there.
  HF_INLINE constexpr operator unsigned long() const {
    return static_cast<unsigned long>(static_cast<unsigned>(rows)) << 32 |
           static_cast<unsigned>(columns);
  }

  int rows, columns, depth;
};

// A thread's part of a tensor.
template <class T>
struct cooperative_tensor {
  using element_type = T;
  HF_INLINE T& operator[](int i) { return elements_[i & (capacity - 1)]; }
  HF_INLINE const T& operator[](int i) const { return elements_[i & (capacity - 1)]; }
  HF_INLINE static constexpr ushort get_capacity() { return capacity; }
  HF_INLINE metal::array<int, 2> get_multidimensional_index(int) const {
    __hf_needs_performance_primitives();
    return {};
  }
  HF_INLINE bool is_valid_element(int) const { return true; }
  template <class Tensor>
  HF_INLINE void load(const Tensor&) {
    __hf_needs_performance_primitives();
  }
  template <class Tensor>
  HF_INLINE void store(Tensor&) const {
    __hf_needs_performance_primitives();
  }

 private:
  static constexpr int capacity = 64;
  T elements_[capacity];
};

template <unsigned long descriptor, class Scope>
struct matmul2d {
  template <class Left, class Right, class Result>
  HF_INLINE cooperative_tensor<Left> get_left_input_cooperative_tensor() const {
    return {};
  }
  template <class Left, class Right, class Result>
  HF_INLINE cooperative_tensor<Right> get_right_input_cooperative_tensor() const {
    return {};
  }
  template <class Left, class Right, class Result>
  HF_INLINE cooperative_tensor<Result> get_destination_cooperative_tensor() const {
    return {};
  }
  template <class Left, class Right, class Result>
  HF_INLINE void run(Left&, Right&, Result&) const {
    __hf_needs_performance_primitives();
  }
};

}  // namespace tensor_ops
}  // namespace mpp
