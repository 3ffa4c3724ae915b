// The kernels of neural networks beside what the machine or the float32 product reaches in the same
// run.
#include <holdfast/holdfast.h>

#include <functional>

#include "benchmarks/bench.h"
#include "benchmarks/roofline.h"

namespace holdfast::bench {
namespace {

using Work = std::function<void()>;

// Arrays of any dtype used in turn, beyond the last-level cache together.
class Turns {
 public:
  template <typename Make>
  explicit Turns(const Make& make, size_t bytes = size_t{512} << 20) {
    for (uint64_t seed = 1; bytes_ <= bytes; ++seed) {
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

class Bench {
 public:
  Bench(Report& report, const Options& options) : report_(report), options_(options) {}

  // Operations per second beside those of a 2048³ float32 product.
  void against_product(const std::string& name, double operations, double bar, const Work& work) {
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
                 .bar = ratio_at_least(bar)});
  }

  // Bytes read per second beside a hand-written read.
  void against_read(const std::string& name, size_t bytes, double bar, const Work& work) {
    Roofline& roofline = Roofline::get();
    Rotation& floats = memory();
    Pairs pairs = interleave(options_.seconds(), work, [&] {
      volatile float sum = roofline.read(floats.next().data<float>(), elements);
      (void)sum;
    });
    double read = elements * sizeof(float);
    report_.add({.name = name,
                 .value = static_cast<double>(bytes) / 1e9 / median(pairs.a),
                 .unit = "GB/s",
                 .reference = "hand-written read, all cores",
                 .reference_value = read / 1e9 / median(pairs.b),
                 .ratio = static_cast<double>(bytes) / read / pairs.ratio(),
                 .bar = ratio_at_least(bar)});
  }

  // Bytes read and written per second beside a hand-written copy.
  void against_copy(const std::string& name, size_t bytes, double bar, const Work& work) {
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
                 .bar = ratio_at_least(bar)});
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
    bench.against_read(std::string("1 x 4096² ") + name + ", b transposed", weights.set_bytes(),
                       0.7, [&] { eval(matmul(x, transpose(weights.next()[0]))); });
    bench.against_read(std::string("1 x 4096² ") + name, weights.set_bytes(), 0.7,
                       [&] { eval(matmul(x, weights.next()[0])); });
  }
}

void norms(Bench& bench) {
  for (auto [dtype, name] : {std::pair{float32, "float32"}, {bfloat16, "bfloat16"}}) {
    Turns rows([&, d = dtype](const array& key) {
      return std::vector<array>{random::normal({8192, 4096}, d, key)};
    });
    array weight = ones({4096}, dtype), bias = zeros({4096}, dtype);
    eval(weight, bias);
    size_t bytes = 2 * rows.set_bytes();
    bench.against_copy(std::string("rms_norm 8192 x 4096 ") + name, bytes, 0.8,
                       [&] { eval(fast::rms_norm(rows.next()[0], weight, 1e-5f)); });
    bench.against_copy(std::string("layer_norm 8192 x 4096 ") + name, bytes, 0.8,
                       [&] { eval(fast::layer_norm(rows.next()[0], weight, bias, 1e-5f)); });
    bench.against_copy(std::string("rope 8 x 32 x 1024 x 128 ") + name, bytes, 0.8, [&] {
      array x = reshape(rows.next()[0], {8, 32, 1024, 128});
      eval(fast::rope(x, 128, false, 10000.0f, 1.0f, 0));
    });
  }
}

}  // namespace

void run_network(Report& report, const Options& options) {
  Bench bench(report, options);
  products(bench);
  norms(bench);
}

}  // namespace holdfast::bench
