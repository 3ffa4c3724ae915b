// Caches of keys and values: how rows are stored, against a plain reading of the formats.
#include "kernels/plan/kv_cache.h"

#include "ops/numeric_testing.h"

using namespace holdfast;
using namespace holdfast::testing;
using fast::KvFormat;
using fast::KvScheme;

namespace {

// Index j of a row of packed numbers.
uint32_t index_at(const uint32_t* words, int bits, int j) {
  const int at = j * bits;
  uint64_t two = words[at / 32];
  if (at % 32 + bits > 32) two |= uint64_t{words[at / 32 + 1]} << 32;
  return static_cast<uint32_t>(two >> at % 32) & ((1u << bits) - 1);
}

float as_float(uint32_t word) {
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}
double half_at(uint32_t bits) {
  return static_cast<double>(float16_t::from_bits(static_cast<uint16_t>(bits)));
}

// Rotated back: by the definition of the transform, in double.
std::vector<double> unrotated(const std::vector<double>& y, const kernels::TurboTables& tables) {
  const size_t n = y.size();
  std::vector<double> x(n, 0);
  for (size_t j = 0; j < n; ++j) {
    for (size_t i = 0; i < n; ++i) {
      if (tables.signs.empty()) {
        x[j] += static_cast<double>(tables.matrix[i * n + j]) * y[i];
      } else {
        x[j] += (__builtin_popcountll(i & j) % 2 == 0 ? y[i] : -y[i]) / std::sqrt(double(n));
      }
    }
    if (!tables.signs.empty()) x[j] *= static_cast<double>(tables.signs[j]);
  }
  return x;
}

// A stored row as numbers, by the words of lm_ops.h.
std::vector<double> reference_row(const uint32_t* words, const KvFormat& format) {
  std::vector<double> row;
  const kernels::KvRows rows{format.dims, format.bits, format.seed};
  if (format.bits == 8) {
    for (int j = 0; j < format.dims; ++j) {
      const uint32_t pair = words[format.dims / 4 + j / rows.group()];
      row.push_back((words[j / 4] >> 8 * (j % 4) & 255) * half_at(pair & 0xffff) +
                    half_at(pair >> 16));
    }
    return row;
  }
  const auto tables = kernels::turbo_tables(rows);
  for (int j = 0; j < format.dims; ++j) {
    row.push_back(static_cast<double>(as_float(words[rows.packed_words()])) *
                  static_cast<double>(tables->codebook[index_at(words, format.bits, j)]));
  }
  return unrotated(row, *tables);
}

const int all_dims[] = {16, 64, 80, 96, 128, 256};

}  // namespace

TEST_CASE("codebooks are the published ones") {
  // 128 dimensions: the positive halves.
  const std::vector<std::vector<double>> published = {
      {0.03998, 0.13302},
      {0.02156, 0.06648, 0.11801, 0.18829},
      {0.01108, 0.03351, 0.05679, 0.08158, 0.10882, 0.14024, 0.17934, 0.23639}};
  for (int bits = 2; bits <= 4; ++bits) {
    const auto tables = kernels::turbo_tables({128, bits, 42});
    const std::vector<double>& half = published[static_cast<size_t>(bits - 2)];
    REQUIRE(tables->codebook.size() == 2 * half.size());
    for (size_t k = 0; k < half.size(); ++k) {
      const double upper = static_cast<double>(tables->codebook[half.size() + k]);
      CHECK(std::abs(upper - half[k]) < 1e-4);
      CHECK(tables->codebook[half.size() - 1 - k] == -tables->codebook[half.size() + k]);
    }
  }
}

TEST_CASE("rotations follow from the seed and are orthogonal") {
  const auto walsh = kernels::turbo_tables({64, 4, 42});
  const std::vector<float> uniform =
      values_of<float>(random::uniform(0.0f, 1.0f, {64}, float32, random::key(42)));
  for (size_t j = 0; j < 64; ++j) CHECK(walsh->signs[j] == (uniform[j] > 0.5f ? 1.0f : -1.0f));
  CHECK(walsh->signs != kernels::turbo_tables({64, 4, 43})->signs);
  const auto dense = kernels::turbo_tables({80, 4, 42});
  REQUIRE(dense->matrix.size() == 80 * 80);
  for (size_t i = 0; i < 80; ++i) {
    for (size_t k = 0; k <= i; ++k) {
      double product = 0;
      for (size_t j = 0; j < 80; ++j) {
        product += static_cast<double>(dense->matrix[i * 80 + j]) *
                   static_cast<double>(dense->matrix[k * 80 + j]);
      }
      CHECK(std::abs(product - (i == k ? 1 : 0)) < 1e-6);
    }
  }
}

TEST_CASE("stored rows hold what the formats say, and come back") {
  RandomArrays random(41);
  // The mean square error of Lloyd-Max for normal numbers, by bits.
  const double distortion[] = {0, 0, 0.1175, 0.03454, 0.009497};
  for (int dims : all_dims) {
    for (int bits : {2, 3, 4, 8}) {
      CAPTURE(dims);
      CAPTURE(bits);
      const KvFormat format{dims, bits, 7};
      const int rows = 40;
      const array x = random.dense({rows, dims}, float32);
      const array stored = fast::kv_encode(x, format);
      CHECK(stored.shape() == Shape{rows, format.width()});
      const std::vector<uint32_t> words = values_of<uint32_t>(stored);
      const std::vector<double> numbers = doubles_of(x);
      std::vector<double> expected;
      double lost = 0, all = 0;
      for (int r = 0; r < rows; ++r) {
        const std::vector<double> row = reference_row(words.data() + r * format.width(), format);
        for (int j = 0; j < dims; ++j) {
          const double given = numbers[size_t(r * dims + j)];
          lost += (row[size_t(j)] - given) * (row[size_t(j)] - given);
          all += given * given;
          expected.push_back(row[size_t(j)]);
        }
      }
      check_close(fast::kv_decode(stored, format), {rows, dims}, expected, 1e-5);
      if (bits < 8) {
        CHECK(lost / all < 1.15 * distortion[bits]);
        // Small rows have lighter tails than the normal distribution.
        CHECK(lost / all > (dims >= 64 ? 0.85 : 0.5) * distortion[bits]);
      } else {
        CHECK(lost / all < 1e-4);
      }
    }
  }
}

TEST_CASE("rows of zeros, of large and of equal numbers are stored") {
  for (int bits : {2, 4, 8}) {
    const KvFormat format{64, bits, 1};
    CHECK(array_equal(fast::kv_decode(fast::kv_encode(zeros({2, 64}), format), format),
                      zeros({2, 64}))
              .item<bool>());
    const array equal = fast::kv_decode(fast::kv_encode(full({1, 64}, 3.0f), format), format);
    CHECK(
        all(less(abs(subtract(equal, array(3.0f))), array(bits == 8 ? 1e-6f : 4.0f))).item<bool>());
    const array large = fast::kv_encode(full({1, 64}, 1e6f), format);
    CHECK(all(isfinite(fast::kv_decode(large, format))).item<bool>());
  }
}

TEST_CASE("half types are stored as their numbers are") {
  RandomArrays random(42);
  for (Dtype dtype : {float16, bfloat16}) {
    const array x = random.strided({3, 5, 96}, dtype);
    const KvFormat format{96, 3, 5};
    CHECK(array_equal(fast::kv_encode(x, format), fast::kv_encode(astype(x, float32), format))
              .item<bool>());
    const array rows = fast::kv_encode(x, format);
    CHECK(array_equal(fast::kv_decode(rows, format, dtype),
                      astype(fast::kv_decode(rows, format), dtype))
              .item<bool>());
  }
}

TEST_CASE("kv_write puts rows into their slots and leaves the others") {
  RandomArrays random(43);
  for (const char* name : {"dense", "affine8", "turbo4v2", "turbo0v3", "turbo8v4"}) {
    for (int dims : {80, 128}) {
      CAPTURE(std::string(name));
      const KvScheme scheme = KvScheme::named(name, dims);
      const int blocks = 3, heads = 2, size = 16;
      auto [keys, values] = fast::kv_pools(scheme, blocks, heads, size, float16);
      const std::vector<int> slots = {17, -1, 0, 47};
      const array key_rows = random.strided({4, heads, dims}, bfloat16);
      const array value_rows = random.strided({4, heads, dims}, float32);
      auto [new_keys, new_values] =
          fast::kv_write(keys, values, key_rows, value_rows, array(slots.begin(), {4}), scheme);
      auto stored = [&](const array& rows, const KvFormat& format) {
        return format.bits == 0 ? astype(rows, float16) : fast::kv_encode(rows, format);
      };
      // As rows of (block, place): keys are stored as columns.
      const array key_view = transpose(new_keys, {0, 3, 1, 2});
      const array value_view = transpose(new_values, {0, 2, 1, 3});
      for (int place = 0; place < blocks * size; ++place) {
        const auto found = std::find(slots.begin(), slots.end(), place);
        auto check = [&](const array& view, const array& rows, const KvFormat& format) {
          const array got = take(take(view, place / size, 0), place % size, 0);
          const array expected = found == slots.end()
                                     ? zeros_like(got)
                                     : take(stored(rows, format), int(found - slots.begin()), 0);
          CHECK(array_equal(got, expected).item<bool>());
        };
        check(key_view, key_rows, scheme.keys);
        check(value_view, value_rows, scheme.values);
      }
      // The pools that were given still hold what they held.
      CHECK(!any(not_equal(keys, array(0, keys.dtype()))).item<bool>());
    }
  }
}

TEST_CASE_FIXTURE(OnCpu, "kv_write works in the pools when nothing else holds them") {
  for (const char* name : {"dense", "turbo4v2"}) {
    const KvScheme scheme = KvScheme::named(name, 64);
    auto [keys, values] = fast::kv_pools(scheme, 4, 2, 32);
    eval(keys, values);
    const void *key_bytes = keys.data<char>(), *value_bytes = values.data<char>();
    const array rows = ones({1, 2, 64});
    const size_t before = get_active_memory();
    reset_peak_memory();
    for (int step = 0; step < 5; ++step) {
      std::tie(keys, values) =
          fast::kv_write(std::move(keys), std::move(values), rows, rows, array({step}), scheme);
      eval(keys, values);
      CHECK(keys.data<char>() == key_bytes);
      CHECK(values.data<char>() == value_bytes);
    }
    // Rows, slots, but no pool: the smaller one has 16 KiB.
    CHECK(get_peak_memory() < before + (8 << 10));
    // Held by another array, they are copied.
    const array held = keys;
    std::tie(keys, values) =
        fast::kv_write(std::move(keys), std::move(values), rows, rows, array({9}), scheme);
    eval(keys, values);
    CHECK(keys.data<char>() != key_bytes);
    CHECK(held.data<char>() == key_bytes);
  }
}

TEST_CASE("a slot beyond the pools is an error when the op runs; empty writes are none") {
  const KvScheme scheme = KvScheme::named("turbo4", 32);
  auto [keys, values] = fast::kv_pools(scheme, 2, 1, 16);
  const array rows = ones({1, 1, 32});
  auto [bad, also_bad] = fast::kv_write(keys, values, rows, rows, array({32}), scheme);
  check_error<ExecutionError>("kv_write", [&, b = bad]() mutable { b.eval(); });
  auto [same, same_values] =
      fast::kv_write(keys, values, zeros({0, 1, 32}), zeros({0, 1, 32}), zeros({0}, int32), scheme);
  CHECK(array_equal(same, keys).item<bool>());
  auto none = fast::kv_pools(scheme, 0, 1, 16);
  CHECK(none.first.size() == 0);
}

TEST_CASE("errors of caches of keys and values") {
  const KvScheme scheme = KvScheme::named("turbo4v2", 64);
  CHECK(scheme == KvScheme{{64, 4, 42}, {64, 2, 43}});
  CHECK(KvScheme::named("turbo3", 64) == KvScheme{{64, 3, 42}, {64, 3, 43}});
  CHECK(KvScheme::named("turbo8v2", 64).keys.bits == 8);
  for (const char* name : {"", "turbo", "turbo5", "turbo4v0", "turbo4v8", "turbo1v2", "affine4"}) {
    check_error<std::invalid_argument>("KvScheme::named", [&] { KvScheme::named(name, 64); });
  }
  check_error<std::invalid_argument>("KvScheme::named", [] { KvScheme::named("dense", 40); });
  check_error<std::invalid_argument>("KvScheme::named", [] { KvScheme::named("dense", 2048); });
  using Error = std::invalid_argument;
  auto pools = [&](int size, Dtype dtype) { fast::kv_pools(scheme, 1, 1, size, dtype); };
  check_error<Error>("kv_pools", [&] { pools(24, bfloat16); });
  check_error<Error>("kv_pools", [&] { pools(8, bfloat16); });
  check_error<Error>("kv_pools", [&] { pools(512, bfloat16); });
  check_error<Error>("kv_pools", [&] { fast::kv_pools(scheme, -1, 1, 16); });
  check_error<Error>("kv_pools",
                     [&] { fast::kv_pools(KvScheme::named("dense", 64), 1, 1, 16, int32); });
  check_error<Error>("kv_encode", [] { fast::kv_encode(ones({2, 64}), {64, 0, 0}); });
  check_error<Error>("kv_encode", [] { fast::kv_encode(ones({2, 64}), {64, 5, 0}); });
  check_error<Error>("kv_encode", [] { fast::kv_encode(ones({2, 48}), {64, 4, 0}); });
  check_error<Error>("kv_encode", [] { fast::kv_encode(ones({2, 64}, int32), {64, 4, 0}); });
  check_error<Error>("kv_decode", [] { fast::kv_decode(ones({2, 9}), {64, 4, 0}); });
  check_error<Error>("kv_decode", [] { fast::kv_decode(ones({2, 8}, uint32), {64, 4, 0}); });
  auto [keys, values] = fast::kv_pools(scheme, 2, 3, 16);
  const array rows = ones({4, 3, 64}), slots = zeros({4}, int32);
  auto write = [&](const array& k, const array& v, const array& r, const array& at) {
    fast::kv_write(k, v, r, r, at, scheme);
  };
  check_error<Error>("kv_write", [&] { write(values, keys, rows, slots); });
  check_error<Error>("kv_write", [&] { write(keys, astype(values, int32), rows, slots); });
  check_error<Error>("kv_write", [&] { write(keys, values, ones({4, 2, 64}), slots); });
  check_error<Error>("kv_write", [&] { write(keys, values, ones({3, 3, 64}), slots); });
  check_error<Error>("kv_write", [&] { write(keys, values, astype(rows, int32), slots); });
  check_error<Error>("kv_write", [&] { write(keys, values, rows, ones({4})); });
  check_error<Error>("kv_write", [&] { write(keys, values, rows, zeros({2, 2}, int32)); });
  check_error<Error>("kv_write",
                     [&] { write(keys, fast::kv_pools(scheme, 2, 3, 32).second, rows, slots); });
}
