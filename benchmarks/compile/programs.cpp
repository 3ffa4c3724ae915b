#include "benchmarks/compile/programs.h"

#include <holdfast/holdfast.h>

namespace holdfast::bench {
namespace {

using Arrays = std::vector<array>;

array gelu(const array& x) { return x * 0.5f * (1.0f + erf(x * 0.70710678f)); }

array layer_norm(const array& x, const array& weight, const array& bias) {
  array centred = x - mean(x, -1, true);
  array variance = mean(square(centred), -1, true);
  return centred * rsqrt(variance + 1e-5f) * weight + bias;
}

array cross_entropy(const array& logits, const array& targets) {
  array chosen = take_along_axis(logits, expand_dims(targets, -1), -1);
  return mean(logsumexp(logits, -1, true) - chosen);
}

// The cotangent is the last argument.
Arrays gelu_forward(const Arrays& a) { return {gelu(a[0])}; }
Arrays gelu_backward(const Arrays& a) {
  return vjp([](const Arrays& b) { return Arrays{gelu(b[0])}; }, {a[0]}, {a[1]}).second;
}
Arrays layer_norm_forward(const Arrays& a) { return {layer_norm(a[0], a[1], a[2])}; }
Arrays layer_norm_backward(const Arrays& a) {
  auto norm = [](const Arrays& b) { return layer_norm_forward(b); };
  return vjp(norm, {a[0], a[1], a[2]}, {a[3]}).second;
}
Arrays cross_entropy_forward(const Arrays& a) { return {cross_entropy(a[0], a[1])}; }
Arrays cross_entropy_backward(const Arrays& a) {
  auto [value, gradient] =
      value_and_grad([&](const array& x) { return cross_entropy(x, a[1]); })(a[0]);
  return {value, gradient};
}

// A quarter of the arguments each: parameters, gradients, first and second moments.
Arrays adam(const Arrays& a) {
  size_t count = a.size() / 4;
  Arrays results;
  for (size_t i = 0; i < count; ++i) {
    const array& gradient = a[count + i];
    array first = 0.9f * a[2 * count + i] + 0.1f * gradient;
    array second = 0.999f * a[3 * count + i] + 0.001f * square(gradient);
    results.push_back(a[i] - 1e-3f * first / (sqrt(second) + 1e-8f));
    results.push_back(first);
    results.push_back(second);
  }
  return results;
}

// x: (batch, time, features); weight and bias of the norm; projections of queries, keys, values and
// of the result.
Arrays attention_block(const Arrays& a) {
  constexpr int heads = 8;
  int batch = a[0].shape(0), time = a[0].shape(1), features = a[0].shape(2);
  array normed = layer_norm(a[0], a[1], a[2]);
  auto project = [&](const array& weight) {
    return transpose(reshape(matmul(normed, weight), {batch, time, heads, features / heads}),
                     {0, 2, 1, 3});
  };
  array queries = project(a[3]), keys = project(a[4]), values = project(a[5]);
  array scores = matmul(queries, swapaxes(keys, -1, -2)) * (1.0f / static_cast<float>(features));
  array places = arange(time);
  array mask = expand_dims(places, 1) >= expand_dims(places, 0);
  array weights = softmax(where(mask, scores, array(-1e9f)), -1);
  array mixed = reshape(transpose(matmul(weights, values), {0, 2, 1, 3}), {batch, time, features});
  return {a[0] + matmul(mixed, a[6])};
}

// x, targets, then weight and bias of each layer.
Arrays mlp_step(const Arrays& a) {
  auto loss = [&](const Arrays& p) {
    array hidden = maximum(matmul(a[0], p[0]) + p[1], array(0.0f));
    hidden = maximum(matmul(hidden, p[2]) + p[3], array(0.0f));
    return cross_entropy(matmul(hidden, p[4]) + p[5], a[1]);
  };
  Arrays parameters(a.begin() + 2, a.end());
  auto [value, gradients] = value_and_grad(loss, {0, 1, 2, 3, 4, 5})(parameters);
  Arrays results = {value};
  for (size_t i = 0; i < parameters.size(); ++i) {
    results.push_back(parameters[i] - 1e-4f * gradients[i]);
  }
  return results;
}

std::string repeated(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text + " ";
  return result;
}

}  // namespace

std::vector<CompiledProgram> compiled_programs() {
  std::string parameters = repeated("float32(256,256) float32(256)", 32);
  std::string moments = repeated("positive(256,256) positive(256)", 32);
  return {
      {"gelu 256 x 1024", "gelu", "float32(256,1024)", gelu_forward},
      {"gelu 8192 x 1024", "gelu", "float32(8192,1024)", gelu_forward},
      {"gelu backward 256 x 1024", "gelu_backward", "float32(256,1024) float32(256,1024)",
       gelu_backward},
      {"gelu backward 8192 x 1024", "gelu_backward", "float32(8192,1024) float32(8192,1024)",
       gelu_backward},
      {"layer norm 256 x 1024", "layer_norm", "float32(256,1024) float32(1024) float32(1024)",
       layer_norm_forward},
      {"layer norm 8192 x 1024", "layer_norm", "float32(8192,1024) float32(1024) float32(1024)",
       layer_norm_forward},
      {"layer norm backward 256 x 1024", "layer_norm_backward",
       "float32(256,1024) float32(1024) float32(1024) float32(256,1024)", layer_norm_backward},
      {"layer norm backward 8192 x 1024", "layer_norm_backward",
       "float32(8192,1024) float32(1024) float32(1024) float32(8192,1024)", layer_norm_backward},
      {"cross entropy 256 x 1024", "cross_entropy", "float32(256,1024) int32(256)<1024",
       cross_entropy_forward},
      {"cross entropy 1024 x 8192", "cross_entropy", "float32(1024,8192) int32(1024)<8192",
       cross_entropy_forward},
      {"cross entropy backward 256 x 1024", "cross_entropy_backward",
       "float32(256,1024) int32(256)<1024", cross_entropy_backward},
      {"cross entropy backward 1024 x 8192", "cross_entropy_backward",
       "float32(1024,8192) int32(1024)<8192", cross_entropy_backward},
      {"Adam step, 64 parameters, 2.1M", "adam", parameters + parameters + parameters + moments,
       adam},
      {"attention block 4 x 128 x 512", "attention_block",
       "float32(4,128,512) float32(512) float32(512) " + repeated("float32(512,512)", 4),
       attention_block},
      {"MLP step 128 x 784, 512, 512, 10", "mlp_step",
       "float32(128,784) int32(128)<10 float32(784,512) float32(512) float32(512,512) float32(512) "
       "float32(512,10) float32(10)",
       mlp_step},
  };
}

}  // namespace holdfast::bench
