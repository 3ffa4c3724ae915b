#include "benchmarks/ops/machine.h"

#include <holdfast/holdfast.h>

#include <functional>

#include "benchmarks/ops/arithmetic.h"
#include "benchmarks/roofline.h"

namespace holdfast::bench {
namespace {

using Work = std::function<void()>;

// Arrays of any dtype used in turn, beyond the last-level cache together.
class Turns {
 public:
  template <typename Make>
  explicit Turns(const Make& make) {
    for (uint64_t seed = 1; bytes_ <= size_t{512} << 20; ++seed) {
      sets_.push_back(make(random::key(seed)));
      eval(sets_.back());
      size_t before = bytes_;
      for (const array& a : sets_.back()) bytes_ += a.nbytes();
      set_bytes_ = bytes_ - before;
    }
  }
  const std::vector<array>& next() { return sets_[++turn_ % sets_.size()]; }
  size_t set_bytes() const { return set_bytes_; }

 private:
  std::vector<std::vector<array>> sets_;
  size_t bytes_ = 0, set_bytes_ = 0, turn_ = 0;
};

// The row's ratio from the two best times, which a busy machine disturbs least.
std::string best_note(const Pairs& pairs, double scale) {
  double ratio = *std::min_element(pairs.b.begin(), pairs.b.end()) /
                 *std::min_element(pairs.a.begin(), pairs.a.end());
  char text[64];
  std::snprintf(text, sizeof(text), "%zu pairs, best to best %.3f", pairs.ratios.size(),
                ratio * scale);
  return text;
}

class Bench {
 public:
  Bench(Report& report, const Options& options) : report_(report), options_(options) {}

  // Operations per second beside those of a 2048³ float32 product.
  void against_product(const std::string& name, double operations, double bar, const Work& work) {
    if (!options_.wants(name)) return;
    constexpr int side = 2048;
    if (product_.empty()) {
      product_ = {random::normal({side, side}, random::key(4)),
                  random::normal({side, side}, random::key(5))};
      eval(product_);
    }
    double reference = 2.0 * side * side * side / 1e9;
    Pairs pairs =
        interleave(options_.seconds(), work, [&] { eval(matmul(product_[0], product_[1])); });
    std::vector<double> ratios;
    for (double ratio : pairs.ratios) ratios.push_back(operations / 1e9 / reference / ratio);
    report_.add({.name = name,
                 .value = operations / 1e9 / median(pairs.a),
                 .unit = "GFLOP/s",
                 .reference = "float32 product 2048³",
                 .reference_value = reference / median(pairs.b),
                 .ratio = median(ratios),
                 .bar = ratio_at_least(bar),
                 .note = best_note(pairs, operations / 1e9 / reference)});
  }

  // Bytes read per second beside a hand-written read of the op's own arrays, in turn: where they
  // lie makes no difference. Both read so much, the op in calls one after the other, that waking
  // threads up does not count (the suite `overhead` measures calls).
  void against_read(const std::string& name, Turns& turns, double bar, const Work& work) {
    if (!options_.wants(name)) return;
    Roofline& roofline = Roofline::get();
    const size_t sets = (elements * sizeof(float) + turns.set_bytes() - 1) / turns.set_bytes();
    auto calls = [&] {
      for (size_t i = 0; i < sets; ++i) work();
    };
    Pairs pairs = interleave(options_.seconds(), calls, [&] {
      std::vector<std::span<const float>> ranges;
      for (size_t i = 0; i < sets; ++i) {
        for (const array& a : turns.next()) {
          ranges.emplace_back(reinterpret_cast<const float*>(a.data<char>()),
                              a.nbytes() / sizeof(float));
        }
      }
      volatile float sum = roofline.read(ranges);
      (void)sum;
    });
    double bytes = static_cast<double>(sets * turns.set_bytes()) / 1e9;
    report_.add({.name = name,
                 .value = bytes / median(pairs.a),
                 .unit = "GB/s",
                 .reference = "hand-written read, all cores",
                 .reference_value = bytes / median(pairs.b),
                 .ratio = 1 / pairs.ratio(),
                 .bar = ratio_at_least(bar),
                 .note = best_note(pairs, 1)});
  }

  // Bytes read and written per second beside a hand-written copy.
  void against_copy(const std::string& name, size_t bytes, double bar, const Work& work) {
    if (!options_.wants(name)) return;
    Roofline& roofline = Roofline::get();
    Rotation& floats = memory();
    static HugeBuffer target(elements);
    Pairs pairs = interleave(options_.seconds(), work, [&] {
      roofline.copy(floats.next().data<float>(), target.data(), elements);
    });
    double moved = 2 * elements * sizeof(float);
    report_.add({.name = name,
                 .value = static_cast<double>(bytes) / 1e9 / median(pairs.a),
                 .unit = "GB/s",
                 .reference = "hand-written copy, all cores",
                 .reference_value = moved / 1e9 / median(pairs.b),
                 .ratio = static_cast<double>(bytes) / moved / pairs.ratio(),
                 .bar = ratio_at_least(bar),
                 .note = best_note(pairs, static_cast<double>(bytes) / moved)});
  }

  // A row whose arithmetic may take longer than its memory: elements per second beside a
  // hand-written loop over rows in the cache, where that is slower than a copy; else as
  // against_copy.
  void against_arithmetic(const std::string& name, Dtype dtype, size_t bytes, double bar,
                          RowLoop loop, const std::string& loop_name, const Work& work) {
    if (!options_.wants(name)) return;
    constexpr size_t row = 4096;
    const size_t count = bytes / 2 / size_of(dtype);
    auto compute = [&] {
      Roofline::get().team().run(static_cast<int64_t>(count / row / 64), [&](int64_t) {
        alignas(64) static thread_local uint16_t from[2 * row], to[2 * row];
        // About 0.01, or 1, in each of the types.
        if (from[0] == 0) std::fill_n(from, 2 * row, uint16_t{0x3c12});
        for (int i = 0; i < 64; ++i) loop(from, to, row);
      });
    };
    Rotation& floats = memory();
    static HugeBuffer target(elements);
    auto copy = [&] { Roofline::get().copy(floats.next().data<float>(), target.data(), elements); };
    const double copies = static_cast<double>(bytes) / (2 * elements * sizeof(float));
    if (loop == nullptr || sample(0.1, compute).best() < copies * sample(0.1, copy).best())
      return against_copy(name, bytes, bar, work);
    Pairs pairs = interleave(options_.seconds(), work, compute);
    auto rate = static_cast<double>(count) / 1e9;
    report_.add({.name = name,
                 .value = rate / median(pairs.a),
                 .unit = "G/s",
                 .reference = "hand-written " + loop_name + " in L1",
                 .reference_value = rate / median(pairs.b),
                 .ratio = 1 / pairs.ratio(),
                 .bar = ratio_at_least(bar),
                 .note = best_note(pairs, 1)});
  }

 private:
  static constexpr size_t elements = size_t{16} << 20;
  Rotation& memory() {
    static Rotation rotation({4096, 4096});
    return rotation;
  }
  Report& report_;
  const Options& options_;
  std::vector<array> product_;
};

void products(Bench& bench) {
  constexpr int side = 2048;
  double operations = 2.0 * side * side * side;
  for (auto [dtype, name, bar] :
       {std::tuple{bfloat16, "bfloat16", 1.5}, {float16, "float16", 0.9}}) {
    array a = random::normal({side, side}, dtype, random::key(1));
    array b = random::normal({side, side}, dtype, random::key(2));
    array t = transpose(b);
    eval(a, b, t);
    bench.against_product(std::string("2048³ ") + name, operations, bar,
                          [&] { eval(matmul(a, b)); });
    bench.against_product(std::string("2048³ ") + name + ", b transposed", operations, bar,
                          [&] { eval(matmul(a, t)); });
  }
  constexpr int depth = 4096;
  for (auto [dtype, name] : {std::pair{float32, "float32"}, {bfloat16, "bfloat16"}}) {
    Turns weights([&, d = dtype](const array& key) {
      return std::vector<array>{random::normal({depth, depth}, d, key)};
    });
    array x = random::normal({1, depth}, dtype, random::key(3));
    eval(x);
    bench.against_read(std::string("1 x 4096² ") + name + ", b transposed", weights, 0.7,
                       [&] { eval(matmul(x, transpose(weights.next()[0]))); });
    bench.against_read(std::string("1 x 4096² ") + name, weights, 0.7,
                       [&] { eval(matmul(x, weights.next()[0])); });
  }
}

constexpr std::pair<Dtype, const char*> float_types[] = {
    {float32, "float32"}, {bfloat16, "bfloat16"}, {float16, "float16"}};

void elementwise(Bench& bench) {
  for (auto [dtype, name] : float_types) {
    std::string suffix = std::string(" 4096² ") + name;
    Turns matrices([&, d = dtype](const array& key) {
      return std::vector<array>{random::normal({4096, 4096}, d, key)};
    });
    size_t bytes = matrices.set_bytes();
    auto next = [&] { return matrices.next()[0]; };
    bench.against_copy("square" + suffix, 2 * bytes, 0.8, [&] { eval(square(next())); });
    bench.against_copy("a + b" + suffix, 3 * bytes, 0.8, [&] { eval(next() + next()); });
    bench.against_arithmetic("exp" + suffix, dtype, 2 * bytes, 0.8, exp_loop(dtype), "exp",
                             [&] { eval(exp(next())); });
    bench.against_read("sum of all" + suffix, matrices, 0.8, [&] { eval(sum(next())); });
    bench.against_read("sum of rows" + suffix, matrices, 0.8, [&] { eval(sum(next(), 1)); });
    bench.against_read("sum of columns" + suffix, matrices, 0.8, [&] { eval(sum(next(), 0)); });
    bench.against_read("argmax of rows" + suffix, matrices, 0.8, [&] { eval(argmax(next(), 1)); });
    bench.against_arithmetic("softmax of rows" + suffix, dtype, 2 * bytes, 0.8, softmax_loop(dtype),
                             "softmax", [&] { eval(softmax(next(), 1)); });
    array places = random::randint(0, 4096, {4096}, int32, random::key(9));
    eval(places);
    bench.against_copy("take rows" + suffix, 2 * bytes, 0.8,
                       [&] { eval(take(next(), places, 0)); });
  }
}

void sorting(Report& report, const Options& options) {
  if (!options.wants("sort 1M float32")) return;
  array a = random::normal({1 << 20}, random::key(10));
  eval(a);
  std::vector<float> copy(a.size());
  Pairs pairs = interleave(
      options.seconds(), [&] { eval(sort(a, 0)); },
      [&] {
        // Copying costs a hundredth of sorting.
        std::copy_n(a.data<float>(), a.size(), copy.begin());
        std::sort(copy.begin(), copy.end());
      });
  report.add({.name = "sort 1M float32",
              .value = median(pairs.a) * 1e3,
              .unit = "ms",
              .reference = "std::sort",
              .reference_value = median(pairs.b) * 1e3,
              .ratio = 1 / pairs.ratio(),
              .bar = ratio_at_least(5),
              .note = describe(pairs, true)});
}

void norms(Bench& bench) {
  for (auto [dtype, name] : float_types) {
    Turns rows([&, d = dtype](const array& key) {
      return std::vector<array>{random::normal({8192, 4096}, d, key)};
    });
    array weight = ones({4096}, dtype), bias = zeros({4096}, dtype);
    eval(weight, bias);
    size_t bytes = 2 * rows.set_bytes();
    bench.against_arithmetic(std::string("rms_norm 8192 x 4096 ") + name, dtype, bytes, 0.8,
                             rms_norm_loop(dtype), "rms_norm",
                             [&] { eval(fast::rms_norm(rows.next()[0], weight, 1e-5f)); });
    bench.against_arithmetic(std::string("layer_norm 8192 x 4096 ") + name, dtype, bytes, 0.8,
                             layer_norm_loop(dtype), "layer_norm",
                             [&] { eval(fast::layer_norm(rows.next()[0], weight, bias, 1e-5f)); });
    bench.against_arithmetic(std::string("rope 8 x 32 x 1024 x 128 ") + name, dtype, bytes, 0.8,
                             rope_loop(dtype), "rope", [&] {
                               array x = reshape(rows.next()[0], {8, 32, 1024, 128});
                               eval(fast::rope(x, 128, false, 10000.0f, 1.0f, 0));
                             });
  }
}

void quantised(Bench& bench) {
  constexpr int side = 4096;
  Turns weights([&](const array& key) {
    return quantize(random::normal({side, side}, bfloat16, key), 64, 4);
  });
  array one = random::normal({1, side}, bfloat16, random::key(1));
  array many = random::normal({32, side}, bfloat16, random::key(2));
  eval(one, many);
  auto product = [&](const array& x) {
    const std::vector<array>& w = weights.next();
    eval(quantized_matmul(x, w[0], w[1], w[2], true, 64, 4));
  };
  bench.against_read("quantized_matmul 4 bits, 1 x 4096² bfloat16", weights, 0.7,
                     [&] { product(one); });
  bench.against_product("quantized_matmul 4 bits, 32 x 4096² bfloat16", 2.0 * 32 * side * side, 1.0,
                        [&] { product(many); });
}

void attention(Bench& bench) {
  constexpr int heads = 32, key_heads = 8, features = 128;
  Turns caches([&](const array& key) {
    Shape shape{1, key_heads, 4096, features};
    return std::vector<array>{random::normal(shape, bfloat16, key),
                              random::normal(shape, bfloat16, key)};
  });
  array query = random::normal({1, heads, 1, features}, bfloat16, random::key(3));
  eval(query);
  bench.against_read("attention, 1 query, 4096 keys bfloat16", caches, 0.7, [&] {
    const std::vector<array>& cache = caches.next();
    eval(fast::scaled_dot_product_attention(query, cache[0], cache[1], 0.09f));
  });
  constexpr int length = 1024;
  array q = random::normal({1, heads, length, features}, bfloat16, random::key(4));
  array k = random::normal({1, key_heads, length, features}, bfloat16, random::key(5));
  array v = random::normal({1, key_heads, length, features}, bfloat16, random::key(6));
  eval(q, k, v);
  bench.against_product("attention, 1024 queries and keys bfloat16",
                        4.0 * heads * length * length * features, 0.6,
                        [&] { eval(fast::scaled_dot_product_attention(q, k, v, 0.09f)); });
}

void convolutions(Bench& bench) {
  array x = random::normal({8, 56, 56, 128}, random::key(7));
  array w = random::normal({128, 3, 3, 128}, random::key(8));
  eval(x, w);
  bench.against_product("conv2d 3 x 3, 8 x 56 x 56 x 128 float32",
                        2.0 * 8 * 56 * 56 * 128 * 9 * 128, 0.6,
                        [&] { eval(conv2d(x, w, {1, 1}, {1, 1})); });
}

void transforms(Bench& bench) {
  Turns rows([](const array& key) {
    return std::vector<array>{astype(random::normal({4096, 4096}, key), complex64)};
  });
  bench.against_copy("fft of 4096 rows of 4096 complex64", 2 * rows.set_bytes(), 0.1,
                     [&] { eval(fft::fft(rows.next()[0])); });
}

}  // namespace

void run_machine_rows(Report& report, const Options& options) {
  Bench bench(report, options);
  elementwise(bench);
  if (options.wants("2048³ float32")) run_matmul(report, options);
  sorting(report, options);
  products(bench);
  quantised(bench);
  attention(bench);
  convolutions(bench);
  norms(bench);
  transforms(bench);
}

}  // namespace holdfast::bench
