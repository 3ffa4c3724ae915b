// Random groups of element-wise ops give the same bits fused and one by one, for every instruction
// set, around every boundary of tiles, blocks and tasks, in the cache and past it.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <holdfast/holdfast.h>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/instruction_set.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// Ordinary numbers, with now and then a NaN (of several payloads), an infinity or a zero.
array leaf(Random& random, const Shape& shape, Dtype dtype) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  size_t size = 1;
  for (int dim : shape) size *= static_cast<size_t>(dim);
  std::vector<float> elements;
  for (size_t i = 0; i < size; ++i) {
    float value = static_cast<float>(random.below(40001)) / 10000.0f - 2.0f;
    if (random.below(16) == 0) {
      uint32_t bits = 0x7fc00000u | random.below(2) << 31 | random.below(1 << 22);
      const float special[] = {infinity, -infinity, 0.0f, -0.0f};
      value = special[random.below(4)];
      if (random.below(2) == 0) std::memcpy(&value, &bits, sizeof(value));
    }
    elements.push_back(value);
  }
  array a(elements.begin(), shape, float32);
  return dtype == float32 ? a : astype(a, dtype);
}

// `rows` × `columns`; its seed alone decides what a graph computes.
struct Graph {
  Random random;
  Dtype dtype;
  int rows, columns;
  std::vector<array> pool;

  Graph(uint64_t seed, Dtype type, int row_count, int column_count)
      : random(seed), dtype(type), rows(row_count), columns(column_count) {
    std::vector<array> leaves;
    leaves.push_back(leaf(random, {rows, columns}, dtype));
    leaves.push_back(leaf(random, {rows, columns}, dtype));
    leaves.push_back(leaf(random, {columns}, dtype));
    leaves.push_back(transpose(leaf(random, {columns, rows}, dtype)));
    leaves.push_back(leaf(random, {}, dtype));
    eval(leaves);
    pool = std::move(leaves);
    // Starts from an array of the whole shape, so that every result has it.
    pool.push_back(pool[0] * pool[1]);
    for (int i = 0; i < 14; ++i) pool.push_back(node());
  }

  const array& any() { return pool[random.below(static_cast<uint32_t>(pool.size()))]; }
  // One of the last two results more often than not: chains.
  const array& whole() {
    size_t results = pool.size() - 5;
    if (random.below(3) != 0) return pool[pool.size() - 1 - random.below(2) % results];
    return pool[5 + random.below(static_cast<uint32_t>(results))];
  }

  array node() {
    array a = whole(), b = any();
    switch (random.below(16)) {
      case 0:
        return a + b;
      case 1:
        return b + a;
      case 2:
        return a * b;
      case 3:
        return b * a;
      case 4:
        return a - b;
      case 5:
        return b / a;
      case 6:
        return a / pool[4];
      case 7:
        return maximum(a, b);
      case 8:
        return exp(-abs(a));
      case 9:
        return erf(a);
      case 10:
        return sigmoid(a) * a;
      case 11:
        return tanh(a);
      case 12:
        return where(a > b, a, b);
      case 13:
        return astype(astype(a, dtype == float32 ? bfloat16 : float32), dtype);
      case 14:
        return square(a) + sqrt(abs(a));
      default:
        return floor(a * array(3.0f, dtype)) + array(0.5f, dtype);
    }
  }

  // Every third result is held by somebody, and so is the last one; the inputs are let go.
  std::string bits(bool fuse) {
    std::vector<array> held;
    for (size_t i = 5; i < pool.size(); ++i) {
      if (i % 3 == 0 || i + 1 == pool.size()) held.push_back(pool[i]);
    }
    pool.clear();
    FusionScope fusion(fuse);
    eval(held);
    std::string result;
    for (array& a : held) {
      // Which of two NaNs an operation forwards, and its sign, is undefined for LLVM, which
      // compiles the kernels of GPUs as well.
#ifdef __clang__
      const bool is_undefined = true;
#else
      const bool is_undefined = default_device() == Device::gpu;
#endif
      if (is_undefined)
        a = where(isnan(a), array(std::numeric_limits<float>::quiet_NaN(), dtype), a);
      array dense = contiguous(a);
      dense.eval();
      result.append(dense.data<char>(), dense.nbytes());
    }
    return result;
  }
};

void compare(int rows, int columns, uint64_t seeds) {
  for (Dtype dtype : {float32, bfloat16, float16}) {
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      std::string fused = Graph(seed, dtype, rows, columns).bits(true);
      std::string alone = Graph(seed, dtype, rows, columns).bits(false);
      INFO("seed ", seed, ", ", rows, " x ", columns, " ", std::string(dtype_name(dtype)));
      CHECK(fused == alone);
    }
  }
}

template <class Body>
void for_each_instruction_set(Body body) {
  for (kernels::cpu::InstructionSet set : kernels::cpu::available_instruction_sets()) {
    kernels::cpu::force_instruction_set(set);
    INFO(std::string(kernels::cpu::instruction_set_name(set)));
    body();
  }
  kernels::cpu::unforce_instruction_set();
}

struct StreamThreshold {
  explicit StreamThreshold(size_t bytes) { kernels::cpu::force_stream_threshold(bytes); }
  ~StreamThreshold() { kernels::cpu::unforce_stream_threshold(); }
};

}  // namespace

TEST_CASE("fused and one by one: the same bits, for any size") {
  for_each_instruction_set([] {
    for (int columns : {1, 3, 15, 16, 17, 63, 127, 128, 129, 383, 1025}) {
      compare(1, columns, 12);
    }
    compare(7, 37, 20);
    compare(3, 11003, 4);  // more than one task
  });
}

TEST_CASE("fused and one by one: the same bits, written past the cache") {
  StreamThreshold threshold(1);
  for_each_instruction_set([] {
    for (int columns : {1, 17, 128, 131, 1025}) compare(1, columns, 12);
    compare(3, 11003, 4);
  });
}

TEST_CASE("large inputs that are read across their rows are put in order first") {
  for (Dtype dtype : {float32, bfloat16, int32, int64}) {
    CAPTURE(std::string(dtype_name(dtype)));
    array a = astype(arange(300 * 400) % array(251), dtype);
    array x = reshape(a, {300, 400}), y = reshape(a, {400, 300});
    eval(x, y);
    array strided = x + transpose(y) * x;
    array dense = x + contiguous(transpose(y)) * x;
    CHECK(array_equal(strided, dense).item<bool>());
    // Only some of the inputs, and with a row that is broadcast.
    array row = slice(x, {0, 0}, {1, 400});
    CHECK(array_equal(transpose(y) - row, contiguous(transpose(y)) - row).item<bool>());
  }
}
