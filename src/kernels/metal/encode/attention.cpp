#include <algorithm>
#include <optional>

#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/staging.h"

namespace holdfast::kernels::metal {
namespace {

#include "kernels/metal/support/attention_parameters.h"

// Rows are contiguous.
AttentionOperand operand_of(const array& a, const AttentionShape::Operand& strides) {
  const int64_t per_block = 16 / static_cast<int64_t>(a.itemsize());
  const bool aligned = is_aligned(a, 16) && a.shape(3) % per_block == 0 &&
                       strides.batch % per_block == 0 && strides.head % per_block == 0 &&
                       strides.position % per_block == 0;
  return {strides.batch, strides.head, strides.position, aligned};
}

// Which kernel there is for the dtype and the features, and how it is launched.
struct AttentionRoute {
  enum class Kind : uint8_t { splits, tiles, general } kind;
  std::string entry;
  int64_t rows;         // of a threadgroup
  int64_t units;        // threadgroups, of `splits` simdgroups, that keep a large GPU busy
  int64_t fewest_keys;  // of a split
};
constexpr int64_t most_attention_splits = 256;  // attention_combine
constexpr int64_t attention_split_step = 64;    // splits end at multiples of the keys of a tile

AttentionRoute route_of(Dtype dtype, int64_t rows, int64_t width) {
  const std::string name = dtype_name(dtype.val());
  if (dtype == float32 || width > 256) {
    const int64_t tile = rows <= 16 ? 16 : 64;
    return {AttentionRoute::Kind::general, "attention_general_" + std::to_string(tile) + '_' + name,
            tile, 512, 64};
  }
  if (rows <= 16) {
    return {AttentionRoute::Kind::splits,
            (width <= 128 ? "attention_splits_128_" : "attention_splits_256_") + name, 16, 1536,
            64};
  }
  return {AttentionRoute::Kind::tiles,
          "attention_tiles_" +
              std::to_string(width <= 64    ? 64
                             : width <= 128 ? 128
                                            : 256) +
              '_' + name,
          128, 264, 256};
}

}  // namespace

void MetalBackend::attention(Encoder& encoder, float scale, bool causal,
                             const AttentionInputs& inputs, array& out) {
  const int64_t rows_of_all =
      static_cast<int64_t>(inputs.queries.shape(1)) * inputs.queries.shape(2);
  if (rows_of_all > most_small_elements) throw exec::NoKernel();
  encoder.allocate(out);
  if (out.size() == 0) return;
  if (inputs.keys.shape(2) == 0) {
    const uint32_t zero = 0;
    return encoder.fill(out, &zero);
  }
  const array queries = make_rows_dense(encoder, inputs.queries);
  const array keys = make_rows_dense(encoder, inputs.keys);
  const array values = make_rows_dense(encoder, inputs.values);
  std::optional<array> sinks;
  if (inputs.sinks != nullptr) sinks = make_dense(encoder, *inputs.sinks);
  const AttentionShape shape =
      attention_shape({queries, keys, values, inputs.mask, nullptr}, scale, causal);
  const int64_t heads_per_group = shape.heads / shape.key_heads;
  const int64_t rows = heads_per_group * shape.queries, groups = shape.batch * shape.key_heads;
  const AttentionRoute route =
      route_of(out.dtype(), rows, std::max(shape.features, shape.value_features));
  const int64_t tiles = divide_up(rows, route.rows);
  const int64_t wanted =
      std::clamp(divide_up(route.units, groups * tiles), int64_t{1},
                 std::min(most_attention_splits, divide_up(shape.keys, route.fewest_keys)));
  const int64_t split_keys =
      divide_up(divide_up(shape.keys, wanted), attention_split_step) * attention_split_step;
  const int64_t splits = divide_up(shape.keys, split_keys);
  const int64_t partial_stride = divide_up(shape.value_features, 4) * 4 + 4;
  const Attention attention{operand_of(queries, shape.query_strides),
                            operand_of(keys, shape.key_strides),
                            operand_of(values, shape.value_strides),
                            shape.mask_batch,
                            shape.mask_head,
                            shape.mask_query,
                            shape.mask_key,
                            fit(rows),
                            fit(shape.key_heads),
                            fit(heads_per_group),
                            fit(shape.queries),
                            fit(shape.keys),
                            fit(shape.features),
                            fit(shape.value_features),
                            fit(split_keys),
                            fit(splits),
                            fit(partial_stride),
                            scale,
                            fit(shape.mask_kind),
                            causal,
                            sinks.has_value()};
  std::optional<array> partial;
  if (splits > 1)
    partial = make_temporary(
        encoder, static_cast<size_t>(groups * splits * rows * partial_stride) * sizeof(float));
  // An argument that is not used is the output.
  Launch launch(encoder,
                route.kind == AttentionRoute::Kind::general ? "attention_general" : "attention",
                route.entry);
  launch.with(queries, keys, values, inputs.mask != nullptr ? *inputs.mask : queries,
              sinks ? *sinks : queries, output(out), output(partial ? *partial : out), attention);
  const uint32_t depth = grid_length(encoder, groups, 1);
  if (route.kind == AttentionRoute::Kind::splits) {
    launch.over({grid_length(encoder, divide_up(splits, 4), 128), 1, depth}, {128});
  } else {
    const int64_t pieces = route.kind == AttentionRoute::Kind::tiles
                               ? 1
                               : divide_up(shape.value_features, 8192 / route.rows);
    launch.over({grid_length(encoder, tiles, 256), grid_length(encoder, splits * pieces, 1), depth},
                {256});
  }
  if (!partial) return;
  Launch(encoder, "attention", std::string("attention_combine_") + dtype_name(out.dtype().val()))
      .with(*partial, sinks ? *sinks : *partial, output(out), attention)
      .over({grid_length(encoder, rows, 256), depth}, {256});
}

}  // namespace holdfast::kernels::metal
