#include "kernels/plan/attention.h"

#include <holdfast/array.h>

#include "kernels/views.h"

namespace holdfast::kernels {
namespace {

// Of an array without elements, nothing is looked at.
AttentionShape::Operand strides_of(const array& a) {
  if (a.size() == 0) return {};
  return {a.strides(0), a.strides(1), a.strides(2)};
}

}  // namespace

AttentionShape attention_shape(const AttentionInputs& inputs, float scale, bool causal) {
  const auto& [queries, keys, values, mask, sinks] = inputs;
  AttentionShape shape{.batch = queries.shape(0),
                       .heads = queries.shape(1),
                       .key_heads = keys.shape(1),
                       .queries = queries.shape(2),
                       .keys = keys.shape(2),
                       .features = queries.shape(3),
                       .value_features = values.shape(3),
                       .query_strides = strides_of(queries),
                       .key_strides = strides_of(keys),
                       .value_strides = strides_of(values),
                       .causal = causal,
                       .scale = static_cast<double>(scale)};
  if (mask == nullptr) return shape;
  Shape target{queries.shape(0), queries.shape(1), queries.shape(2), keys.shape(2)};
  Strides strides = broadcast_strides(mask->shape(), mask->strides(), target);
  shape.mask_kind = mask->dtype() == bool_ ? MaskKind::boolean : MaskKind::additive;
  shape.mask_batch = strides[0];
  shape.mask_head = strides[1];
  shape.mask_query = strides[2];
  shape.mask_key = strides[3];
  return shape;
}

}  // namespace holdfast::kernels
