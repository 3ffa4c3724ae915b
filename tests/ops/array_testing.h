// Helpers for tests of ops: reading results without the ops under test, and views of every kind.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <holdfast/holdfast.h>

#include "support/device.h"

namespace holdfast::testing {

// The elements in row-major order, read through the strides by hand.
template <typename T>
std::vector<T> values_of(array a) {
  a.eval();
  REQUIRE(a.dtype().size() == sizeof(T));
  std::vector<T> result;
  result.reserve(a.size());
  std::vector<int64_t> index(a.ndim(), 0);
  const T* data = a.data<T>();
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d) offset += index[d] * a.strides()[d];
    result.push_back(data[offset]);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < a.shape()[d]) break;
      index[d] = 0;
    }
  }
  return result;
}

template <typename T>
void check_values(const array& a, const Shape& shape, const std::vector<T>& expected) {
  CHECK(a.shape() == shape);
  CHECK(values_of<T>(a) == expected);
}

// Strides and flags of an evaluated array.
inline void check_layout(array a, const Strides& strides, bool contiguous_flag, bool row,
                         bool column, size_t data_size) {
  a.eval();
  CHECK(a.strides() == strides);
  CHECK(bool(a.flags().contiguous) == contiguous_flag);
  CHECK(bool(a.flags().row_contiguous) == row);
  CHECK(bool(a.flags().col_contiguous) == column);
  CHECK(a.data_size() == data_size);
}

// `call` throws exactly E, and the message starts with "[op]".
template <typename E>
void check_error(std::string_view op, const std::function<void()>& call) {
  std::string prefix = "[" + std::string(op) + "]";
  try {
    call();
    FAIL_CHECK("expected an error that starts with " << prefix);
  } catch (const E& error) {
    CHECK_MESSAGE(std::string_view(error.what()).starts_with(prefix), error.what());
    CHECK(std::string_view(error.what()).size() > prefix.size() + 10);
  }
}

struct NamedView {
  std::string name;
  array view;
};

// Evaluated views of shape (3, 4) (and two odd ones) over the given elements, repeated as needed.
template <typename T>
std::vector<NamedView> views_of(const std::vector<T>& elements, Dtype dtype) {
  auto make = [&](Shape shape) {
    std::vector<T> data;
    size_t size = 1;
    for (int dim : shape) size *= static_cast<size_t>(dim);
    for (size_t i = 0; i < size; ++i) data.push_back(elements[i % elements.size()]);
    return array(data.begin(), shape, dtype);
  };
  std::vector<NamedView> views = {
      {"contiguous", make({3, 4})},
      {"transposed", transpose(make({4, 3}))},
      {"every second column", slice(make({3, 8}), {0, 1}, {3, 8}, {1, 2})},
      {"reversed", slice(make({3, 4}), {2, 3}, {-4, -5}, {-1, -1})},
      {"broadcast scalar", broadcast_to(make({}), {3, 4})},
      {"broadcast row", broadcast_to(make({4}), {3, 4})},
      {"broadcast column", broadcast_to(make({3, 1}), {3, 4})},
      {"0-d", make({})},
      {"empty", make({0, 4})},
  };
  for (NamedView& view : views) view.view.eval();
  return views;
}

}  // namespace holdfast::testing
