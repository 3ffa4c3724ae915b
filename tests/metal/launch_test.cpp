// What the families share: division by known numbers, grids of several rows, positions beyond 2^31.
#include <doctest/doctest.h>

#include <random>
#include <stdexcept>
#include <string>

#include "exec/runtime.h"
#include "kernels/metal/walk.h"
#include "kernels/views.h"
#include "metal/comparison.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;
namespace back_end = holdfast::kernels::metal;

namespace {

Stream any_stream() { return default_stream(Device::gpu); }

}  // namespace

TEST_CASE("a number that the parameter of a kernel does not hold is left to the host") {
  const uint32_t most = back_end::fit(int64_t{0xffffffff});
  CHECK(most == 0xffffffff);
  auto too_large = [] { return static_cast<uint32_t>(back_end::fit(int64_t{1} << 32)); };
  CHECK_THROWS_AS(too_large(), exec::NoKernel);
  auto negative = [] { return static_cast<uint64_t>(back_end::fit(-1)); };
  CHECK_THROWS_AS(negative(), exec::NoKernel);
}

TEST_CASE("an extent divides as the processor does") {
  std::mt19937 random(1);
  auto check = [](uint32_t number, uint32_t size) {
    const back_end::Extent extent = back_end::extent_of(size, 0);
    const uint64_t high = (uint64_t{number} * extent.multiplier) >> 32;
    if (high >> extent.shift != number / size) FAIL_CHECK(number << " / " << size);
  };
  constexpr uint32_t most = back_end::most_small_elements;
  for (int i = 0; i < 200000; ++i) {
    const uint32_t size = std::max(2u, uint32_t(random() >> 1 >> (random() % 30)));
    check(random() >> 1, size);
    check(most, size);
    check(most / size * size, size);
    check(most / size * size - 1, size);
  }
}

TEST_CASE("kernels for more than 2^31 elements, over a grid of several rows") {
  array x = reshape(arange(2 * 30 * 50, int32), {2, 30, 50});
  array view = transpose(slice(x, {0, 0, 1}, {2, 30, 50}, {1, 1, 2}), {2, 0, 1});
  view.eval();
  array got = make_op("large", any_stream(), {view}, view.shape(),
                      [](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                        struct {
                          uint64_t size;
                          int32_t dimensions;
                          bool aligned, inside;
                        } copy{in[0].size(), 0, true, false};
                        kernels::CollapsedLayout layout =
                            kernels::collapse(span_of(in[0].shape()), span_of(in[0].strides()));
                        copy.dimensions = layout.dimensions();
                        encoder.allocate(out[0]);
                        back_end::Launch(encoder, "copy", "copy_strided_large_4")
                            .input(in[0])
                            .output(out[0])
                            .value(copy)
                            .list(back_end::extents_of(layout))
                            .over({64, 7}, {32});
                      });
  CHECK(array_equal(got, view).item<bool>());
}

TEST_CASE("the parts of a walk visit what the whole does, in its order") {
  using kernels::offset_at;
  const Strides first = {1000, 7, -2, 1}, second = {0, 30, 10, 0};
  std::span<const int64_t> views[] = {span_of(first), span_of(second)};
  const Shape shape = {3, 5, 4, 6};
  const kernels::JointLayout whole = kernels::collapse_jointly(span_of(shape), views);
  for (int64_t most : {1, 2, 5, 6, 7, 24, 50, 119, 120, 240, 359, 360, 1000}) {
    CAPTURE(most);
    int64_t position = 0;
    for (const back_end::WalkPart& part : back_end::parts_of(whole, most)) {
      CHECK(part.layout.size <= most);
      REQUIRE(part.first == position);
      for (int64_t i = 0; i < part.layout.size; ++i, ++position) {
        for (int v = 0; v < 2; ++v) {
          CHECK(part.bases[size_t(v)] + offset_at(part.layout.view(v), i) ==
                offset_at(whole.view(v), position));
        }
      }
    }
    CHECK(position == 360);
  }
}

TEST_CASE("a grid that is too long is refused with the op's name") {
  std::string message;
  array x = make_op("long_op", any_stream(), {}, {1},
                    [&](Encoder& encoder, const std::vector<array>&, std::vector<array>& out) {
                      CHECK(back_end::grid_length(encoder, int64_t{1} << 23, 256) == 1u << 31);
                      try {
                        back_end::grid_length(encoder, (int64_t{1} << 23) + 1, 256);
                      } catch (const std::invalid_argument& error) {
                        message = error.what();
                      }
                      encoder.allocate(out[0]);
                      const int32_t zero = 0;
                      encoder.fill(out[0], &zero);
                    });
  x.eval();
  CHECK(message ==
        "[long_op] expected at most 8388608 threadgroups along an axis of its grid, got 8388609");
}

TEST_CASE("a file of kernels that is missing is an error") {
  CHECK_THROWS_AS(back_end::find_entry(exec::Runtime::get().cpu_device(), "no_such_file", "x"),
                  std::logic_error);
}
