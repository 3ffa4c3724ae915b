// take: against plain indexing; indices out of range are reported, never followed.
#include <doctest/doctest.h>

#include <type_traits>

#include "kernels/cpu/gather.h"
#include "kernels/strided_test_support.h"

using namespace holdfast;
using namespace holdfast::cpu;
using namespace strided_test;

namespace {

template <typename Word, typename Index>
void check(Random& random, Dtype::Val index_type) {
  std::vector<int32_t> shape = random_shape(random, 3, 8);
  shape.insert(shape.begin() + pick(random, 0, static_cast<int64_t>(shape.size())),
               static_cast<int32_t>(pick(random, 1, 20)));
  int axis = static_cast<int>(pick(random, 0, static_cast<int64_t>(shape.size()) - 1));
  if (shape[static_cast<size_t>(axis)] == 0) return;
  View view = random_view(random, shape);
  View index_view = random_view(random, random_shape(random, 3, 6));
  Aligned<Word> input(view.buffer_size);
  for (int64_t i = 0; i < view.buffer_size; ++i) input[i] = static_cast<Word>(random());
  Aligned<Index> indices(index_view.buffer_size);
  int64_t extent = shape[static_cast<size_t>(axis)];
  for (int64_t i = 0; i < index_view.buffer_size; ++i) {
    indices[i] =
        static_cast<Index>(pick(random, std::is_signed_v<Index> ? -extent : 0, extent - 1));
  }
  GatherPlan plan(sizeof(Word), shape, view.strides, axis, index_type, index_view.shape,
                  index_view.strides);
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    if (d < axis) outer *= shape[static_cast<size_t>(d)];
    if (d > axis) inner *= shape[static_cast<size_t>(d)];
  }
  int64_t picks = index_view.size();
  Aligned<Word> output(outer * picks * inner);
  run_tasks(plan.tasks(), Order::shuffled, [&](int64_t task) {
    GatherStatus status =
        plan.run(task, input.get() + view.offset, indices.get() + index_view.offset, output.get());
    CHECK(status.ok);
  });
  bool equal = true;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t p = 0; p < picks; ++p) {
      auto index = static_cast<int64_t>(indices[index_view.at(p)]);
      if (index < 0) index += extent;
      for (int64_t i = 0; i < inner; ++i) {
        equal &=
            output[(o * picks + p) * inner + i] == input[view.at((o * extent + index) * inner + i)];
      }
    }
  }
  CHECK(equal);
}

}  // namespace

TEST_CASE("take from random views with all index types") {
  Random random(31);
  for (int round = 0; round < 150; ++round) {
    check<uint8_t, uint8_t>(random, Dtype::Val::uint8);
    check<uint16_t, int8_t>(random, Dtype::Val::int8);
    check<uint32_t, uint16_t>(random, Dtype::Val::uint16);
    check<uint64_t, int16_t>(random, Dtype::Val::int16);
    check<uint8_t, uint32_t>(random, Dtype::Val::uint32);
    check<uint16_t, int32_t>(random, Dtype::Val::int32);
    check<uint32_t, uint64_t>(random, Dtype::Val::uint64);
    check<uint64_t, int64_t>(random, Dtype::Val::int64);
  }
}

TEST_CASE("an index out of range is reported with its value and position") {
  float table[4] = {0, 1, 2, 3};
  float output[3];
  int32_t shape[] = {4}, index_shape[] = {3};
  int64_t one[] = {1};
  GatherPlan plan(4, shape, one, 0, Dtype::Val::int32, index_shape, one);
  for (int32_t bad : {4, -5, INT32_MAX, INT32_MIN}) {
    int32_t indices[3] = {-4, bad, 3};
    GatherStatus status = plan.run(0, table, indices, output);
    CHECK_FALSE(status.ok);
    CHECK(status.index == bad);
    CHECK(status.position == 1);
    CHECK(output[0] == 0);
  }
  GatherPlan wide(4, shape, one, 0, Dtype::Val::uint64, index_shape, one);
  uint64_t indices[3] = {UINT64_MAX, 0, 0};
  CHECK(wide.run(0, table, indices, output).index == INT64_MAX);
}

TEST_CASE("take nothing, or from nothing") {
  int32_t shape[] = {0, 5}, none[] = {0};
  int64_t strides[] = {5, 1}, one[] = {1};
  CHECK(GatherPlan(4, shape, strides, 0, Dtype::Val::int32, none, one).tasks() == 0);
  // An empty axis with an index: reported.
  int32_t some[] = {1};
  GatherPlan plan(4, shape, strides, 0, Dtype::Val::int32, some, one);
  int32_t index = 0;
  float output[5];
  REQUIRE(plan.tasks() == 1);
  CHECK_FALSE(plan.run(0, output, &index, output).ok);
}
