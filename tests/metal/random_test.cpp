// Random bits are the same on every device.
#include <doctest/doctest.h>

#include "metal/comparison.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

const Row bits_row = {
    .name = "random::bits",
    .entries = {"random_bits"},
    .dtypes = {uint32},
    .shapes = {{0}, {1}, {2}, {3}, {7}, {8}, {1023}, {2048}, {2049}, {33, 70}, {70001}},
    .layouts = {Layout::dense, Layout::shifted, Layout::every_other, Layout::reversed},
    .build = [](Case& c) {
      array key = c.input({2});
      std::vector<array> results;
      for (int width : {1, 2, 4}) results.push_back(random::bits(c.shape, width, key));
      return results;
    }};

}  // namespace

TEST_CASE("metal random bits") { compare(bits_row); }
