// Matrix products against plain loops in double; values are small integers where the result must be
// exact.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/matmul.h"
#include "kernels/strided_test_support.h"

using namespace holdfast;
using namespace holdfast::kernels;
using namespace holdfast::kernels::cpu;
using namespace strided_test;

namespace {

template <typename T>
T random_element(Random& random) {
  auto part = [&] { return static_cast<float>(pick(random, -2, 2)); };
  if constexpr (std::is_same_v<T, complex64_t>) {
    return complex64_t(part(), part());
  } else {
    return static_cast<T>(part());
  }
}

template <typename T>
std::complex<double> wide(T value) {
  if constexpr (std::is_same_v<T, complex64_t>) {
    return {value.real(), value.imag()};
  } else {
    return static_cast<double>(value);
  }
}

// A stack with the batch shape of `view`'s leading dimensions.
MatrixStack stack_of(const View& view) {
  size_t n = view.shape.size();
  return {std::span(view.strides).first(n - 2), view.strides[n - 2], view.strides[n - 1]};
}

template <typename T>
void check(Random& random, Dtype::Val dtype, std::vector<int32_t> batch, int32_t m, int32_t n,
           int32_t k) {
  std::vector<int32_t> a_shape = batch, b_shape = batch;
  a_shape.insert(a_shape.end(), {m, k});
  b_shape.insert(b_shape.end(), {k, n});
  View a = random_view(random, a_shape), b = random_view(random, b_shape);
  Aligned<T> a_data(a.buffer_size), b_data(b.buffer_size);
  for (int64_t i = 0; i < a.buffer_size; ++i) a_data[i] = random_element<T>(random);
  for (int64_t i = 0; i < b.buffer_size; ++i) b_data[i] = random_element<T>(random);
  MatmulPlan plan(dtype, batch, m, n, k, stack_of(a), stack_of(b));
  int64_t count = element_count(batch);
  Aligned<T> c(count * m * n), again(count * m * n);
  CHECK(plan.task_scratch_bytes() < (size_t{4} << 20));
  run_tasks(plan.tasks(), Order::shuffled, [&](int64_t task) {
    Aligned<char> scratch(static_cast<int64_t>(plan.task_scratch_bytes()));
    plan.run(task, a_data.get() + a.offset, b_data.get() + b.offset, c.get(), scratch.get());
  });
  run_tasks(plan.tasks(), Order::threads, [&](int64_t task) {
    Aligned<char> scratch(static_cast<int64_t>(plan.task_scratch_bytes()));
    plan.run(task, a_data.get() + a.offset, b_data.get() + b.offset, again.get(), scratch.get());
  });
  CHECK(c.same_bits(again));
  bool equal = true;
  for (int64_t p = 0; p < count; ++p) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        std::complex<double> sum = 0;
        for (int64_t l = 0; l < k; ++l) {
          sum += wide(a_data[a.at((p * m + i) * k + l)]) * wide(b_data[b.at((p * k + l) * n + j)]);
        }
        T expected{};
        if constexpr (std::is_same_v<T, complex64_t>) {
          expected = complex64_t(static_cast<float>(sum.real()), static_cast<float>(sum.imag()));
        } else {
          expected = static_cast<T>(sum.real());
        }
        equal &= c[(p * m + i) * n + j] == expected;
      }
    }
  }
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  CHECK(equal);
}

void check_dtypes(Random& random, const std::vector<int32_t>& batch, int32_t m, int32_t n,
                  int32_t k) {
  check<float>(random, Dtype::Val::float32, batch, m, n, k);
  check<double>(random, Dtype::Val::float64, batch, m, n, k);
  check<complex64_t>(random, Dtype::Val::complex64, batch, m, n, k);
  check<float16_t>(random, Dtype::Val::float16, batch, m, n, k);
  check<bfloat16_t>(random, Dtype::Val::bfloat16, batch, m, n, k);
}

// A row times dense matrices [k, n], or [n, k]^T times a column: outputs are contiguous, and the
// depth is cut.
template <typename T>
void check_parts(Random& random, Dtype::Val dtype, int64_t outputs, int64_t k, bool by_row) {
  constexpr int64_t count = 2;
  const int32_t batch[] = {count};
  const int64_t matrix_batch[] = {k * outputs}, vector_batch[] = {k};
  MatrixStack matrix{matrix_batch, by_row ? 1 : outputs, by_row ? outputs : 1};
  MatrixStack vector{vector_batch, by_row ? 1 : k, by_row ? k : 1};
  Aligned<T> matrices(count * k * outputs), vectors(count * k);
  for (int64_t i = 0; i < count * k * outputs; ++i) matrices[i] = random_element<T>(random);
  for (int64_t i = 0; i < count * k; ++i) vectors[i] = random_element<T>(random);
  MatmulPlan plan(dtype, batch, by_row ? outputs : 1, by_row ? 1 : outputs, k,
                  by_row ? matrix : vector, by_row ? vector : matrix, true);
  REQUIRE(plan.part_bytes() > 0);
  CHECK(plan.tasks() > 8);
  Aligned<char> parts(static_cast<int64_t>(plan.part_bytes()));
  Aligned<T> c(count * outputs);
  run_tasks(plan.tasks(), Order::shuffled, [&](int64_t task) {
    const T* a = by_row ? matrices.get() : vectors.get();
    const T* b = by_row ? vectors.get() : matrices.get();
    plan.run(task, a, b, parts.get(), nullptr);
  });
  run_tasks(plan.products(), Order::shuffled,
            [&](int64_t product) { plan.add_parts(product, product + 1, parts.get(), c.get()); });
  bool equal = true;
  for (int64_t p = 0; p < count; ++p) {
    for (int64_t i = 0; i < outputs; ++i) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += static_cast<double>(matrices[(p * k + l) * outputs + i]) *
               static_cast<double>(vectors[p * k + l]);
      }
      equal &= c[p * outputs + i] == static_cast<T>(sum);
    }
  }
  CAPTURE(by_row);
  CHECK(equal);
}

// C of a product; b is [k, n], or [n, k] when it is transposed.
template <typename T>
std::vector<T> product(Dtype::Val dtype, int64_t m, int64_t n, int64_t k, const T* a, const T* b,
                       bool transposed = false) {
  MatrixStack left{{}, k, 1}, right{{}, transposed ? 1 : n, transposed ? k : 1};
  MatmulPlan plan(dtype, {}, m, n, k, left, right);
  std::vector<T> c(static_cast<size_t>(m * n));
  Aligned<char> scratch(static_cast<int64_t>(plan.task_scratch_bytes()));
  std::memset(scratch.get(), 0xff, plan.task_scratch_bytes());  // NaNs
  for (int64_t task = 0; task < plan.tasks(); ++task) plan.run(task, a, b, c.data(), scratch.get());
  return c;
}

// Elements at the beginning or at the end of pages between pages that nobody may touch.
template <typename T>
class Fenced {
 public:
  Fenced(int64_t count, bool at_end) {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)),
           bytes = static_cast<size_t>(count) * sizeof(T);
    size_t inner = (bytes + page - 1) / page * page;
    size_ = inner + 2 * page;
    void* memory = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    start_ = static_cast<char*>(memory);
    REQUIRE(mprotect(start_ + page, inner, PROT_READ | PROT_WRITE) == 0);
    data_ = reinterpret_cast<T*>(start_ + page + (at_end ? inner - bytes : 0));
  }
  ~Fenced() { munmap(start_, size_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  T* get() { return data_; }
  T& operator[](int64_t i) { return data_[i]; }

 private:
  char* start_;
  size_t size_;
  T* data_;
};

}  // namespace

TEST_CASE("products of random shapes, strides and batches") {
  on_each_product([](const char* name) {
    CAPTURE(name);
    Random random(41);
    for (int round = 0; round < 60; ++round) {
      std::vector<int32_t> batch = random_shape(random, 2, 4);
      auto extent = [&] {
        return static_cast<int32_t>(pick(random, 0, 5) == 0 ? pick(random, 0, 1)
                                                            : pick(random, 1, 70));
      };
      check_dtypes(random, batch, extent(), extent(), extent());
    }
  });
}

TEST_CASE("edges of every size, long depth, matrix times vector") {
  on_each_product([](const char* name) {
    CAPTURE(name);
    Random random(42);
    for (int32_t m = 1; m <= 30; ++m) check<float>(random, Dtype::Val::float32, {}, m, 35 - m, 17);
    for (int32_t n = 1; n <= 70; n += 3) check<double>(random, Dtype::Val::float64, {}, 9, n, 5);
    check_dtypes(random, {}, 20, 40, 1000);
    check_dtypes(random, {}, 1, 700, 300);
    check_dtypes(random, {}, 700, 1, 1300);
    check_dtypes(random, {3}, 1, 1, 2500);
    check_dtypes(random, {}, 300, 280, 40);
  });
}

TEST_CASE("few outputs of a long depth are added up from parts") {
  on_each_product([](const char* name) {
    CAPTURE(name);
    Random random(44);
    for (bool by_row : {false, true}) {
      check_parts<float>(random, Dtype::Val::float32, 2100, 1003, by_row);
      check_parts<double>(random, Dtype::Val::float64, 37, 100001, by_row);
      check_parts<float16_t>(random, Dtype::Val::float16, 300, 9001, by_row);
      check_parts<bfloat16_t>(random, Dtype::Val::bfloat16, 333, 9001, by_row);
    }
  });
}

TEST_CASE("large products are cut into tiles, and the cut does not show in the bits") {
  on_each_product([](const char* name) {
    CAPTURE(name);
    Random random(43);
    int64_t m = 600, n = 1100, k = 500;
    std::vector<float> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n));
    std::normal_distribution<float> normal;
    for (float& value : a) value = normal(random);
    for (float& value : b) value = normal(random);
    std::vector<float> whole = product(Dtype::Val::float32, m, n, k, a.data(), b.data());
    // Rows 100 .. 399 alone: other tiles, same bits.
    std::vector<float> part = product(Dtype::Val::float32, 300, n, k, a.data() + 100 * k, b.data());
    CHECK(std::memcmp(part.data(), whole.data() + 100 * n, part.size() * sizeof(float)) == 0);
    double worst = 0;
    for (int64_t i = 0; i < m; i += 37) {
      for (int64_t j = 0; j < n; j += 41) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += static_cast<double>(a[static_cast<size_t>(i * k + l)]) *
                 static_cast<double>(b[static_cast<size_t>(l * n + j)]);
        worst = std::max(
            worst, std::abs(sum - static_cast<double>(whole[static_cast<size_t>(i * n + j)])));
      }
    }
    CHECK(worst < 1e-4);
  });
}

TEST_CASE("few rows of bfloat16 are as those of many, whichever operand is packed") {
  on_each_product([](const char* name) {
    CAPTURE(name);
    Random random(45);
    int64_t m = 300, n = 200;
    for (int64_t k : {1600, 777}) {
      std::vector<bfloat16_t> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n));
      std::normal_distribution<float> normal;
      for (bfloat16_t& value : a) value = normal(random);
      for (bfloat16_t& value : b) value = normal(random);
      for (bool transposed : {false, true}) {
        auto whole = product(Dtype::Val::bfloat16, m, n, k, a.data(), b.data(), transposed);
        for (int64_t rows : {2, 16, 17, 33, 160}) {
          auto part =
              product(Dtype::Val::bfloat16, rows, n, k, a.data() + 70 * k, b.data(), transposed);
          CAPTURE(rows);
          CHECK(std::memcmp(part.data(), whole.data() + 70 * n, part.size() * 2) == 0);
        }
      }
    }
  });
}

TEST_CASE("products of bfloat16 read nothing beside their operands") {
  on_each_product([](const char* name) {
    CAPTURE(name);
    Random random(46);
    for (auto [m, n, k] : {std::array{32, 64, 64},
                           {16, 40, 800},
                           {48, 33, 832},
                           {17, 64, 96},
                           {64, 128, 45},
                           {32, 32, 770},
                           {250, 48, 800}}) {
      for (int round = 0; round < 2; ++round) {
        check<bfloat16_t>(random, Dtype::Val::bfloat16, {}, m, n, k);
      }
      // Dense operands that end where memory ends, or begin where it begins.
      for (bool transposed : {false, true}) {
        for (bool at_end : {false, true}) {
          Fenced<bfloat16_t> a(m * k, at_end), b(k * n, at_end);
          for (int64_t i = 0; i < m * k; ++i) a[i] = static_cast<float>(pick(random, -2, 2));
          for (int64_t i = 0; i < k * n; ++i) b[i] = static_cast<float>(pick(random, -2, 2));
          auto c = product(Dtype::Val::bfloat16, m, n, k, a.get(), b.get(), transposed);
          bool equal = true;
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              double sum = 0;
              for (int64_t l = 0; l < k; ++l) {
                int64_t at = transposed ? j * k + l : l * n + j;
                sum += static_cast<double>(static_cast<float>(a[i * k + l])) *
                       static_cast<double>(static_cast<float>(b[at]));
              }
              equal &= c[static_cast<size_t>(i * n + j)] == bfloat16_t(static_cast<float>(sum));
            }
          }
          CAPTURE(m);
          CAPTURE(k);
          CHECK(equal);
        }
      }
    }
  });
}

TEST_CASE("no depth gives zeros, no rows or columns give nothing") {
  MatrixStack any{{}, 1, 1};
  std::vector<float> c(12, 7.0f);
  MatmulPlan zero(Dtype::Val::float32, {}, 3, 4, 0, any, any);
  for (int64_t task = 0; task < zero.tasks(); ++task)
    zero.run(task, nullptr, nullptr, c.data(), nullptr);
  CHECK((c == std::vector<float>(12, 0.0f)));
  CHECK(MatmulPlan(Dtype::Val::float32, {}, 0, 4, 5, any, any).tasks() == 0);
  CHECK(MatmulPlan(Dtype::Val::float32, {}, 3, 0, 5, any, any).tasks() == 0);
}
