// A stack of layers that all use one kernel name, each a layer norm and a matrix-vector product in
// one kernel, with weights of several dtypes; and the same in plain C++. What the demonstration
// runs, and what the tests of the kernel library compare bit for bit.
#pragma once

#include <holdfast/holdfast.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::bench {

inline constexpr const char* layer_kernel_name = "norm_gemv";

// y = x + gain * (layer_norm(x) * W^T). A threadgroup of SIMDGROUPS simdgroups normalises x into
// threadgroup memory; each of its simdgroups then makes one element of y.
inline constexpr const char* layer_kernel_source = R"(
    threadgroup float normal[WIDTH];
    threadgroup float partial[2 * SIMDGROUPS];
    uint thread_index = thread_index_in_threadgroup;
    uint lane = thread_index_in_simdgroup;
    uint group = simdgroup_index_in_threadgroup;

    float total = 0, squares = 0;
    for (uint c = thread_index; c < WIDTH; c += 32 * SIMDGROUPS) {
      float value = float(x[c]);
      total += value;
      squares += value * value;
    }
    total = simd_sum(total);
    squares = simd_sum(squares);
    if (lane == 0) {
      partial[group] = total;
      partial[SIMDGROUPS + group] = squares;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    total = squares = 0;
    for (uint i = 0; i < SIMDGROUPS; ++i) {
      total += partial[i];
      squares += partial[SIMDGROUPS + i];
    }
    float mean = total / WIDTH;
    float scale = 1.0 / sqrt(squares / WIDTH - mean * mean + 1e-5);
    for (uint c = thread_index; c < WIDTH; c += 32 * SIMDGROUPS)
      normal[c] = (float(x[c]) - mean) * scale;
    threadgroup_barrier(mem_flags::mem_threadgroup);

    uint row = threadgroup_position_in_grid.x * SIMDGROUPS + group;
    float sum = 0;
    for (uint c = lane; c < WIDTH; c += 32)
      sum += normal[c] * float(w[row * w_strides[0] + c * w_strides[1]]);
    sum = simd_sum(sum);
    if (lane == 0)
      y[row] = T(float(x[row]) + gain * sum);
)";

struct LayerStackSizes {
  int width = 128;  // a multiple of 32 * simdgroups
  int layers = 12;
  int simdgroups = 4;
};

// Weights of all layers: one buffer for each dtype, of which the layers are slices; odd layers are
// transposed views. Shared by any number of threads; never written after it was made.
struct LayerStack {
  LayerStackSizes sizes;
  fast::CustomKernelFunction kernel;
  std::vector<array> buffers;  // by dtype: layers x width x width

  Dtype dtype(int layer) const {
    return buffers[static_cast<size_t>(layer) % buffers.size()].dtype();
  }
  array weights(int layer) const {
    const array& all = buffers[static_cast<size_t>(layer) % buffers.size()];
    int width = sizes.width;
    array own = squeeze(slice(all, {layer, 0, 0}, {layer + 1, width, width}), 0);
    return layer % 2 ? transpose(own) : own;
  }
  static float gain(int layer) { return 0.25f + 0.0625f * static_cast<float>(layer % 4); }
};

inline LayerStack make_layer_stack(LayerStackSizes sizes, uint64_t seed, bool copies = false) {
  LayerStack stack{sizes,
                   fast::metal_kernel(layer_kernel_name, {"x", "w", "gain"}, {"y"},
                                      layer_kernel_source, "", copies),
                   {}};
  float scale = 1.0f / std::sqrt(static_cast<float>(sizes.width));
  for (Dtype dtype : {float32, float16, bfloat16}) {
    array all = astype(
        random::normal({sizes.layers, sizes.width, sizes.width}, 0.0f, scale, random::key(seed++)),
        dtype);
    eval(all);
    stack.buffers.push_back(all);
  }
  return stack;
}

// One pass through all layers: one lazy graph of kernels and conversions. x is float32.
inline array apply_layers(const LayerStack& stack, array x, StreamOrDevice s = {}) {
  const LayerStackSizes& sizes = stack.sizes;
  for (int layer = 0; layer < sizes.layers; ++layer) {
    Dtype dtype = stack.dtype(layer);
    x = stack.kernel(
        {astype(x, dtype, s), stack.weights(layer), array(LayerStack::gain(layer))},
        {{sizes.width}}, {dtype}, {32 * sizes.width, 1, 1}, {32 * sizes.simdgroups, 1, 1},
        {{"T", dtype}, {"WIDTH", sizes.width}, {"SIMDGROUPS", sizes.simdgroups}}, {}, false, s)[0];
  }
  return astype(x, float32, s);
}

namespace detail {

// The order in which 32 lanes are added.
inline float lanes_sum(const float (&lanes)[32]) {
  float v[32];
  std::copy(lanes, lanes + 32, v);
  for (int distance = 16; distance > 0; distance /= 2) {
    float next[32];
    for (int i = 0; i < 32; ++i) next[i] = v[i] + v[i ^ distance];
    std::copy(next, next + 32, v);
  }
  return v[0];
}

template <class T>
void plain_layer(const LayerStack& stack, int layer, std::vector<float>& x) {
  const int width = stack.sizes.width, groups = stack.sizes.simdgroups;
  const array& all = stack.buffers[static_cast<size_t>(layer) % stack.buffers.size()];
  const T* w = all.data<T>() + static_cast<int64_t>(layer) * width * width;
  int row_stride = layer % 2 ? 1 : width, column_stride = layer % 2 ? width : 1;
  for (float& value : x) value = static_cast<float>(static_cast<T>(value));
  float total = 0, squares = 0;
  for (int group = 0; group < groups; ++group) {
    float totals[32] = {}, square_totals[32] = {};
    for (int lane = 0; lane < 32; ++lane) {
      for (int c = group * 32 + lane; c < width; c += 32 * groups) {
        float value = x[static_cast<size_t>(c)];
        totals[lane] += value;
        square_totals[lane] += value * value;
      }
    }
    total += lanes_sum(totals);
    squares += lanes_sum(square_totals);
  }
  float mean = total / static_cast<float>(width);
  float scale = 1.0f / std::sqrt(squares / static_cast<float>(width) - mean * mean + 1e-5f);
  std::vector<float> normal(x.size()), y(x.size());
  for (size_t c = 0; c < x.size(); ++c) normal[c] = (x[c] - mean) * scale;
  for (int row = 0; row < width; ++row) {
    float sums[32] = {};
    for (int c = 0; c < width; ++c) {
      sums[c % 32] += normal[static_cast<size_t>(c)] *
                      static_cast<float>(w[row * row_stride + c * column_stride]);
    }
    float value = x[static_cast<size_t>(row)] + LayerStack::gain(layer) * lanes_sum(sums);
    y[static_cast<size_t>(row)] = static_cast<float>(static_cast<T>(value));
  }
  x = std::move(y);
}

}  // namespace detail

// The same as apply_layers, in plain C++: equal bit for bit.
inline void apply_layers_plainly(const LayerStack& stack, std::vector<float>& x) {
  for (int layer = 0; layer < stack.sizes.layers; ++layer) {
    switch (stack.dtype(layer).val()) {
      case Dtype::Val::float16:
        detail::plain_layer<float16_t>(stack, layer, x);
        break;
      case Dtype::Val::bfloat16:
        detail::plain_layer<bfloat16_t>(stack, layer, x);
        break;
      default:
        detail::plain_layer<float>(stack, layer, x);
    }
  }
}

}  // namespace holdfast::bench
