#include "kernels/metal/launch.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "base/text.h"
#include "exec/queue.h"
#include "graph/small_input.h"

namespace holdfast::kernels::metal {
namespace {

constexpr int64_t longest_grid = int64_t{1} << 31;  // threads along one axis

}  // namespace

Launch::Launch(Encoder& encoder, const char* source, const std::string& entry,
               const Constants& constants)
    : encoder_(encoder),
      pipeline_(find_entry(encoder.queue().device(), source, entry, constants)) {}

Launch& Launch::input(const array& a) {
  bindings_.push_back(input_by_value(encoder_, a));
  return *this;
}

Launch& Launch::output(array& a) {
  bindings_.push_back(KernelBinding::output(a));
  return *this;
}

Launch& Launch::bytes(const void* address, size_t size) {
  static constexpr uint64_t nothing[3] = {};
  if (size == 0) return bytes(nothing, sizeof(nothing));
  // They are gone where they are a temporary of the caller's statement.
  void* copy = encoder_.queue().parameters(size, 16);
  std::memcpy(copy, address, size);
  bindings_.push_back(KernelBinding::bytes(copy, size));
  return *this;
}

Launch& Launch::errors(const std::vector<std::string>& messages) {
  for (const std::string& message : messages) errors_.append(message).push_back('\0');
  bindings_.push_back(KernelBinding::errors(errors_.data(), errors_.size()));
  return *this;
}

void Launch::over(int64_t threads, uint32_t threadgroup) {
  if (threads == 0) return;
  constexpr int64_t row = int64_t{1} << 30;
  const bool is_one_row = threads < longest_grid;
  over({static_cast<uint32_t>(is_one_row ? threads : row),
        is_one_row ? 1 : static_cast<uint32_t>(divide_up(threads, row))},
       {threadgroup});
}

void Launch::over(Encoder::Grid grid, Encoder::Grid threadgroup) {
  encoder_.dispatch(*pipeline_, {bindings_.data(), bindings_.size()}, grid, threadgroup,
                    {&threadgroup_bytes_, threadgroup_bytes_ > 0 ? size_t{1} : size_t{0}});
}

void Launch::groups(int64_t groups, uint32_t threadgroup) {
  if (groups == 0) return;
  constexpr int64_t row = int64_t{1} << 20;
  over({static_cast<uint32_t>(std::min(groups, row)) * threadgroup,
        static_cast<uint32_t>(divide_up(groups, row))},
       {threadgroup});
}

uint32_t grid_length(const Encoder& encoder, int64_t groups, uint32_t threadgroup) {
  if (groups > longest_grid / threadgroup) {
    throw std::invalid_argument(text("[", encoder.op(), "] expected at most ",
                                     longest_grid / threadgroup,
                                     " threadgroups along an axis of its grid, got ", groups));
  }
  return static_cast<uint32_t>(groups) * threadgroup;
}

Extent extent_of(int64_t size, int64_t stride) {
  Extent extent{stride, fit(size), 0, 0};
  // floor(n / size) = n * multiplier >> (32 + shift) for n < 2^31, with
  // multiplier = ceil(2^(32 + shift) / size) and 2^shift < size <= 2^(shift + 1).
  if (size > 1 && size <= most_small_elements) {
    extent.shift = static_cast<uint32_t>(std::bit_width(extent.size - 1)) - 1;
    extent.multiplier = fit(((uint64_t{1} << (32 + extent.shift)) + extent.size - 1) / extent.size);
  }
  return extent;
}

Extents extents_of(const CollapsedLayout& layout) {
  Extents extents;
  for (size_t i = 0; i < layout.shape.size(); ++i) {
    extents.push_back(extent_of(layout.shape[i], layout.strides[i]));
  }
  return extents;
}

}  // namespace holdfast::kernels::metal
