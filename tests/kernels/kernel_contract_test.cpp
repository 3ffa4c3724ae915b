// The contract of elementwise.h, for every op, element type and instruction set: any length and
// offset, in place, nothing beyond the end, and results that do not depend on the position.
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <optional>

#include "elementwise_test_support.h"

using namespace holdfast;
using namespace holdfast::kernels;
using namespace holdfast::kernels::cpu;
using namespace holdfast::kernels::cpu::test;

namespace {

// `count` elements of a lane, special values among them; NaNs of both signs.
std::vector<unsigned char> lane_operands(Lane lane, int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<unsigned char> bytes(static_cast<size_t>(count) * lane_size(lane));
  std::vector<float> floats = float_operands<float>(80);
  std::vector<double> doubles = float_operands<double>(80);
  std::vector<int64_t> integers = integer_operands<int64_t>();
  for (int i = 0; i < count; ++i) {
    unsigned char* element = bytes.data() + static_cast<size_t>(i) * lane_size(lane);
    if (lane == Lane::b8) {
      *element = random() & 1;
    } else if (lane == Lane::f32 || lane == Lane::c64) {
      for (size_t part = 0; part < lane_size(lane); part += 4) {
        std::memcpy(element + part, &floats[random() % floats.size()], 4);
      }
    } else if (lane == Lane::f64) {
      std::memcpy(element, &doubles[random() % doubles.size()], 8);
    } else {
      std::memcpy(element, &integers[random() % integers.size()], lane_size(lane));
    }
  }
  return bytes;
}

struct Operands {
  std::vector<std::vector<unsigned char>> bytes;
  std::vector<size_t> sizes;  // of an element

  Operands(Op op, Lane lane, int count) {
    int operand_count = elementwise_operand_count(op);
    for (int i = 0; i < operand_count; ++i) {
      Lane operand_lane = operand_count == 3 && i == 0 ? Lane::b8 : lane;
      bytes.push_back(lane_operands(operand_lane, count, static_cast<uint64_t>(i) + 1));
      sizes.push_back(lane_size(operand_lane));
    }
  }
  std::vector<const void*> at(int64_t offset) const {
    std::vector<const void*> result;
    for (size_t i = 0; i < bytes.size(); ++i) {
      result.push_back(bytes[i].data() + static_cast<size_t>(offset) * sizes[i]);
    }
    return result;
  }
};

void check_contract(Op op, Lane lane) {
  constexpr int count = 200;
  BlockKernel kernel = elementwise_kernel(op, lane);
  size_t out_size = lane_size(elementwise_result_lane(op, lane));
  Operands operands(op, lane, count);
  // Each element alone is what it has to be everywhere.
  std::vector<unsigned char> expected(count * out_size);
  for (int i = 0; i < count; ++i)
    kernel(expected.data() + static_cast<size_t>(i) * out_size, operands.at(i).data(), 1);

  int wrong_values = 0, wrong_borders = 0, wrong_in_place = 0;
  for (int64_t n = 0; n <= 135; n += n < 70 ? 1 : 13) {
    for (int64_t offset : {0, 1, 5, 64}) {
      size_t border = 64 + static_cast<size_t>(offset % 5) * out_size;
      size_t length = static_cast<size_t>(n) * out_size;
      std::vector<unsigned char> out(border + length + 128, canary);
      kernel(out.data() + border, operands.at(offset).data(), n);
      wrong_values +=
          std::memcmp(out.data() + border, expected.data() + static_cast<size_t>(offset) * out_size,
                      length) != 0;
      for (size_t i = 0; i < border; ++i) wrong_borders += out[i] != canary;
      for (size_t i = border + length; i < out.size(); ++i) wrong_borders += out[i] != canary;

      // In place over each operand that is at least as wide as the result.
      for (size_t which = 0; which < operands.bytes.size(); ++which) {
        if (operands.sizes[which] < out_size) continue;
        std::vector<unsigned char> shared = operands.bytes[which];
        unsigned char* target = shared.data() + static_cast<size_t>(offset) * operands.sizes[which];
        std::vector<const void*> in = operands.at(offset);
        in[which] = target;
        kernel(target, in.data(), n);
        wrong_in_place +=
            std::memcmp(target, expected.data() + static_cast<size_t>(offset) * out_size, length) !=
            0;
        size_t end = static_cast<size_t>(offset + n) * operands.sizes[which];
        wrong_in_place += std::memcmp(shared.data() + end, operands.bytes[which].data() + end,
                                      shared.size() - end) != 0;
      }
    }
  }
  INFO(name_of(op), " lane ", static_cast<int>(lane));
  CHECK(wrong_values == 0);
  CHECK(wrong_borders == 0);
  CHECK(wrong_in_place == 0);
}

}  // namespace

TEST_CASE(
    "any length and offset, in place, nothing beyond the end: the bits of each element alone") {
  for_each_instruction_set([] {
    for (const TableRow& row : table()) {
      for (int i = 0; i < lane_count; ++i) {
        if (accepts(row.in_types, static_cast<Lane>(i)))
          check_contract(row.op, static_cast<Lane>(i));
      }
    }
  });
}

#if defined(__x86_64__)
namespace {

// Which parts of its state the processor takes to be in use; nothing where it does not tell.
std::optional<uint64_t> state_in_use() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  constexpr uint32_t system_saves_state = 1u << 27, tells_use = 1u << 2;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & system_saves_state) == 0) return {};
  if (!__get_cpuid_count(13, 1, &a, &b, &c, &d) || (a & tells_use) == 0) return {};
  asm volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1));
  return a | uint64_t{d} << 32;
}

}  // namespace

// Else every instruction of 128 bits that the thread makes afterwards waits for an older one.
TEST_CASE("kernels leave nothing in the upper halves of registers") {
  constexpr uint64_t upper_halves = 1u << 2 | 1u << 6;
  for_each_instruction_set([] {
    for (const TableRow& row : table()) {
      for (int i = 0; i < lane_count; ++i) {
        const Lane lane = static_cast<Lane>(i);
        if (!accepts(row.in_types, lane)) continue;
        Operands operands(row.op, lane, 200);
        std::vector<unsigned char> out(200 * sizeof(complex64_t));
        for (int64_t n : {1, 33, 200}) {
          elementwise_kernel(row.op, lane)(out.data(), operands.at(0).data(), n);
          INFO(name_of(row.op), " lane ", i, " of ", n);
          CHECK((state_in_use().value_or(0) & upper_halves) == 0);
        }
      }
    }
  });
}
#endif

TEST_CASE("one operand for both sides") {
  for_each_instruction_set([] {
    std::vector<float> a = float_operands<float>(100);
    auto sum = run_binary<float>(Op::Add, Lane::f32, a, a);
    for (size_t i = 0; i < a.size(); ++i) CHECK(same_bits_or_nan(sum[i], a[i] + a[i]));
  });
}

TEST_CASE("select takes x where the condition holds, bit for bit") {
  for_each_instruction_set([] {
    for (int i = 0; i < lane_count; ++i) {
      Lane lane = static_cast<Lane>(i);
      size_t size = lane_size(lane);
      Operands operands(Op::Select, lane, 130);
      std::vector<unsigned char> out(130 * size);
      elementwise_kernel(Op::Select, lane)(out.data(), operands.at(0).data(), 130);
      int wrong = 0;
      for (size_t k = 0; k < 130; ++k) {
        const auto& taken = operands.bytes[operands.bytes[0][k] ? 1 : 2];
        wrong += std::memcmp(out.data() + k * size, taken.data() + k * size, size) != 0;
      }
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("fill_block repeats the scalar and stops") {
  for (size_t size : {1u, 2u, 4u, 8u}) {
    const unsigned char scalar[] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (int64_t n : {0, 1, 7, 64, 131}) {
      std::vector<unsigned char> out(static_cast<size_t>(n) * size + 9, canary);
      fill_block(out.data(), scalar, size, n);
      int wrong = 0;
      for (size_t i = 0; i < out.size(); ++i) {
        wrong += out[i] != (i < static_cast<size_t>(n) * size ? scalar[i % size] : canary);
      }
      CHECK(wrong == 0);
    }
  }
}
