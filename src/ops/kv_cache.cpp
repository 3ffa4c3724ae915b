// Caches of keys and values: fast::KvFormat, kv_pools, kv_write, kv_encode, kv_decode.
#include "ops/kv_cache.h"

#include <charconv>
#include <string_view>

#include "ops/inner.h"
#include "ops/support.h"

namespace holdfast {

namespace {

using kernels::KvRows;

KvRows rows_of(const fast::KvFormat& format) { return {format.dims, format.bits, format.seed}; }

// --- primitives ---

// Inputs: the pools of keys and of values, keys, values, slots (int32).
class KvWrite final : public Recorded<KvWrite, Op> {
 public:
  KvWrite(Stream stream, const KvRows& keys, const KvRows& values)
      : Recorded(stream), keys_(keys), values_(values) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    copy_or_take(encoder, inputs[0], outputs[0], outputs.size());
    copy_or_take(encoder, inputs[1], outputs[1], outputs.size());
    kernels::backend_of(encoder).kv_write(
        encoder, {keys_, values_, inputs[2], inputs[3], inputs[4]}, outputs[0], outputs[1]);
  }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[0].shape(), inputs[1].shape()};
  }
  const char* name() const override { return "KvWrite"; }
  auto members() const {
    return std::tie(keys_.dims, keys_.bits, keys_.seed, values_.dims, values_.bits, values_.seed);
  }

 private:
  KvRows keys_, values_;
};

class KvConvert final : public Recorded<KvConvert, Op> {
 public:
  KvConvert(Stream stream, const KvRows& rows, bool encodes)
      : Recorded(stream), rows_(rows), encodes_(encodes) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    kernels::backend_of(encoder).kv_convert(encoder, rows_, encodes_, inputs[0], outputs[0]);
  }
  // A row at a time: more axes in front are more rows.
  std::shared_ptr<Primitive> with_leading_axis() override {
    return std::make_shared<KvConvert>(stream(), rows_, encodes_);
  }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    Shape shape = inputs[0].shape();
    shape.back() = encodes_ ? rows_.width() : rows_.dims;
    return {shape};
  }
  const char* name() const override { return "KvConvert"; }
  auto members() const { return std::tie(rows_.dims, rows_.bits, rows_.seed, encodes_); }

 private:
  KvRows rows_;
  bool encodes_;
};

}  // namespace

// --- checks ---

KvRows checked_format(const char* op, const char* side, const fast::KvFormat& format) {
  constexpr int most_dims = 1024;
  if (format.dims <= 0 || format.dims % 16 != 0 || format.dims > most_dims) {
    throw std::invalid_argument(text("[", op, "] dims of ", side,
                                     " must be a multiple of 16 of at most ", most_dims, ", got ",
                                     format.dims));
  }
  if (format.bits != 0 && format.bits != 8 && (format.bits < 2 || format.bits > 4)) {
    throw std::invalid_argument(
        text("[", op, "] bits of ", side, " must be 0, 2, 3, 4 or 8, got ", format.bits));
  }
  return rows_of(format);
}

void check_small_float(const char* op, const char* name, const array& a) {
  if (a.dtype() == float32 || is_half(a.dtype())) return;
  throw std::invalid_argument(
      text("[", op, "] ", name, " must be of float32, float16 or bfloat16, got ", a.dtype()));
}

array checked_indices(const char* op, const char* name, const array& a, StreamOrDevice s) {
  if (!issubdtype(a.dtype(), integer)) {
    throw std::invalid_argument(text("[", op, "] ", name, " must be integers, got ", a.dtype()));
  }
  return astype(a, int32, s);
}

KvPools checked_pools(const char* op, const array& key_pool, const array& value_pool,
                      const fast::KvScheme& scheme) {
  auto check = [&](const char* name, const array& pool, const KvRows& rows, int width_axis) {
    if (pool.ndim() != 4 || pool.shape(width_axis) != rows.width()) {
      throw std::invalid_argument(
          text("[", op, "] ", name, " must have four dimensions, of which dimension ", width_axis,
               " is the width of a row of ", rows.dims, " numbers at ", rows.bits, " bits (",
               rows.width(), "), got shape ", pool.shape()));
    }
    if (rows.bits == 0) {
      check_small_float(op, name, pool);
    } else if (pool.dtype() != uint32) {
      throw std::invalid_argument(text("[", op, "] ", name, " of ", rows.bits,
                                       " bits must be of uint32, got ", pool.dtype()));
    }
  };
  check("key_pool", key_pool, checked_format(op, "keys", scheme.keys), 2);
  check("value_pool", value_pool, checked_format(op, "values", scheme.values), 3);
  const KvPools pools{key_pool.shape(0), key_pool.shape(1), key_pool.shape(3)};
  if (pools.blocks != value_pool.shape(0) || pools.heads != value_pool.shape(1) ||
      pools.block_size != value_pool.shape(2)) {
    throw std::invalid_argument(
        text("[", op,
             "] key_pool (blocks, heads, width, block size) and value_pool (blocks, heads, "
             "block size, width) must agree, got shapes ",
             key_pool.shape(), " and ", value_pool.shape()));
  }
  if (pools.block_size < 16 || pools.block_size > 256 ||
      (pools.block_size & (pools.block_size - 1)) != 0) {
    throw std::invalid_argument(text("[", op, "] the block size must be a power of two from 16 to ",
                                     "256, got ", pools.block_size));
  }
  return pools;
}

// --- formats ---

namespace fast {

int KvFormat::width() const { return rows_of(*this).width(); }

KvScheme KvScheme::named(const std::string& name, int dims, uint64_t seed) {
  auto made = [&](int key_bits, int value_bits) {
    KvScheme scheme{{dims, key_bits, seed}, {dims, value_bits, seed + 1}};
    checked_format("KvScheme::named", "keys", scheme.keys);
    checked_format("KvScheme::named", "values", scheme.values);
    return scheme;
  };
  if (name == "dense") return made(0, 0);
  if (name == "affine8") return made(8, 8);
  constexpr std::string_view prefix = "turbo";
  auto is_turbo = [](char c) { return c >= '2' && c <= '4'; };
  if (name.starts_with(prefix)) {
    const std::string_view rest = std::string_view(name).substr(prefix.size());
    if (rest.size() == 1 && is_turbo(rest[0])) return made(rest[0] - '0', rest[0] - '0');
    if (rest.size() == 3 && rest[1] == 'v' && is_turbo(rest[2]) &&
        (is_turbo(rest[0]) || rest[0] == '0' || rest[0] == '8')) {
      return made(rest[0] - '0', rest[2] - '0');
    }
  }
  throw std::invalid_argument(
      text("[KvScheme::named] expected \"dense\", \"affine8\", \"turbo2\" to \"turbo4\", or "
           "\"turbo<K>v<V>\" with K of 0, 8, 2, 3, 4 and V of 2, 3, 4, got \"",
           name, "\""));
}

// --- ops ---

std::pair<array, array> kv_pools(const KvScheme& scheme, int blocks, int heads, int block_size,
                                 Dtype dtype, StreamOrDevice s) {
  constexpr const char* op = "kv_pools";
  if (blocks < 0 || heads < 0) {
    throw std::invalid_argument(text("[", op, "] the numbers of blocks and heads must not be ",
                                     "negative, got ", blocks, " and ", heads));
  }
  const KvRows keys = checked_format(op, "keys", scheme.keys);
  const KvRows values = checked_format(op, "values", scheme.values);
  auto pool = [&](Shape shape, const KvRows& rows) {
    const Dtype stored = rows.bits > 0 ? uint32 : dtype;
    checked_size(op, shape, stored);
    return zeros(shape, stored, s);
  };
  std::pair pools{pool({blocks, heads, keys.width(), block_size}, keys),
                  pool({blocks, heads, block_size, values.width()}, values)};
  checked_pools(op, pools.first, pools.second, scheme);
  return pools;
}

std::pair<array, array> kv_write(array key_pool, array value_pool, const array& keys,
                                 const array& values, const array& slots, const KvScheme& scheme,
                                 StreamOrDevice s) {
  constexpr const char* op = "kv_write";
  const KvPools pools = checked_pools(op, key_pool, value_pool, scheme);
  const array places = checked_indices(op, "slots", slots, s);
  if (places.ndim() != 1) {
    throw std::invalid_argument(
        text("[", op, "] slots must have one dimension, got shape ", places.shape()));
  }
  auto check = [&](const char* name, const array& rows, int dims) {
    check_small_float(op, name, rows);
    const Shape expected{places.shape(0), pools.heads, dims};
    if (rows.shape() == expected) return;
    throw std::invalid_argument(text("[", op, "] ", name, " must be (slots, heads of the pool, ",
                                     "dims), ", expected, ", got ", rows.shape()));
  };
  check("keys", keys, scheme.keys.dims);
  check("values", values, scheme.values.dims);
  const std::vector<Shape> shapes{key_pool.shape(), value_pool.shape()};
  const std::vector<Dtype> dtypes{key_pool.dtype(), value_pool.dtype()};
  std::vector<array> outputs = detail::make_all_checked(
      shapes, dtypes,
      std::make_shared<KvWrite>(to_stream(s), rows_of(scheme.keys), rows_of(scheme.values)),
      inputs_of(std::move(key_pool), std::move(value_pool), keys, values, places));
  return {std::move(outputs[0]), std::move(outputs[1])};
}

namespace {

void check_packed(const char* op, const KvFormat& format) {
  checked_format(op, "rows", format);
  if (format.bits == 0) {
    throw std::invalid_argument(
        text("[", op, "] a format of 0 bits stores numbers as they are: nothing to convert"));
  }
}

void check_last(const char* op, const char* name, const array& a, int expected) {
  if (a.ndim() > 0 && a.shape(-1) == expected) return;
  throw std::invalid_argument(text("[", op, "] the last dimension of ", name, " must be ", expected,
                                   ", got shape ", a.shape()));
}

}  // namespace

array kv_encode(const array& x, const KvFormat& format, StreamOrDevice s) {
  constexpr const char* op = "kv_encode";
  check_packed(op, format);
  check_small_float(op, "x", x);
  check_last(op, "x", x, format.dims);
  Shape shape = x.shape();
  shape.back() = format.width();
  return make_node<KvConvert>(std::move(shape), uint32, {x}, s, rows_of(format), true);
}

array kv_decode(const array& rows, const KvFormat& format, Dtype dtype, StreamOrDevice s) {
  constexpr const char* op = "kv_decode";
  check_packed(op, format);
  if (rows.dtype() != uint32) {
    throw std::invalid_argument(text("[", op, "] rows must be of uint32, got ", rows.dtype()));
  }
  check_last(op, "rows", rows, format.width());
  if (dtype != float32 && !is_half(dtype)) {
    throw std::invalid_argument(
        text("[", op, "] dtype must be float32, float16 or bfloat16, got ", dtype));
  }
  Shape shape = rows.shape();
  shape.back() = format.dims;
  return make_node<KvConvert>(std::move(shape), dtype, {rows}, s, rows_of(format), false);
}

}  // namespace fast

}  // namespace holdfast
