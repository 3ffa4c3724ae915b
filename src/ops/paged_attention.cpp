// fast::paged_attention.
#include <holdfast/lm_ops.h>

#include "ops/inner.h"
#include "ops/kv_cache.h"
#include "ops/support.h"

namespace holdfast {

namespace {

// Inputs: queries, (tokens, heads, dims) or (sequences, tokens, heads, dims), the pools of keys and
// of values, the block table, the lengths; then starts and sinks (float32), where there are such.
class PagedAttention final : public Recorded<PagedAttention, Op> {
 public:
  PagedAttention(Stream stream, const kernels::PagedAttention& settings, bool has_starts,
                 bool has_sinks)
      : Recorded(stream), settings_(settings), has_starts_(has_starts), has_sinks_(has_sinks) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    const array* starts = has_starts_ ? &inputs[5] : nullptr;
    const array* sinks = has_sinks_ ? &inputs.back() : nullptr;
    kernels::backend_of(encoder).paged_attention(
        encoder, settings_, {inputs[0], inputs[1], inputs[2], inputs[3], inputs[4], starts, sinks},
        outputs[0]);
  }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    Shape shape = inputs[0].shape();
    shape.back() = settings_.values.dims;
    return {shape};
  }
  const char* name() const override { return "PagedAttention"; }
  auto members() const {
    return std::tie(settings_.keys.dims, settings_.keys.bits, settings_.keys.seed,
                    settings_.values.dims, settings_.values.bits, settings_.values.seed,
                    settings_.scale, settings_.window, has_starts_, has_sinks_);
  }

 private:
  kernels::PagedAttention settings_;
  bool has_starts_, has_sinks_;
};

}  // namespace

array fast::paged_attention(const array& queries, const array& key_pool, const array& value_pool,
                            const array& block_table, const array& lengths, float scale,
                            const KvScheme& scheme, const std::optional<array>& starts, int window,
                            const std::optional<array>& sinks, StreamOrDevice s) {
  constexpr const char* op = "paged_attention";
  auto fail = [](const auto&... parts) {
    throw std::invalid_argument(text("[paged_attention] ", parts...));
  };
  const KvPools pools = checked_pools(op, key_pool, value_pool, scheme);
  check_small_float(op, "queries", queries);
  const size_t dimensions = queries.ndim();
  if (starts ? dimensions != 3 : dimensions != 3 && dimensions != 4) {
    fail("queries must be (tokens, heads, dims)",
         starts ? " where there are starts" : " or (sequences, tokens, heads, dims)",
         ", got shape ", queries.shape());
  }
  const int heads = queries.shape(-2);
  if (queries.shape(-1) != scheme.keys.dims) {
    fail("last dimension of queries (", queries.shape(-1), ") must be that of the keys (",
         scheme.keys.dims, ")");
  }
  if (pools.heads == 0 ? heads != 0 : heads % pools.heads != 0) {
    fail("the number of query heads (", heads, ") must be a multiple of that of the pools (",
         pools.heads, ")");
  }
  const array table = checked_indices(op, "block_table", block_table, s);
  const array counts = checked_indices(op, "lengths", lengths, s);
  if (table.ndim() != 2 || counts.ndim() != 1 || table.shape(0) != counts.shape(0)) {
    fail("block_table (sequences, most blocks) and lengths (sequences) must agree, got shapes ",
         table.shape(), " and ", counts.shape());
  }
  std::vector<array> inputs{queries, key_pool, value_pool, table, counts};
  if (starts) {
    inputs.push_back(checked_indices(op, "starts", *starts, s));
    if (inputs.back().shape() != Shape{counts.shape(0) + 1}) {
      fail("starts must have one element more than there are sequences (", counts.shape(0),
           "), got shape ", starts->shape());
    }
  } else if (queries.shape(0) != counts.shape(0)) {
    fail("queries and lengths must have one sequence each, got shapes ", queries.shape(), " and ",
         counts.shape());
  }
  if (window < 0) fail("window must be 0 (all keys) or more, got ", window);
  if (sinks) {
    if (sinks->shape() != Shape{heads}) {
      fail("sinks must be one for each of ", heads, " query heads, got shape ", sinks->shape());
    }
    check_small_float(op, "sinks", *sinks);
    inputs.push_back(astype(*sinks, float32, s));
  }
  Shape shape = queries.shape();
  shape.back() = scheme.values.dims;
  checked_size(op, shape, queries.dtype());
  const kernels::PagedAttention settings{checked_format(op, "keys", scheme.keys),
                                         checked_format(op, "values", scheme.values), scale,
                                         window};
  return make_node<PagedAttention>(std::move(shape), queries.dtype(), std::move(inputs), s,
                                   settings, starts.has_value(), sinks.has_value());
}

}  // namespace holdfast
