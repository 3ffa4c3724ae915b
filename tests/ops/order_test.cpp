// In which order the outputs of one eval are computed: it shows in the memory that it takes.
#include <algorithm>

#include <holdfast/memory.h>

#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// The sums after each of `length` steps, each of which takes one megabyte.
std::vector<array> sums_along_chain(const array& start, int length) {
  std::vector<array> sums;
  array x = start;
  for (int i = 0; i < length; ++i) {
    x = cumsum(x, 0);
    sums.push_back(sum(x));
  }
  return sums;
}

size_t peak_of(std::vector<array> outputs) {
  size_t before = get_active_memory();
  reset_peak_memory();
  eval(outputs);
  return get_peak_memory() - before;
}

}  // namespace

TEST_CASE(
    "what outputs share is let go as soon as each has used it, in whatever order they are given") {
  array start = zeros({1 << 18});
  eval(start);
  constexpr int length = 16;
  std::vector<array> sums = sums_along_chain(start, length);
  size_t in_order = peak_of(std::move(sums));
  CHECK(in_order < size_t{6} << 20);
  sums = sums_along_chain(start, length);
  std::reverse(sums.begin(), sums.end());
  CHECK(peak_of(std::move(sums)) <= in_order);
  // Each once more, and some that are computed already.
  sums = sums_along_chain(start, length);
  eval(sums[2], sums[3]);
  std::rotate(sums.begin(), sums.begin() + 7, sums.end());
  for (int i = 0; i < length; ++i) sums.push_back(sums[static_cast<size_t>(i)]);
  CHECK(peak_of(std::move(sums)) <= in_order + (size_t{1} << 20));
}

TEST_CASE("outputs have the same values in whatever order they are given") {
  array start = random::normal({64}, float32, random::key(1));
  auto values = [&](int by) {
    std::vector<array> sums = sums_along_chain(start, 9);
    std::vector<array> given = sums;
    std::rotate(given.begin(), given.begin() + by, given.end());
    eval(given);
    std::vector<float> result;
    for (const array& a : sums) result.push_back(a.data<float>()[0]);
    return result;
  };
  std::vector<float> expected = values(0);
  for (int by = 1; by < 9; ++by) CHECK(values(by) == expected);
}
