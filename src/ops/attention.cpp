// fast::scaled_dot_product_attention.
#include <holdfast/fast.h>

#include "ops/dynamic_shape.h"
#include "ops/inner.h"
#include "ops/support.h"

namespace holdfast {

namespace {

// Inputs: queries, keys, values (one dtype), then the mask (bool, or the compute dtype) and the
// sinks (compute dtype), where there are such.
class Attention final : public Recorded<Attention, Op> {
 public:
  Attention(Stream stream, float scale, bool causal, bool has_mask, bool has_sinks)
      : Recorded(stream),
        scale_(scale),
        causal_(causal),
        has_mask_(has_mask),
        has_sinks_(has_sinks) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> decomposed(const std::vector<array>& inputs) override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    Shape shape = inputs[0].shape();
    shape.back() = inputs[2].shape(-1);
    return {shape};
  }
  const char* name() const override { return "ScaledDotProductAttention"; }
  auto members() const { return std::tie(scale_, causal_, has_mask_, has_sinks_); }

 private:
  float scale_;
  bool causal_, has_mask_, has_sinks_;
};

void Attention::encode(Encoder& encoder, const std::vector<array>& inputs,
                       std::vector<array>& outputs) {
  const array* mask = has_mask_ ? &inputs[3] : nullptr;
  const array* sinks = has_sinks_ ? &inputs.back() : nullptr;
  kernels::backend_of(encoder).attention(
      encoder, scale_, causal_, {inputs[0], inputs[1], inputs[2], mask, sinks}, outputs[0]);
}

// Sinks are one more score in each row, which takes its share and gives nothing.
std::vector<array> Attention::decomposed(const std::vector<array>& inputs) {
  Stream s = stream();
  Dtype dtype = inputs[0].dtype(), wide = dtype == float64 ? float64 : float32;
  array queries = astype(inputs[0], wide, s), keys = astype(inputs[1], wide, s),
        values = astype(inputs[2], wide, s);
  int heads = queries.shape(1), rows = queries.shape(2), columns = keys.shape(2);
  // What has no elements, or nothing to attend to, depends on nothing.
  if (queries.shape(0) == 0 || heads == 0 || rows == 0 || values.size() == 0) {
    return {zeros({queries.shape(0), heads, rows, values.shape(3)}, dtype, s)};
  }
  if (keys.shape(1) != heads) {
    keys = repeat(keys, heads / keys.shape(1), 1, s);
    values = repeat(values, heads / values.shape(1), 1, s);
  }
  array scores = matmul(multiply(queries, array(scale_, wide), s), swapaxes(keys, -1, -2, s), s);
  // As the kernel: a query that may see nothing sees all alike.
  array never = wide == float64 ? array(std::numeric_limits<double>::lowest(), float64)
                                : array(std::numeric_limits<float>::lowest());
  if (causal_) {
    scores = where(tri(rows, columns, columns - rows, bool_, s), scores, never, s);
  }
  if (has_mask_) {
    scores = inputs[3].dtype() == bool_ ? where(inputs[3], scores, never, s)
                                        : add(scores, astype(inputs[3], wide, s), s);
  }
  if (has_sinks_) {
    Shape shape = scores.shape();
    shape.back() = 1;
    array sinks = broadcast_here(reshape_here(inputs.back(), {heads, 1, 1}, s), shape, s);
    scores = concatenate({astype(sinks, wide, s), scores}, -1, s);
  }
  array weights = softmax(scores, -1, true, s);
  if (has_sinks_) weights = split(weights, Shape{1}, -1, s)[1];
  return {astype(matmul(weights, values, s), dtype, s)};
}

}  // namespace

array fast::scaled_dot_product_attention(const array& queries, const array& keys,
                                         const array& values, float scale,
                                         const std::string& mask_mode,
                                         const std::optional<array>& mask_arr,
                                         const std::optional<array>& sinks, bool /*force_fused*/,
                                         StreamOrDevice s) {
  return attend(queries, keys, values, scale, mask_mode, mask_arr, sinks, false, s);
}

array attend(const array& queries, const array& keys, const array& values, float scale,
             const std::string& mask_mode, const std::optional<array>& mask_arr,
             const std::optional<array>& sinks, bool is_mask_converted, StreamOrDevice s) {
  auto fail = [](const auto&... parts) {
    throw std::invalid_argument(text("[scaled_dot_product_attention] ", parts...));
  };
  for (const array* a : {&queries, &keys, &values}) {
    if (a->ndim() != 4) {
      fail("expected queries, keys and values with four dimensions, got shape ", a->shape());
    }
  }
  if (keys.shape(0) != queries.shape(0) || values.shape(0) != queries.shape(0)) {
    fail("batch sizes must match: queries ", queries.shape(), ", keys ", keys.shape(), ", values ",
         values.shape());
  }
  if (queries.shape(3) != keys.shape(3)) {
    fail("last dimension of queries (", queries.shape(3), ") must match that of keys (",
         keys.shape(3), ")");
  }
  if (keys.shape(1) != values.shape(1) || keys.shape(2) != values.shape(2)) {
    fail("heads and positions of keys and values must match, got shapes ", keys.shape(), " and ",
         values.shape());
  }
  if (keys.shape(1) == 0 ? queries.shape(1) != 0 : queries.shape(1) % keys.shape(1) != 0) {
    fail("the number of query heads (", queries.shape(1),
         ") must be a multiple of that of key heads (", keys.shape(1), ")");
  }
  Dtype dtype = promote_types(promote_types(queries.dtype(), keys.dtype()), values.dtype());
  if (!issubdtype(dtype, floating)) fail("expected a floating dtype, got ", dtype);
  bool has_mask = mask_arr.has_value();
  if (mask_mode != "" && mask_mode != "causal" && mask_mode != "array") {
    fail("expected mask mode \"causal\", \"array\" or none, got \"", mask_mode, "\"");
  }
  if (has_mask ? mask_mode == "causal" : mask_mode == "array") {
    fail("expected a mask array with mode \"array\" only, got mode \"", mask_mode, "\" and ",
         has_mask ? "an array" : "no array");
  }
  Dtype compute = dtype == float64 ? float64 : float32;
  std::vector<array> inputs{astype(queries, dtype, s), astype(keys, dtype, s),
                            astype(values, dtype, s)};
  if (has_mask) {
    Shape target{queries.shape(0), queries.shape(1), queries.shape(2), keys.shape(2)};
    if (mask_arr->ndim() > 4 ||
        broadcast_shapes_for("scaled_dot_product_attention", mask_arr->shape(), target) != target) {
      fail("expected a mask that broadcasts to ", target, ", got shape ", mask_arr->shape());
    }
    if (!is_mask_converted && promote_types(mask_arr->dtype(), dtype) != dtype) {
      fail("expected a mask of bool or of a dtype that promotes to ", dtype, ", got ",
           mask_arr->dtype());
    }
    inputs.push_back(mask_arr->dtype() == bool_ ? *mask_arr : astype(*mask_arr, compute, s));
  }
  if (sinks) {
    if (sinks->ndim() != 1 || sinks->shape(0) != queries.shape(1)) {
      fail("expected sinks of shape (", queries.shape(1), "), one for each query head, got shape ",
           sinks->shape());
    }
    if (!is_mask_converted && promote_types(sinks->dtype(), dtype) != dtype) {
      fail("expected sinks of a dtype that promotes to ", dtype, ", got ", sinks->dtype());
    }
    inputs.push_back(astype(*sinks, compute, s));
  }
  Shape shape{queries.shape(0), queries.shape(1), queries.shape(2), values.shape(3)};
  checked_size("scaled_dot_product_attention", shape, dtype);
  return make_node<Attention>(std::move(shape), dtype, std::move(inputs), s, scale,
                              mask_mode == "causal", has_mask, sinks.has_value());
}

}  // namespace holdfast
