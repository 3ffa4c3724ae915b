#include <stdexcept>

#include "base/text.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/kv_rows.h"
#include "kernels/cpu/paged_attention.h"
#include "kernels/cpu/simd/quantized_kernels.h"
#include "kernels/cpu/task_scratch.h"
#include "kernels/staging.h"

namespace holdfast::kernels::cpu {
namespace {

// Rows (tokens, heads, dims) and the pool that they go to.
struct WrittenRows {
  KvCodec codec;
  int64_t heads, blocks, block_size;
  Dtype from, pool;
  bool is_columns;  // a row is a column of its block: keys

  int64_t item() const { return codec.rows().bits > 0 ? 4 : static_cast<int64_t>(pool.size()); }
  // Row by row of one token, into `slot`. `scratch`: 2 dims floats, and a stored row.
  void write(const char* rows, int64_t token, int64_t slot, char* to, float* scratch) const {
    const int64_t dims = codec.rows().dims, width = codec.rows().width(), size = item();
    const simd::QuantizedKernels& convert = simd::quantized_kernels();
    auto* stored = reinterpret_cast<char*>(scratch + 2 * dims);
    const int64_t block = slot / block_size, place = slot % block_size;
    for (int64_t head = 0; head < heads; ++head) {
      convert.widen(from.val(),
                    rows + (token * heads + head) * dims * static_cast<int64_t>(from.size()), dims,
                    scratch);
      char* target = to + (block * heads + head) * width * block_size * size;
      char* row = is_columns ? stored : target + place * width * size;
      if (codec.rows().bits > 0) {
        codec.encode(scratch, scratch + dims, reinterpret_cast<uint32_t*>(row));
      } else {
        convert.narrow(pool.val(), scratch, dims, row);
      }
      if (!is_columns) continue;
      if (size == 4) {
        put_column(reinterpret_cast<const uint32_t*>(stored), width,
                   reinterpret_cast<uint32_t*>(target) + place);
      } else {
        put_column(reinterpret_cast<const uint16_t*>(stored), width,
                   reinterpret_cast<uint16_t*>(target) + place);
      }
    }
  }
  template <typename Unit>
  void put_column(const Unit* row, int64_t width, Unit* column) const {
    for (int64_t j = 0; j < width; ++j) column[j * block_size] = row[j];
  }
};

WrittenRows written_rows(const KvRows& format, const array& rows, const array& pool,
                         bool is_columns) {
  return {KvCodec(format), pool.shape(1), pool.shape(0), pool.shape(is_columns ? 3 : 2),
          rows.dtype(),    pool.dtype(),  is_columns};
}

}  // namespace

void CpuBackend::kv_write(Encoder& encoder, const KvWrite& write, array& key_pool,
                          array& value_pool) {
  const int64_t tokens = write.slots.shape(0);
  if (tokens == 0) return;
  array keys = make_dense(encoder, write.key_rows), values = make_dense(encoder, write.value_rows);
  array slots = make_dense(encoder, write.slots);
  const WrittenRows sides[] = {written_rows(write.keys, keys, key_pool, true),
                               written_rows(write.values, values, value_pool, false)};
  const Bound from[] = {encoder.input(keys), encoder.input(values)};
  const Bound places = encoder.input(slots);
  encoder.input(key_pool);
  encoder.input(value_pool);
  const Bound to[] = {encoder.output(key_pool), encoder.output(value_pool)};
  const int64_t rooms = sides[0].blocks * sides[0].block_size;
  const int64_t largest = std::max(write.keys.dims, write.values.dims);
  // A number costs some ten times as much as moving it: rotations, comparisons.
  const auto work = static_cast<int64_t>(10 * (keys.nbytes() + values.nbytes()));
  encoder.native(
      encoder.op(), tokens, work,
      [=, first = sides[0], second = sides[1]](const NativeContext& context, int64_t begin,
                                               int64_t end) {
        const auto* slot = context.data<const int32_t>(places);
        TaskScratch scratch(static_cast<size_t>(4 * largest) * sizeof(float));
        auto* room = static_cast<float*>(scratch.get());
        for (int64_t token = begin; token < end; ++token) {
          if (slot[token] < 0) continue;
          if (slot[token] >= rooms) {
            throw std::out_of_range(text("[kv_write] slot ", slot[token], " of row ", token,
                                         " must be less than ", rooms,
                                         ", the blocks of the pools times their size"));
          }
          first.write(context.data(from[0]), token, slot[token], context.data(to[0]), room);
          second.write(context.data(from[1]), token, slot[token], context.data(to[1]), room);
        }
      });
}

void CpuBackend::kv_convert(Encoder& encoder, const KvRows& format, bool encodes, const array& in,
                            array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  array rows = make_dense(encoder, in);
  const KvCodec codec(format);
  const Bound source = encoder.input(rows), target = encoder.output(out);
  const array& numbers = encodes ? rows : out;
  const Dtype::Val dtype = numbers.dtype().val();
  const int64_t dims = format.dims, width = format.width();
  const int64_t row_bytes = dims * static_cast<int64_t>(numbers.itemsize());
  encoder.native(encoder.op(), static_cast<int64_t>(numbers.size()) / dims,
                 static_cast<int64_t>(10 * numbers.nbytes()),
                 [=](const NativeContext& context, int64_t begin, int64_t end) {
                   const simd::QuantizedKernels& convert = simd::quantized_kernels();
                   TaskScratch scratch(static_cast<size_t>(2 * dims) * sizeof(float));
                   auto* row = static_cast<float*>(scratch.get());
                   const char* from = context.data(source);
                   char* to = context.data(target);
                   for (int64_t i = begin; i < end; ++i) {
                     if (encodes) {
                       convert.widen(dtype, from + i * row_bytes, dims, row);
                       codec.encode(row, row + dims, reinterpret_cast<uint32_t*>(to) + i * width);
                     } else {
                       codec.decode(reinterpret_cast<const uint32_t*>(from) + i * width, row,
                                    row + dims);
                       convert.narrow(dtype, row, dims, to + i * row_bytes);
                     }
                   }
                 });
}

void CpuBackend::paged_attention(Encoder& encoder, const PagedAttention& attention,
                                 const PagedInputs& inputs, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  array queries = make_dense(encoder, inputs.queries);
  array key_pool = make_dense(encoder, inputs.key_pool);
  array value_pool = make_dense(encoder, inputs.value_pool);
  array table = make_dense(encoder, inputs.block_table);
  array lengths = make_dense(encoder, inputs.lengths);
  std::optional<array> starts, sinks;
  if (inputs.starts != nullptr) starts = make_dense(encoder, *inputs.starts);
  if (inputs.sinks != nullptr) sinks = make_dense(encoder, *inputs.sinks);
  const int64_t heads = queries.shape(-2);
  const int64_t tokens = static_cast<int64_t>(queries.size()) / (heads * queries.shape(-1));
  const PagedPlan plan(
      attention,
      {table.shape(0), tokens, heads, key_pool.shape(1), key_pool.shape(0), key_pool.shape(3),
       table.shape(1), starts.has_value(), queries.dtype(), key_pool.dtype(), value_pool.dtype()});
  array prepared = make_temporary(encoder, plan.prepared_bytes());
  std::optional<array> partial;
  if (plan.stages() == 3) partial = make_temporary(encoder, plan.partial_bytes());
  // Lengths are not known here: as much is read as the tables could name.
  const auto row_bytes = static_cast<int64_t>(key_pool.nbytes() + value_pool.nbytes()) /
                         std::max(1, key_pool.shape(0));
  const int64_t read = static_cast<int64_t>(table.size()) * row_bytes;
  for (int stage = 0; stage < plan.stages(); ++stage) {
    const bool is_last = stage == plan.stages() - 1;
    Bound query, key, value, blocks, length, start, sink, ready, part, target;
    blocks = encoder.input(table);
    length = encoder.input(lengths);
    if (starts) start = encoder.input(*starts);
    if (stage == 0) {
      query = encoder.input(queries);
      ready = encoder.output(prepared);
    } else if (stage == 1) {
      key = encoder.input(key_pool);
      value = encoder.input(value_pool);
      ready = encoder.input(prepared);
      if (partial) part = encoder.output(*partial);
    } else {
      part = encoder.input(*partial);
    }
    if (is_last) {
      if (sinks) sink = encoder.input(*sinks);
      target = encoder.output(out);
    }
    const int64_t tasks = plan.tasks(stage);
    if (tasks == 0) continue;
    const int64_t work =
        stage == 1 ? read
                   : static_cast<int64_t>(4 * plan.prepared_bytes() + plan.partial_bytes() / 4);
    encoder.native(
        encoder.op(), tasks, work, [=](const NativeContext& context, int64_t begin, int64_t end) {
          TaskScratch scratch(plan.task_scratch_bytes(stage));
          plan.run(stage, begin, end,
                   {context.data(query), context.data(key), context.data(value),
                    context.data<const int32_t>(blocks), context.data<const int32_t>(length),
                    context.data<const int32_t>(start), context.data<const float>(sink),
                    context.data<float>(ready), context.data<float>(part), context.data(target)},
                   scratch.get());
        });
  }
}

}  // namespace holdfast::kernels::cpu
