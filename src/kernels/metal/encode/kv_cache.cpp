#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/staging.h"

namespace holdfast::kernels::metal {
namespace {

#include "kernels/metal/support/kv_parameters.h"

constexpr int64_t paged_tile_rows = 8, paged_split_keys = 256, paged_header = 2;
constexpr int64_t most_kernel_tokens = 1 << 20;

uint number_kind(Dtype dtype) { return dtype == float32 ? 0 : dtype == float16 ? 1 : 2; }

struct StoredRows {
  KvFormat format;
  array matrix;  // of the rotation; nothing where it is not by a matrix
};
StoredRows stored_rows(const KvRows& rows, Dtype dtype) {
  KvFormat argument{fit(rows.dims),
                    fit(rows.bits),
                    fit(rows.packed_words()),
                    fit(rows.group()),
                    fit(rows.width()),
                    number_kind(dtype),
                    0,
                    1 / std::sqrt(static_cast<float>(rows.dims)),
                    {},
                    {},
                    {}};
  if (!rows.is_turbo()) return {argument, array(0.0f)};
  const auto tables = turbo_tables(rows);
  for (size_t i = 0; i < 16; ++i) {
    argument.codebook[i] = tables->codebook[i % tables->codebook.size()];
  }
  std::copy(tables->boundaries.begin(), tables->boundaries.end(), argument.boundaries);
  argument.rotation = tables->signs.empty() ? 2 : 1;
  for (size_t j = 0; j < tables->signs.size(); ++j) {
    if (tables->signs[j] < 0) argument.signs[j / 32] |= 1u << j % 32;
  }
  if (argument.rotation == 1) return {argument, array(0.0f)};
  return {argument, array(tables->matrix.begin(), {rows.dims, rows.dims})};
}

// Threadgroups of one simdgroup.
Encoder::Grid simdgroups(int64_t across, int64_t down) { return {fit(32 * across), fit(down)}; }

}  // namespace

void MetalBackend::kv_write(Encoder& encoder, const KvWrite& write, array& key_pool,
                            array& value_pool) {
  const int64_t tokens = write.slots.shape(0), heads = key_pool.shape(1);
  const StoredRows formats[] = {stored_rows(write.keys, key_pool.dtype()),
                                stored_rows(write.values, value_pool.dtype())};
  if (tokens > most_kernel_tokens) throw exec::NoKernel();
  if (tokens == 0 || heads == 0) return;
  array keys = make_dense(encoder, write.key_rows), values = make_dense(encoder, write.value_rows);
  array slots = make_dense(encoder, write.slots);
  const int64_t size = key_pool.shape(3), rooms = key_pool.shape(0) * size;
  for (int side = 0; side < 2; ++side) {
    const array& rows = side == 0 ? keys : values;
    Launch(encoder, "kv_cache", "kv_write")
        .input(rows)
        .input(slots)
        .input(formats[side].matrix)
        .output(side == 0 ? key_pool : value_pool)
        .value(formats[side].format)
        .value(KvSlots{fit(heads), fit(size), fit(rooms), number_kind(rows.dtype()), side == 0})
        .errors({text("[kv_write] slot {} of row {} must be less than ", rooms,
                      ", the blocks of the pools times their size")})
        .over(simdgroups(heads, tokens), {32});
  }
}

void MetalBackend::kv_convert(Encoder& encoder, const KvRows& format, bool encodes, const array& in,
                              array& out) {
  const StoredRows rows = stored_rows(format, float32);
  encoder.allocate(out);
  if (out.size() == 0) return;
  array dense = make_dense(encoder, in);
  const uint64_t count = (encodes ? dense : out).size() / static_cast<size_t>(format.dims);
  Launch(encoder, "kv_cache", encodes ? "kv_encode" : "kv_decode")
      .input(dense)
      .input(rows.matrix)
      .output(out)
      .value(rows.format)
      .value(number_kind((encodes ? dense : out).dtype()))
      .value(count)
      .groups(static_cast<int64_t>(count), 32);
}

void MetalBackend::paged_attention(Encoder& encoder, const PagedAttention& attention,
                                   const PagedInputs& inputs, array& out) {
  const StoredRows keys = stored_rows(attention.keys, inputs.key_pool.dtype());
  const StoredRows values = stored_rows(attention.values, inputs.value_pool.dtype());
  const int64_t sequences = inputs.lengths.shape(0), heads = inputs.queries.shape(-2);
  const int64_t row_size = heads * inputs.queries.shape(-1);
  const int64_t tokens = row_size == 0 ? 0 : static_cast<int64_t>(inputs.queries.size()) / row_size;
  const int64_t key_heads = inputs.key_pool.shape(1), blocks = inputs.key_pool.shape(0);
  if (tokens > most_kernel_tokens) throw exec::NoKernel();
  encoder.allocate(out);
  if (out.size() == 0) return;
  array queries = make_dense(encoder, inputs.queries);
  array key_pool = make_dense(encoder, inputs.key_pool);
  array value_pool = make_dense(encoder, inputs.value_pool);
  array table = make_dense(encoder, inputs.block_table);
  array lengths = make_dense(encoder, inputs.lengths);
  // An argument that is not there is another one.
  array starts = inputs.starts != nullptr ? make_dense(encoder, *inputs.starts) : lengths;
  std::optional<array> sinks;
  if (inputs.sinks != nullptr) sinks = make_dense(encoder, *inputs.sinks);
  const int64_t group = heads / key_heads, block_size = key_pool.shape(3);
  const int64_t splits = divide_up(table.shape(1) * block_size, paged_split_keys);
  const int64_t each = tokens / sequences;
  const Paged paged{fit(sequences),
                    fit(tokens),
                    fit(heads),
                    fit(key_heads),
                    fit(group),
                    fit(block_size),
                    fit(table.shape(1)),
                    fit(blocks),
                    fit(splits),
                    fit(each),
                    fit(attention.window),
                    number_kind(queries.dtype()),
                    attention.scale,
                    inputs.starts != nullptr,
                    sinks.has_value()};
  const auto rows = static_cast<size_t>(tokens * heads);
  array checked = make_temporary(encoder, sizeof(uint));
  Launch(encoder, "paged_attention", "paged_check")
      .input(table)
      .input(lengths)
      .input(starts)
      .output(checked)
      .value(paged)
      .errors(
          {text("[paged_attention] starts must begin with 0 and end with the number of tokens (",
                tokens, "), got {} and {}"),
           "[paged_attention] starts must not decrease, got {} before a smaller one at sequence {}",
           text("[paged_attention] length {} of sequence {} must be between 0 and ",
                table.shape(1) * block_size, ", what its row of the block table holds"),
           text("[paged_attention] an entry of the block table must be between 0 and ", blocks - 1,
                ", got {} for sequence {}")})
      .over(sequences, 64);
  array prepared = make_temporary(encoder, rows * static_cast<size_t>(attention.keys.dims) * 4);
  const auto partial_floats = static_cast<size_t>(splits * (paged_header + attention.values.dims));
  array partial = make_temporary(encoder, std::max<size_t>(1, rows * partial_floats) * 4);
  Launch(encoder, "paged_attention", "paged_prepare")
      .input(queries)
      .input(keys.matrix)
      .output(prepared)
      .value(paged)
      .value(keys.format)
      .over(simdgroups(heads, tokens), {32});
  const int64_t tiles = inputs.starts != nullptr
                            ? tokens * group / paged_tile_rows + sequences
                            : sequences * divide_up(each * group, paged_tile_rows);
  // Without blocks, nothing is there to be seen.
  if (splits > 0 && blocks > 0) {
    Launch(encoder, "paged_attention", "paged_splits")
        .input(prepared)
        .input(key_pool)
        .input(value_pool)
        .input(table)
        .input(lengths)
        .input(starts)
        .output(partial)
        .value(paged)
        .value(keys.format)
        .value(values.format)
        .over({grid_length(encoder, tiles * key_heads, 256), fit(splits)}, {256});
  }
  Launch(encoder, "paged_attention", "paged_combine")
      .input(partial)
      .input(lengths)
      .input(starts)
      .input(sinks ? *sinks : partial)
      .input(values.matrix)
      .input(checked)
      .output(out)
      .value(paged)
      .value(values.format)
      .over(simdgroups(heads, tokens), {32});
}

}  // namespace holdfast::kernels::metal
