// Ops of language models at the sizes of a step that decodes: how fast caches and states are read,
// beside what the machine's memory gives.
#include <holdfast/fast.h>
#include <holdfast/holdfast.h>

#include <cmath>
#include <numeric>
#include <utility>

#include "benchmarks/bench.h"
#include "benchmarks/roofline.h"

namespace holdfast::bench {
namespace {

constexpr size_t pool_bytes = size_t{512} << 20;  // larger than any cache
constexpr int block_size = 32;

struct Heads {
  int queries, keys, dims;
};
struct Batch {
  int sequences, length;
};

// One token of each sequence; calls take other blocks of the pools in turn.
void decode_attention(Report& report, const Options& options, const char* name, Heads heads,
                      Batch batch, const HugeBuffer& plain) {
  const fast::KvScheme scheme = fast::KvScheme::named(name, heads.dims);
  const size_t item = scheme.keys.bits == 0 ? 2 : 4, value_item = scheme.values.bits == 0 ? 2 : 4;
  const size_t token_bytes =
      static_cast<size_t>(heads.keys) * (static_cast<size_t>(scheme.keys.width()) * item +
                                         static_cast<size_t>(scheme.values.width()) * value_item);
  const int blocks_of_one = batch.length / block_size;
  const int blocks_of_call = batch.sequences * blocks_of_one;
  const int blocks =
      std::max(blocks_of_call,
               static_cast<int>(pool_bytes / (token_bytes * static_cast<size_t>(block_size))));
  auto [keys, values] = fast::kv_pools(scheme, blocks, heads.keys, block_size, bfloat16);
  const array queries = random::normal({batch.sequences, heads.queries, heads.dims}, bfloat16);
  const array lengths = full({batch.sequences}, batch.length, int32);
  eval(keys, values, queries, lengths);
  std::vector<array> tables;
  for (int first = 0; first + blocks_of_call <= blocks; first += blocks_of_call) {
    tables.push_back(
        reshape(arange(first, first + blocks_of_call, 1, int32), {batch.sequences, blocks_of_one}));
    eval(tables.back());
  }
  const size_t bytes =
      token_bytes * static_cast<size_t>(batch.length) * static_cast<size_t>(batch.sequences);
  Roofline& roofline = Roofline::get();
  size_t turn = 0, place = 0;
  const size_t count = std::min(bytes / sizeof(float), plain.size());
  Pairs pairs = interleave(
      options.seconds(),
      [&] {
        eval(fast::paged_attention(queries, keys, values, tables[++turn % tables.size()], lengths,
                                   1 / std::sqrt(static_cast<float>(heads.dims)), scheme));
      },
      [&] {
        if (place + count > plain.size()) place = 0;
        volatile float sum = roofline.read(plain.data() + place, count);
        (void)sum;
        place += count;
      });
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  const double read = static_cast<double>(count * sizeof(float)) / 1e9;
  report.add({.name = "attention " + std::string(name) + ", " + std::to_string(heads.queries) +
                      "/" + std::to_string(heads.keys) + " x " + std::to_string(heads.dims) +
                      ", B " + std::to_string(batch.sequences) + " x " +
                      std::to_string(batch.length),
              .value = gigabytes / median(pairs.a),
              .unit = "GB/s",
              .reference = "hand-written read, all cores",
              .reference_value = read / median(pairs.b),
              .ratio = gigabytes / read / pairs.ratio(),
              .note = std::to_string(static_cast<int>(median(pairs.a) * 1e6)) + " µs, " +
                      describe(pairs, true)});
}

// The states of the gated delta net of Qwen3.5-35B-A3B.
void decode_delta(Report& report, const Options& options, int sequences, const HugeBuffer& plain) {
  constexpr int key_heads = 16, heads = 32, dims = 128;
  const Shape row{sequences, 1, key_heads, dims}, value_row{sequences, 1, heads, dims};
  const array queries = random::normal(row, bfloat16), keys = random::normal(row, bfloat16);
  const array values = random::normal(value_row, bfloat16);
  const array decay = full({sequences, 1, heads}, 0.9f), beta = full({sequences, 1, heads}, 0.01f);
  array states = zeros({std::max(sequences, 64), heads, dims, dims});
  eval(queries, keys, values, decay, beta, states);
  const size_t count = static_cast<size_t>(sequences) * heads * dims * dims;
  HugeBuffer target(count);
  int first = 0;
  Pairs pairs = interleave(
      options.seconds(),
      [&] {
        // Others in turn, since those of a few sequences stay in the caches.
        fast::Sequences places;
        places.slots = arange(first, first + sequences, 1, int32);
        first = first + 2 * sequences <= states.shape(0) ? first + sequences : 0;
        array y(0);
        std::tie(y, states) =
            fast::gated_delta(queries, keys, values, decay, beta, std::move(states), places);
        eval(y, states);
      },
      [&] { Roofline::get().copy(plain.data(), target.data(), std::min(count, plain.size())); });
  const double gigabytes = 2 * static_cast<double>(count) * sizeof(float) / 1e9;
  report.add({.name = "gated delta, 32 x 128 x 128, B " + std::to_string(sequences),
              .value = gigabytes / median(pairs.a),
              .unit = "GB/s",
              .reference = "hand-written copy, all cores",
              .reference_value = gigabytes / median(pairs.b),
              .ratio = 1 / pairs.ratio(),
              .note = describe(pairs, true)});
}

}  // namespace

void run_lm_ops(Report& report, const Options& options) {
  const HugeBuffer plain(pool_bytes / sizeof(float));
  for (Heads heads : {Heads{32, 8, 128}, Heads{16, 2, 256}}) {
    for (const char* name : {"dense", "affine8", "turbo4v2"}) {
      for (Batch batch : {Batch{1, 8192}, Batch{16, 2048}, Batch{64, 1024}}) {
        decode_attention(report, options, name, heads, batch, plain);
      }
    }
  }
  for (int sequences : {1, 16, 64}) decode_delta(report, options, sequences, plain);
}

}  // namespace holdfast::bench
