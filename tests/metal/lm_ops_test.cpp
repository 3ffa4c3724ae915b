#include <doctest/doctest.h>

#include <tuple>

#include "metal/comparison.h"

using namespace holdfast;
using namespace holdfast::testing;
using fast::KvScheme;

namespace {

// A cache with `tokens` rows in the case's layout, in every third slot.
struct Cache {
  KvScheme scheme;
  array keys, values;
};
Cache cache_of(Case& c, const char* name, int heads, int dims, int tokens, Dtype dtype) {
  const KvScheme scheme = KvScheme::named(name, dims);
  auto [keys, values] = fast::kv_pools(scheme, (3 * tokens + 15) / 16 + 1, heads, 16, dtype);
  std::tie(keys, values) =
      fast::kv_write(keys, values, c.input({tokens, heads, dims}), c.input({tokens, heads, dims}),
                     arange(0, 3 * tokens, 3, int32), scheme);
  return {scheme, keys, values};
}
// As numbers: norms may differ in the last place.
array read(const array& rows, const fast::KvFormat& format) {
  return format.bits == 0 ? rows : fast::kv_decode(rows, format);
}

const char* const schemes[] = {"dense", "affine8", "turbo4v2", "turbo3", "turbo2", "turbo0v4"};

const Row lm_rows[] = {
    {.name = "rows of caches to words and back",
     .entries = {"kv_encode", "kv_decode"},
     .dtypes = float_dtypes,
     .shapes = {{3, 64}, {2, 5, 128}, {0, 32}, {1, 16}, {70, 256}, {1024}, {5, 80}},
     .layouts = all_layouts,
     .build =
         [](Case& c) {
           const array x = c.input(c.shape);
           std::vector<array> results;
           for (int bits : {2, 3, 4, 8}) {
             const fast::KvFormat format{c.shape.back(), bits, 5};
             results.push_back(fast::kv_decode(fast::kv_encode(x, format), format, c.dtype));
           }
           return results;
         },
     .tolerance = 16},
    // Shapes: heads, dims, tokens.
    {.name = "rows into caches",
     .entries = {"kv_write"},
     .dtypes = float_dtypes,
     .shapes = {{2, 64, 7}, {1, 128, 40}, {3, 16, 1}, {1, 48, 3}},
     .layouts = all_layouts,
     .build =
         [](Case& c) {
           std::vector<array> results;
           for (const char* name : schemes) {
             const Cache cache = cache_of(c, name, c.shape[0], c.shape[1], c.shape[2], c.dtype);
             results.push_back(read(transpose(cache.keys, {0, 1, 3, 2}), cache.scheme.keys));
             results.push_back(read(cache.values, cache.scheme.values));
           }
           return results;
         },
     .tolerance = 16},
    // Shapes: sequences, tokens of each, heads, key heads, dims, tokens in the cache.
    {.name = "paged attention",
     .entries = {"paged_check", "paged_prepare", "paged_splits", "paged_combine"},
     .dtypes = float_dtypes,
     .shapes =
         {{3, 1, 4, 2, 64, 40}, {1, 5, 6, 1, 128, 120}, {2, 3, 2, 2, 256, 9}, {2, 1, 3, 3, 80, 20}},
     .layouts = {Layout::dense, Layout::padded, Layout::reversed},
     .build =
         [](Case& c) {
           const int sequences = c.shape[0], tokens = c.shape[1], heads = c.shape[2];
           std::vector<array> results;
           for (const char* name : schemes) {
             const Cache cache = cache_of(c, name, c.shape[3], c.shape[4], c.shape[5], c.dtype);
             const int blocks = cache.keys.shape(0);
             const array table = c.integers({sequences, blocks}, int32, 0, blocks);
             const array lengths = c.integers({sequences}, int32, 0, 16 * blocks + 1);
             const array queries = c.input({sequences, tokens, heads, c.shape[4]});
             auto attend = [&](int window, const std::optional<array>& sinks) {
               return fast::paged_attention(queries, cache.keys, cache.values, table, lengths,
                                            0.05f, cache.scheme, std::nullopt, window, sinks);
             };
             results.push_back(attend(0, std::nullopt));
             results.push_back(attend(20, c.input({heads})));
             // Ragged: the first sequence has all tokens.
             std::vector<int> starts(static_cast<size_t>(sequences) + 1, sequences * tokens);
             starts[0] = 0;
             results.push_back(fast::paged_attention(
                 flatten(queries, 0, 1), cache.keys, cache.values, table, lengths, 0.05f,
                 cache.scheme, array(starts.begin(), {sequences + 1}, int32)));
           }
           return results;
         },
     .tolerance = 400},
    // Shapes: sequences, tokens of each, key heads, value heads, key dims, value dims.
    {.name = "gated delta rule",
     .entries = {"gated_delta_float32", "gated_delta_float16", "gated_delta_bfloat16"},
     .dtypes = float_dtypes,
     .shapes = {{2, 1, 1, 2, 64, 8}, {1, 9, 2, 2, 40, 3}, {3, 4, 1, 3, 256, 2}},
     .layouts = {Layout::dense, Layout::padded, Layout::reversed},
     .build =
         [](Case& c) {
           const int sequences = c.shape[0], tokens = c.shape[1], heads = c.shape[3];
           const int key_dims = c.shape[4];
           const array small(0.05f, c.dtype);
           const array queries =
               multiply(c.input({sequences, tokens, c.shape[2], key_dims}), small);
           const array keys = multiply(c.input({sequences, tokens, c.shape[2], key_dims}), small);
           const array values = c.input({sequences, tokens, heads, c.shape[5]});
           const array beta = sigmoid(c.input({sequences, tokens, heads}, float32));
           const array states = c.input({sequences + 1, heads, c.shape[5], key_dims}, float32);
           std::vector<array> results;
           for (bool by_feature : {false, true}) {
             Shape decay{sequences, tokens, heads};
             if (by_feature) decay.push_back(key_dims);
             fast::Sequences some;
             if (by_feature) {
               some.slots = arange(sequences, 0, -1, int32);
               some.fresh = c.input({sequences}, bool_);
               some.mask = c.input({sequences, tokens}, bool_);
             }
             auto [y, after] = fast::gated_delta(
                 queries, keys, values, sigmoid(c.input(decay, float32)), beta, states, some);
             results.push_back(y);
             results.push_back(after);
           }
           return results;
         },
     .tolerance = 60},
    // Shapes: sequences, tokens of each, channels, width.
    {.name = "causal convolution",
     .entries = {"causal_conv_float32", "causal_conv_float16", "causal_conv_bfloat16"},
     .dtypes = float_dtypes,
     .shapes = {{2, 1, 64, 4}, {1, 9, 3, 2}, {3, 4, 300, 16}},
     .layouts = all_layouts,
     .build =
         [](Case& c) {
           const int sequences = c.shape[0], tokens = c.shape[1], channels = c.shape[2];
           const array x = c.input({sequences, tokens, channels});
           const array weight = c.input({channels, c.shape[3]});
           std::vector<array> results;
           for (Dtype dtype : {float32, c.dtype}) {
             const array states = c.input({sequences + 1, c.shape[3] - 1, channels}, dtype);
             fast::Sequences some;
             some.slots = arange(-1, sequences - 1, 1, int32);
             some.mask = c.input({sequences, tokens}, bool_);
             for (const fast::Sequences& which : {fast::Sequences{}, some}) {
               auto [y, after] = fast::causal_conv(x, weight, states, c.input({channels}), which);
               results.push_back(y);
               results.push_back(after);
             }
           }
           return results;
         },
     .tolerance = 8},
};

}  // namespace

TEST_CASE("metal ops of language models") {
  for (const Row& row : lm_rows) compare(row);
}
