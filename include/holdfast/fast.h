// Ops of neural networks that are one kernel each.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/dtype.h>
#include <holdfast/lm_ops.h>
#include <holdfast/stream.h>
#include <holdfast/utils.h>

namespace holdfast::fast {

// All of them compute half types in float32 and round once.

// x / sqrt(mean(x^2) + eps) * weight, along the last axis.
array rms_norm(const array& x, const std::optional<array>& weight, float eps,
               StreamOrDevice s = {});

// (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, along the last axis.
array layer_norm(const array& x, const std::optional<array>& weight,
                 const std::optional<array>& bias, float eps, StreamOrDevice s = {});

// Rotary position embedding of x (batch, ..., positions, features): of the first `dims` features,
// pair i at position p turns by (offset + p) * scale * base^(-2 i / dims), or by
// (offset + p) * scale / freqs[i]. Exactly one of `base` and `freqs` is given. A pair is (i, i +
// dims / 2), or (2 i, 2 i + 1) when `traditional`. `offset` as an array: one for all, or one for
// each batch. Angles are computed in double.
array rope(const array& x, int dims, bool traditional, std::optional<float> base, float scale,
           int offset, const std::optional<array>& freqs = std::nullopt, StreamOrDevice s = {});
array rope(const array& x, int dims, bool traditional, std::optional<float> base, float scale,
           const array& offset, const std::optional<array>& freqs = std::nullopt,
           StreamOrDevice s = {});

// softmax(scale * queries keys^T + mask) values. Queries are (batch, heads, positions, features);
// keys and values may have fewer heads, each of which serves heads / key heads neighbouring query
// heads. `mask_mode`: "" for none, "causal" (the last query sees all keys, each one before it one
// less), or "array" (may be left out when `mask_arr` is given): bool, or added to the scores;
// broadcast to (batch, heads, queries, keys). `sinks`: one more score for each head, which takes
// weight but has no value. The matrix of scores is never made, so `force_fused` changes nothing.
array scaled_dot_product_attention(const array& queries, const array& keys, const array& values,
                                   float scale, const std::string& mask_mode = "",
                                   const std::optional<array>& mask_arr = {},
                                   const std::optional<array>& sinks = {}, bool force_fused = false,
                                   StreamOrDevice s = {});
// As programs for versions before `force_fused` call it.
template <typename S>
  requires(!std::is_arithmetic_v<S> && std::is_convertible_v<S, StreamOrDevice>)
array scaled_dot_product_attention(const array& queries, const array& keys, const array& values,
                                   float scale, const std::string& mask_mode,
                                   const std::optional<array>& mask_arr,
                                   const std::optional<array>& sinks, const S& s) {
  return scaled_dot_product_attention(queries, keys, values, scale, mask_mode, mask_arr, sinks,
                                      false, StreamOrDevice(s));
}

// --- kernels of one's own ---

// What the compiler may assume of floating-point arithmetic: nothing that changes a result; no NaN
// and infinity tricks; anything that is fast. `exp(-inf) == 0` holds in the first only.
enum class MathMode { Safe = 0, Relaxed = 1, Fast = 2 };

struct CompileOptions {
  MathMode math_mode = MathMode::Safe;
  // Whether accesses outside of the arguments are prevented (HOLDFAST_GUARD_KERNELS). A kernel that
  // is known to stay inside may run a few percent faster without.
  bool guard = true;

  CompileOptions() = default;
  CompileOptions(MathMode mode) : math_mode(mode) {}
  explicit CompileOptions(int serialized)
      : math_mode(static_cast<MathMode>(serialized & 255)), guard((serialized & 256) == 0) {}
  int serialize() const { return static_cast<int>(math_mode) | (guard ? 0 : 256); }
  friend bool operator==(const CompileOptions&, const CompileOptions&) = default;
};

using TemplateArg = std::variant<int, bool, Dtype>;
using ScalarArg = std::variant<bool, int, float>;

// Makes the node that runs the kernel: inputs, shapes and dtypes of the outputs, the grid in
// threads, the threads of a threadgroup (each dimension at most the grid's), template arguments, a
// value that the outputs are filled with first, whether to print the generated source, the stream.
using CustomKernelFunction = std::function<std::vector<array>(
    const std::vector<array>&, const std::vector<Shape>&, const std::vector<Dtype>&,
    std::tuple<int, int, int>, std::tuple<int, int, int>,
    std::vector<std::pair<std::string, TemplateArg>>, std::optional<float>, bool, StreamOrDevice)>;

// A kernel written in the Metal Shading Language, on any device. `source` is the body of the
// function; its signature is generated from the names, and from what the inputs are when it is
// called:
//   - an input is `const device T* name`; `const constant T* name` when it has fewer than 8
//     elements; `const constant T& name` when it has no dimensions;
//   - `name_shape`, `name_strides` and `name_ndim` of an input are there when the body names them,
//     thread_position_in_grid and its kind likewise;
//   - an output is `device T* name`, or `device atomic<T>* name` with `atomic_outputs`; the body
//   may
//     read it too.
// `header` comes before the function. With `ensure_row_contiguous` inputs that are not are copied.
//
// The kernel is compiled when it is first evaluated, and found again by its whole content: the name
// may be used for any number of kernels. Wrong counts, dtypes and grids throw when the function is
// called, errors in the source when the result is evaluated; both with the kernel's name.
CustomKernelFunction metal_kernel(const std::string& name,
                                  const std::vector<std::string>& input_names,
                                  const std::vector<std::string>& output_names,
                                  const std::string& source, const std::string& header = "",
                                  bool ensure_row_contiguous = true, bool atomic_outputs = false,
                                  const CompileOptions& compile_options = {});

// What became of a kernel that metal_kernel made, for inputs and template arguments of one kind.
struct KernelInfo {
  std::vector<std::pair<std::string, TemplateArg>> template_args;
  std::string signature;  // the generated parameters: how inputs and outputs are declared
  // "widened": a simdgroup is a vector; "reference": one thread at a time, slowly; "PTX".
  std::string code;
  std::string reason;           // why it is not widened; empty: it is, or no call has asked
  std::string missing_barrier;  // a threadgroup_barrier that seems to be missing; empty: none
  std::string from;             // "compiler", "disk" (the cache of compiled kernels), "library"
  double milliseconds = 0;      // that compiling it took, or loading it
};
// Of each kind that the kernel was called with, the last one first, up to 64. What has not been
// evaluated yet is compiled now; throws what evaluating it would throw.
std::vector<KernelInfo> kernel_info(const CustomKernelFunction& kernel);

// A kernel written in CUDA C++, and one that is compiled already: both throw std::runtime_error,
// since no CUDA device is built in. MSL kernels run everywhere.
CustomKernelFunction cuda_kernel(const std::string& name,
                                 const std::vector<std::string>& input_names,
                                 const std::vector<std::string>& output_names,
                                 const std::string& source, const std::string& header = "",
                                 bool ensure_row_contiguous = true, int shared_memory = 0);
std::vector<array> precompiled_cuda_kernel(
    const std::string& name, const std::string& compiled_source, const std::vector<array>& inputs,
    const std::vector<Shape>& output_shapes, const std::vector<Dtype>& output_dtypes,
    const std::vector<ScalarArg>& scalars, std::tuple<int, int, int> grid,
    std::tuple<int, int, int> threadgroup, int shared_memory = 0,
    std::optional<float> init_value = std::nullopt, bool ensure_row_contiguous = false,
    StreamOrDevice s = {});

}  // namespace holdfast::fast
