// take: against plain indexing; indices out of range are reported, never followed.
#include <doctest/doctest.h>

#include <type_traits>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/gather.h"
#include "kernels/strided_test_support.h"

using namespace holdfast;
using namespace holdfast::kernels;
using namespace holdfast::kernels::cpu;
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
    IndexStatus status =
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

TEST_CASE("take more places and longer slices than one block, also past the cache") {
  Random random(32);
  on_each_instruction_set([&](const char* name) {
    CAPTURE(name);
    for (bool stream : {false, true}) {
      if (stream) force_stream_threshold(1);
      // Slices of 1 element, of few, and of many bytes that no cache line divides.
      for (int32_t inner : {1, 3, 301, 3001}) {
        int32_t rows = 37, places = inner > 3 ? 60 : 1500;
        int32_t shape[] = {2, rows, inner}, index_shape[] = {places};
        int64_t strides[] = {int64_t{rows} * inner, inner, 1}, one[] = {1};
        GatherPlan plan(4, shape, strides, 1, Dtype::Val::int32, index_shape, one);
        Aligned<uint32_t> input(2 * rows * inner), output(2 * places * inner);
        for (int64_t i = 0; i < 2 * rows * inner; ++i) input[i] = static_cast<uint32_t>(random());
        std::vector<int32_t> indices;
        for (int32_t i = 0; i < places; ++i) {
          indices.push_back(static_cast<int32_t>(pick(random, -rows, rows - 1)));
        }
        run_tasks(plan.tasks(), Order::shuffled, [&](int64_t task) {
          CHECK(plan.run(task, input.get(), indices.data(), output.get()).ok);
        });
        bool equal = true;
        for (int64_t i = 0; i < 2 * places * inner; ++i) {
          int64_t index = (indices[static_cast<size_t>(i / inner % places)] + rows) % rows;
          int64_t outer = i / inner / places;
          equal &= output[i] == input[(outer * rows + index) * inner + i % inner];
        }
        CHECK(equal);
      }
      unforce_stream_threshold();
    }
  });
}

TEST_CASE("take along an axis of random views") {
  Random random(33);
  on_each_instruction_set([&](const char* name) {
    CAPTURE(name);
    for (int round = 0; round < 200; ++round) {
      // The input is as long as the output, but along the axis.
      std::vector<int32_t> shape = random_shape(random, 3, round % 8 == 0 ? 60 : 9);
      if (shape.empty() || element_count(shape) == 0) continue;
      size_t axis = static_cast<size_t>(pick(random, 0, static_cast<int64_t>(shape.size()) - 1));
      std::vector<int32_t> input_shape = shape;
      auto extent = static_cast<int32_t>(pick(random, 1, 20));
      input_shape[axis] = extent;
      View view = random_view(random, input_shape), index_view = random_view(random, shape);
      Aligned<uint16_t> input(view.buffer_size), output(element_count(shape));
      for (int64_t i = 0; i < view.buffer_size; ++i) input[i] = static_cast<uint16_t>(random());
      Aligned<int32_t> indices(index_view.buffer_size);
      for (int64_t i = 0; i < index_view.buffer_size; ++i) {
        indices[i] = static_cast<int32_t>(pick(random, -extent, extent - 1));
      }
      std::vector<int64_t> base = view.strides;
      base[axis] = 0;
      std::span<const int64_t> lists[] = {base, index_view.strides};
      GatherAxisPlan plan(2, Dtype::Val::int32, collapse_jointly(shape, lists),
                          {extent, extent - 1, view.strides[axis]});
      run_tasks(plan.tasks(), Order::shuffled, [&](int64_t task) {
        CHECK(plan.run(task, input.get() + view.offset, indices.get() + index_view.offset,
                       output.get())
                  .ok);
      });
      bool equal = true;
      for (int64_t i = 0; i < element_count(shape); ++i) {
        int64_t at = view.offset, rest = i;
        for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
          if (d != axis) at += rest % shape[d] * view.strides[d];
        }
        at += (indices[index_view.at(i)] + extent) % extent * view.strides[axis];
        equal &= output[i] == input[at];
      }
      CHECK(equal);
    }
  });
}

TEST_CASE("an index out of range is reported with its value and position") {
  float table[4] = {0, 1, 2, 3};
  float output[3];
  int32_t shape[] = {4}, index_shape[] = {3};
  int64_t one[] = {1};
  GatherPlan plan(4, shape, one, 0, Dtype::Val::int32, index_shape, one);
  for (int32_t bad : {4, -5, INT32_MAX, INT32_MIN}) {
    int32_t indices[3] = {-4, bad, 3};
    IndexStatus status = plan.run(0, table, indices, output);
    CHECK_FALSE(status.ok);
    CHECK(status.index == bad);
    CHECK(status.position == 1);
  }
  GatherPlan wide(4, shape, one, 0, Dtype::Val::uint64, index_shape, one);
  uint64_t indices[3] = {UINT64_MAX, 0, 0};
  CHECK(wide.run(0, table, indices, output).index == INT64_MAX);

  // Beyond the first vectors and the first block.
  constexpr int32_t places = 1200;
  int32_t many_shape[] = {places};
  GatherPlan many(4, shape, one, 0, Dtype::Val::int16, many_shape, one);
  std::vector<int16_t> many_indices(places, -1);
  std::vector<float> many_output(places);
  many_indices[1133] = 4;
  many_indices[1190] = 5;
  IndexStatus status = many.run(0, table, many_indices.data(), many_output.data());
  CHECK_FALSE(status.ok);
  CHECK(status.index == 4);
  CHECK(status.position == 1133);
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
