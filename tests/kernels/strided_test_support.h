// What the tests of the strided kernels share: random views, task orders, and a loop over the
// instruction sets of this machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "kernels/cpu/instruction_set.h"
#include "kernels/plan/layout.h"

namespace strided_test {

using Random = std::mt19937;

inline int64_t pick(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

// A view into a buffer of `buffer_size` elements; its first element is at `offset`.
struct View {
  std::vector<int32_t> shape;
  std::vector<int64_t> strides;
  int64_t offset = 0;
  int64_t buffer_size = 1;

  int64_t size() const { return holdfast::kernels::element_count(shape); }
  // Offset from the buffer's start of a row-major position: the plain definition.
  int64_t at(int64_t position) const {
    int64_t result = offset;
    for (size_t d = shape.size(); d-- > 0;) {
      result += position % shape[d] * strides[d];
      position /= shape[d];
    }
    return result;
  }
};

// Dimensions in any memory order, steps, negative strides and (unless `distinct`) broadcast ones.
inline View random_view(Random& random, std::vector<int32_t> shape, bool distinct = false) {
  View view;
  view.shape = std::move(shape);
  view.strides.resize(view.shape.size());
  std::vector<size_t> order(view.shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  bool plain = pick(random, 0, 2) == 0;
  if (!plain) std::shuffle(order.begin(), order.end(), random);
  int64_t next = 1;
  for (size_t i = order.size(); i-- > 0;) {
    size_t d = order[i];
    int64_t extent = std::max(view.shape[d], 1);
    int64_t kind = plain ? 9 : pick(random, 0, 9);
    if (kind == 0 && !distinct) {
      view.strides[d] = 0;
      continue;
    }
    int64_t step = kind == 1 ? pick(random, 2, 3) : 1;
    view.strides[d] = next * step;
    next *= extent * step;
    if (kind == 2) {
      view.offset += view.strides[d] * (extent - 1);
      view.strides[d] = -view.strides[d];
    }
  }
  view.buffer_size = next;
  return view;
}

inline std::vector<int32_t> random_shape(Random& random, int most_dimensions = 4,
                                         int most_extent = 9) {
  std::vector<int32_t> shape(static_cast<size_t>(pick(random, 0, most_dimensions)));
  for (int32_t& extent : shape) {
    extent = static_cast<int32_t>(pick(random, 0, 19) == 0 ? pick(random, 0, 1)
                                                           : pick(random, 1, most_extent));
  }
  return shape;
}

enum class Order { forward, backward, shuffled, threads };

// Runs tasks 0 .. count-1 in an order that no kernel may notice.
template <typename F>
void run_tasks(int64_t count, Order order, const F& run) {
  if (order == Order::threads) {
    std::vector<std::thread> threads;
    for (int64_t t = 0; t < 4; ++t) {
      threads.emplace_back([=, &run] {
        for (int64_t task = t; task < count; task += 4) run(task);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return;
  }
  std::vector<int64_t> tasks(static_cast<size_t>(count));
  std::iota(tasks.begin(), tasks.end(), int64_t{0});
  if (order == Order::backward) std::reverse(tasks.begin(), tasks.end());
  if (order == Order::shuffled) std::shuffle(tasks.begin(), tasks.end(), Random(5));
  for (int64_t task : tasks) run(task);
}

// Calls f with each instruction set in force.
template <typename F>
void on_each_instruction_set(const F& f) {
  for (holdfast::kernels::cpu::InstructionSet set :
       holdfast::kernels::cpu::available_instruction_sets()) {
    holdfast::kernels::cpu::force_instruction_set(set);
    f(holdfast::kernels::cpu::instruction_set_name(set));
  }
  holdfast::kernels::cpu::unforce_instruction_set();
}

// The same, and on the last one also with each lesser way to multiply bfloat16 and bytes.
template <typename F>
void on_each_product(const F& f) {
  using holdfast::kernels::cpu::BFloat16Products;
  on_each_instruction_set(f);
  BFloat16Products best = holdfast::kernels::cpu::bfloat16_products();
  auto limited = [&](BFloat16Products most, const char* name) {
    if (best <= most) return;
    holdfast::kernels::cpu::limit_bfloat16_products(most);
    f(name);
  };
  limited(BFloat16Products::in_pairs, "bfloat16 in pairs");
  limited(BFloat16Products::in_float32, "bfloat16 in float32");
  holdfast::kernels::cpu::limit_bfloat16_products(BFloat16Products::in_tiles);
  holdfast::kernels::cpu::limit_byte_dot(false);
  f("bytes in pairs");
  holdfast::kernels::cpu::limit_byte_dot(true);
}

// Memory with alignment 64, as kernels get it from the allocator.
template <typename T>
class Aligned {
 public:
  explicit Aligned(int64_t count)
      : bytes_(static_cast<size_t>(count) * sizeof(T)),
        data_(static_cast<T*>(::operator new(std::max<size_t>(bytes_, 1), std::align_val_t(64)))) {
    std::memset(static_cast<void*>(data_), 0xa5, bytes_);
  }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  ~Aligned() { ::operator delete(data_, std::align_val_t(64)); }
  T* get() { return data_; }
  T& operator[](int64_t i) { return data_[i]; }
  bool same_bits(const Aligned& other) const {
    return bytes_ == other.bytes_ && std::memcmp(data_, other.data_, bytes_) == 0;
  }

 private:
  size_t bytes_;
  T* data_;
};

}  // namespace strided_test
