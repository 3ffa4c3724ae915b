// fast::paged_attention against the definition, over what the caches give back.
#include "ops/numeric_testing.h"

using namespace holdfast;
using namespace holdfast::testing;
using fast::KvScheme;

namespace {

struct Sequence {
  int length = 0;  // tokens in the cache
  int tokens = 1;  // of these, the queries
};

// A batch whose blocks are in a random order, with a few that belong to no sequence.
struct Batch {
  KvScheme scheme;
  std::vector<Sequence> sequences;
  int heads, key_heads, block_size;
  Dtype dtype = float32, pool_dtype = float32;
  std::vector<std::vector<int>> blocks = {};
  array queries = array(0), key_pool = array(0), value_pool = array(0), table = array(0),
        lengths = array(0), starts = array(0);
  // (key heads, length, dims) of each sequence, as the cache gives them back.
  std::vector<std::vector<double>> keys = {}, values = {};

  int tokens() const {
    int all = 0;
    for (const Sequence& sequence : sequences) all += sequence.tokens;
    return all;
  }
};

array int_array(const std::vector<int>& values, Shape shape) {
  return array(values.begin(), std::move(shape), int32);
}

void fill(Batch& batch, RandomArrays& random) {
  const int dims = batch.scheme.keys.dims;
  int used = 0;
  std::vector<int> free;
  size_t most = 1;
  for (const Sequence& sequence : batch.sequences) {
    const int count = (sequence.length + batch.block_size - 1) / batch.block_size;
    most = std::max(most, static_cast<size_t>(count));
    used += count;
  }
  for (int i = 0; i < used + 2; ++i) free.push_back(i);
  for (size_t i = free.size(); i > 1; --i)
    std::swap(free[i - 1], free[size_t(random.pick(0, int(i) - 1))]);
  auto [keys, values] =
      fast::kv_pools(batch.scheme, used + 2, batch.key_heads, batch.block_size, batch.pool_dtype);
  std::vector<int> table, lengths, starts{0};
  for (const Sequence& sequence : batch.sequences) {
    std::vector<int> own, slots;
    for (int at = 0; at < sequence.length; ++at) {
      if (at % batch.block_size == 0) {
        own.push_back(free.back());
        free.pop_back();
      }
      slots.push_back(own.back() * batch.block_size + at % batch.block_size);
    }
    const Shape shape{sequence.length, batch.key_heads, dims};
    const array new_keys = random.dense(shape, float32), new_values = random.dense(shape, float32);
    std::tie(keys, values) =
        fast::kv_write(std::move(keys), std::move(values), new_keys, new_values,
                       int_array(slots, {sequence.length}), batch.scheme);
    auto back = [&](const array& rows, const fast::KvFormat& format) {
      const array given = format.bits == 0 ? astype(astype(rows, batch.pool_dtype), float32)
                                           : fast::kv_decode(fast::kv_encode(rows, format), format);
      return doubles_of(contiguous(transpose(given, {1, 0, 2})));
    };
    batch.keys.push_back(back(new_keys, batch.scheme.keys));
    batch.values.push_back(back(new_values, batch.scheme.values));
    // What is beyond a length is not read.
    for (size_t i = 0; i < most; ++i) table.push_back(i < own.size() ? own[i] : -12345);
    lengths.push_back(sequence.length);
    starts.push_back(starts.back() + sequence.tokens);
    batch.blocks.push_back(own);
  }
  const int count = static_cast<int>(batch.sequences.size());
  batch.queries = random.dense({batch.tokens(), batch.heads, dims}, batch.dtype);
  batch.key_pool = keys;
  batch.value_pool = values;
  batch.table = int_array(table, {count, static_cast<int>(most)});
  batch.lengths = int_array(lengths, {count});
  batch.starts = int_array(starts, {count + 1});
}

struct Reference {
  std::vector<double> out;
  double bound = 0;  // of the error of an element computed in float32
};

// By the definition, in double. The bound: a score is a product of `dims` numbers after a rotation,
// each step of which loses one unit (2 dims + 32 in all, with the exponential's) of |q| |k|;
// weights lose twice that, relatively, and sums one unit for each position and each step of the
// rotation back, of the longest value.
Reference reference(const Batch& batch, double scale, int window,
                    const std::vector<double>& sinks) {
  const int dims = batch.scheme.keys.dims, group = batch.heads / batch.key_heads;
  const std::vector<double> queries = doubles_of(batch.queries);
  constexpr double unit = 6e-8;
  Reference result;
  size_t token = 0;
  for (size_t s = 0; s < batch.sequences.size(); ++s) {
    const Sequence& sequence = batch.sequences[s];
    for (int i = 0; i < sequence.tokens; ++i, ++token) {
      const int last = sequence.length - sequence.tokens + i + 1;
      const int first = window > 0 ? std::max(0, last - window) : 0;
      for (int h = 0; h < batch.heads; ++h) {
        const double* q = &queries[(token * size_t(batch.heads) + size_t(h)) * size_t(dims)];
        const size_t head = size_t(h / group) * size_t(sequence.length);
        std::vector<double> scores, out(size_t(dims), 0);
        double largest = sinks.empty() ? -INFINITY : sinks[size_t(h)], total = 0, lost = 0,
               longest = 0;
        for (int t = first; t < last; ++t) {
          const double* k = &batch.keys[s][(head + size_t(t)) * size_t(dims)];
          double score = 0, query_norm = 0, key_norm = 0;
          for (int d = 0; d < dims; ++d) {
            score += q[d] * k[d];
            query_norm += q[d] * q[d];
            key_norm += k[d] * k[d];
          }
          lost = std::max(lost, (2 * dims + 32) * unit * scale * std::sqrt(query_norm * key_norm));
          scores.push_back(score * scale);
          largest = std::max(largest, score * scale);
        }
        if (!sinks.empty()) total += std::exp(sinks[size_t(h)] - largest);
        for (double score : scores) total += std::exp(score - largest);
        for (int t = first; t < last; ++t) {
          const double* v = &batch.values[s][(head + size_t(t)) * size_t(dims)];
          const double weight = std::exp(scores[size_t(t - first)] - largest) / total;
          double norm = 0;
          for (int d = 0; d < dims; ++d) {
            out[size_t(d)] += weight * v[d];
            norm += v[d] * v[d];
          }
          longest = std::max(longest, std::sqrt(norm));
        }
        result.bound =
            std::max(result.bound, longest * (2 * lost + (sequence.length + 2 * dims + 32) * unit));
        result.out.insert(result.out.end(), out.begin(), out.end());
      }
    }
  }
  return result;
}

void check(const Batch& batch, int window = 0, const std::optional<array>& sinks = {}) {
  const float scale = 1 / std::sqrt(static_cast<float>(batch.scheme.keys.dims));
  const array got =
      fast::paged_attention(batch.queries, batch.key_pool, batch.value_pool, batch.table,
                            batch.lengths, scale, batch.scheme, batch.starts, window, sinks);
  REQUIRE(got.shape() == batch.queries.shape());
  CHECK(got.dtype() == batch.dtype);
  const Reference expected = reference(batch, static_cast<double>(scale), window,
                                       sinks ? doubles_of(*sinks) : std::vector<double>{});
  const std::vector<double> values = doubles_of(got);
  double worst = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double allowed =
        expected.bound +
        (batch.dtype == float32 ? 0 : rounding_of(batch.dtype) * std::abs(expected.out[i]));
    const double distance = std::abs(values[i] - expected.out[i]);
    worst = std::max(worst, std::isnan(distance) ? INFINITY : distance / allowed);
  }
  CHECK(worst <= 1);
}

std::vector<Sequence> draw(RandomArrays& random, int count, int longest) {
  std::vector<Sequence> sequences;
  for (int i = 0; i < count; ++i) {
    const int length = random.pick(0, longest);
    sequences.push_back({length, random.pick(0, std::min(length, random.flip() ? 1 : 40))});
  }
  return sequences;
}

array attend(const Batch& batch, const array& queries, const array& table, const array& lengths,
             const std::optional<array>& starts, int window = 0) {
  return fast::paged_attention(queries, batch.key_pool, batch.value_pool, table, lengths, 0.125f,
                               batch.scheme, starts, window);
}

const char* const all_schemes[] = {"dense",  "affine8",  "turbo4",   "turbo3",
                                   "turbo2", "turbo4v2", "turbo0v3", "turbo8v4"};

}  // namespace

TEST_CASE("paged attention of every scheme and head dimension") {
  RandomArrays random(51);
  for (const char* name : all_schemes) {
    for (int dims : {16, 64, 80, 96, 128, 256}) {
      CAPTURE(std::string(name));
      CAPTURE(dims);
      const int key_heads = random.pick(1, 2);
      Batch batch{KvScheme::named(name, dims), draw(random, 3, 300), key_heads * random.pick(1, 9),
                  key_heads, 16 << random.pick(0, 2)};
      batch.sequences.push_back({random.pick(257, 600), 1});
      fill(batch, random);
      check(batch);
    }
  }
}

TEST_CASE("paged attention of random batches, windows, sinks and dtypes") {
  RandomArrays random(52);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    const int key_heads = random.pick(1, 3);
    Batch batch{KvScheme::named(all_schemes[random.pick(0, 7)], 16 * random.pick(1, 9)),
                draw(random, random.pick(1, 6), 400), key_heads * random.pick(1, 5), key_heads,
                16 << random.pick(0, 4)};
    const Dtype dtypes[] = {float32, float16, bfloat16};
    batch.dtype = dtypes[random.pick(0, 2)];
    batch.pool_dtype = dtypes[random.pick(0, 2)];
    fill(batch, random);
    std::optional<array> sinks;
    if (random.flip()) sinks = random.strided({batch.heads}, batch.dtype);
    check(batch, random.flip() ? 0 : random.pick(1, 300), sinks);
  }
}

TEST_CASE("a sequence alone, in a batch, or in chunks gives the same bits") {
  RandomArrays random(53);
  for (const char* name : {"dense", "affine8", "turbo4v2", "turbo3"}) {
    for (int window : {0, 300}) {
      CAPTURE(std::string(name));
      Batch batch{
          KvScheme::named(name, 96), {{700, 70}, {33, 1}, {513, 5}, {1, 1}, {290, 290}}, 8, 2, 32};
      fill(batch, random);
      const array together =
          attend(batch, batch.queries, batch.table, batch.lengths, batch.starts, window);
      int first = 0;
      for (size_t i = 0; i < batch.sequences.size(); ++i) {
        const Sequence& sequence = batch.sequences[i];
        const int row = static_cast<int>(i), last = first + sequence.tokens;
        const array table = slice(batch.table, {row, 0}, {row + 1, batch.table.shape(1)});
        auto part = [&](const array& a, int from, int to) {
          return slice(a, {from, 0, 0}, {to, 8, 96});
        };
        const array alone = attend(batch, expand_dims(part(batch.queries, first, last), 0), table,
                                   array({sequence.length}), std::nullopt, window);
        CHECK(array_equal(squeeze(alone, 0), part(together, first, last)).item<bool>());
        // The last three tokens one by one: the keys after them are there, and not seen.
        for (int back = 1; back <= std::min(3, sequence.tokens); ++back) {
          const array one = attend(batch, part(batch.queries, last - back, last - back + 1), table,
                                   array({sequence.length - back + 1}), std::nullopt, window);
          CHECK(array_equal(one, part(together, last - back, last - back + 1)).item<bool>());
        }
        first = last;
      }
    }
  }
}

TEST_CASE("many rows, queries that see nothing, and empty batches") {
  RandomArrays random(54);
  // More heads for a key head than are computed at once.
  Batch wide{KvScheme::named("turbo4v2", 64), {{100, 3}, {0, 1}}, 96, 1, 16};
  fill(wide, random);
  check(wide);
  // More queries than tokens: the first ones see nothing, and sinks have no value.
  Batch early{KvScheme::named("dense", 64), {{2, 5}}, 2, 2, 16};
  fill(early, random);
  check(early, 0, ones({2}));
  const array got = attend(early, early.queries, early.table, early.lengths, early.starts);
  CHECK(!any(not_equal(slice(got, {0, 0, 0}, {3, 2, 64}), array(0.0f))).item<bool>());
  // No sequences; no blocks.
  const KvScheme scheme = KvScheme::named("dense", 64);
  const auto pools = fast::kv_pools(scheme, 0, 2, 16);
  auto none = [&](int sequences) {
    return fast::paged_attention(zeros({sequences, 4, 64}), pools.first, pools.second,
                                 zeros({sequences, 0}, int32), zeros({sequences}, int32), 1.0f,
                                 scheme);
  };
  CHECK(values_of<float>(none(0)).empty());
  CHECK(!any(not_equal(none(2), array(0.0f))).item<bool>());
}

TEST_CASE("integers that name nothing are errors when paged attention runs") {
  RandomArrays random(55);
  Batch batch{KvScheme::named("turbo4v2", 32), {{20, 2}, {5, 1}}, 2, 1, 16};
  fill(batch, random);
  auto run = [&](const array& table, const array& lengths, const array& starts) {
    attend(batch, batch.queries, table, lengths, starts).eval();
  };
  const array table = int_array({0, 1, 2, -1}, {2, 2});
  run(table, batch.lengths, batch.starts);
  using Error = ExecutionError;
  auto fails = [&](const array& t, const array& l, const array& s) {
    check_error<Error>("paged_attention", [&] { run(t, l, s); });
  };
  fails(int_array({0, -1, 2, -1}, {2, 2}), batch.lengths, batch.starts);
  fails(int_array({0, 5, 2, -1}, {2, 2}), batch.lengths, batch.starts);
  fails(table, array({33, 5}), batch.starts);
  fails(table, array({20, -1}), batch.starts);
  fails(table, batch.lengths, array({0, 2, 4}));
  fails(table, batch.lengths, array({1, 2, 3}));
  fails(table, batch.lengths, array({0, 4, 3}));
  // Behind a window nothing is read.
  attend(batch, batch.queries, int_array({-7, 1, 2, -1}, {2, 2}), batch.lengths, batch.starts, 3)
      .eval();
}

TEST_CASE("errors of paged attention") {
  const KvScheme scheme = KvScheme::named("turbo4v2", 64);
  auto [keys, values] = fast::kv_pools(scheme, 3, 2, 16);
  const array q = ones({2, 4, 64}), table = zeros({2, 3}, int32), lengths = zeros({2}, int32);
  using Optional = std::optional<array>;
  auto fails = [&, k = keys, v = values](const array& queries, const array& t, const array& l,
                                         const Optional& starts = {}, int window = 0,
                                         const Optional& sinks = {}) {
    check_error<std::invalid_argument>("paged_attention", [&] {
      fast::paged_attention(queries, k, v, t, l, 1.0f, scheme, starts, window, sinks);
    });
  };
  fails(ones({2, 4, 32}), table, lengths);
  fails(ones({2, 3, 64}), table, lengths);
  fails(ones({4, 64}), table, lengths);
  fails(ones({2, 1, 4, 64}), table, lengths, array({0, 1, 2}));
  fails(ones({3, 4, 64}), table, lengths);
  fails(ones({2, 4, 64}, int32), table, lengths);
  fails(q, zeros({3, 3}, int32), lengths);
  fails(q, zeros({2}, int32), lengths);
  fails(q, zeros({2, 3}), lengths);
  fails(q, table, zeros({2}));
  fails(q, table, lengths, array({0, 2}));
  fails(q, table, lengths, ones({3}));
  fails(q, table, lengths, {}, -1);
  fails(q, table, lengths, {}, 0, ones({3}));
  fails(q, table, lengths, {}, 0, ones({4}, int32));
  check_error<std::invalid_argument>("paged_attention", [&, v = values] {
    fast::paged_attention(q, v, v, table, lengths, 1.0f, scheme);
  });
}
