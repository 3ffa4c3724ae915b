// Layout collapsing, gather and scatter of ranges, against the plain definition of a view.
#include <doctest/doctest.h>

#include "kernels/cpu/copy.h"
#include "kernels/strided_test_support.h"

using namespace holdfast;
using namespace holdfast::kernels;
using namespace holdfast::kernels::cpu;
using namespace strided_test;

namespace {

template <typename Word>
void check_view(Random& random, const View& view) {
  std::vector<Word> buffer(static_cast<size_t>(view.buffer_size));
  for (Word& value : buffer) value = static_cast<Word>(random());
  CollapsedLayout layout = collapse(view.shape, view.strides);
  int64_t size = view.size();
  REQUIRE(layout.size == size);
  int64_t begin = pick(random, 0, size);
  int64_t end = pick(random, begin, size);
  if (pick(random, 0, 1) == 0) begin = 0, end = size;
  std::vector<Word> dense(static_cast<size_t>(end - begin) + 1, Word{77});
  gather_range(buffer.data() + view.offset, layout, sizeof(Word), begin, end, dense.data());
  bool equal = true;
  for (int64_t i = begin; i < end; ++i) {
    equal &= dense[static_cast<size_t>(i - begin)] == buffer[static_cast<size_t>(view.at(i))];
  }
  CHECK(equal);
  CHECK(dense.back() == Word{77});
}

template <typename Word>
void check_scatter(Random& random, const View& view) {
  std::vector<Word> buffer(static_cast<size_t>(view.buffer_size), Word{1});
  std::vector<Word> expected = buffer;
  CollapsedLayout layout = collapse(view.shape, view.strides);
  int64_t begin = pick(random, 0, view.size());
  int64_t end = pick(random, begin, view.size());
  std::vector<Word> dense(static_cast<size_t>(end - begin));
  for (Word& value : dense) value = static_cast<Word>(random());
  for (int64_t i = begin; i < end; ++i) {
    expected[static_cast<size_t>(view.at(i))] = dense[static_cast<size_t>(i - begin)];
  }
  scatter_range(dense.data(), layout, sizeof(Word), begin, end, buffer.data() + view.offset);
  CHECK((buffer == expected));
}

}  // namespace

TEST_CASE("collapse merges what one stride can walk") {
  std::vector<int32_t> shape{2, 1, 3, 4};
  CollapsedLayout dense = collapse(shape, dense_strides(shape));
  CHECK(dense.shape == kernels::Dimensions{24});
  CHECK(dense.is_dense());
  CollapsedLayout sliced = collapse(shape, kernels::Dimensions{24, 12, 4, 1});
  CHECK(sliced.shape == kernels::Dimensions{2, 12});
  CollapsedLayout broadcast = collapse(std::vector<int32_t>{5, 6}, kernels::Dimensions{0, 0});
  CHECK(broadcast.shape == kernels::Dimensions{30});
  CHECK_FALSE(broadcast.is_dense());
  CollapsedLayout scalar = collapse(std::vector<int32_t>{}, kernels::Dimensions{});
  CHECK((scalar.size == 1 && scalar.shape.empty() && scalar.is_dense()));
  CollapsedLayout empty = collapse(std::vector<int32_t>{3, 0}, kernels::Dimensions{0, 1});
  CHECK((empty.size == 0 && empty.is_dense()));
  CollapsedLayout reversed = collapse(std::vector<int32_t>{3, 4}, kernels::Dimensions{-4, -1});
  CHECK((reversed.shape == kernels::Dimensions{12} && reversed.strides[0] == -1));
  // More than 2^31 elements.
  CollapsedLayout huge =
      collapse(std::vector<int32_t>{1 << 20, 1 << 20}, kernels::Dimensions{1 << 20, 1});
  CHECK(huge.shape == kernels::Dimensions{int64_t{1} << 40});
}

TEST_CASE("collapse_jointly keeps a dimension that one view needs") {
  std::vector<int64_t> a{4, 1}, b{0, 1};
  std::span<const int64_t> lists[] = {a, b};
  JointLayout joint = collapse_jointly(std::vector<int32_t>{3, 4}, lists);
  CHECK(joint.shape == kernels::Dimensions{3, 4});
  std::span<const int64_t> same[] = {a, a};
  CHECK(collapse_jointly(std::vector<int32_t>{3, 4}, same).shape == kernels::Dimensions{12});
}

TEST_CASE("an odometer may start anywhere, and far away") {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    View view = random_view(random, random_shape(random, 6, 5));
    if (view.size() == 0) continue;
    CollapsedLayout layout = collapse(view.shape, view.strides);
    int64_t start = pick(random, 0, view.size() - 1);
    Odometer at(layout, start);
    bool equal = true;
    for (int64_t i = start; i < view.size();) {
      equal &= at.offset() == view.at(i) - view.offset && offset_at(layout, i) == at.offset();
      int64_t count = pick(random, 1, at.run());
      at.advance(count);
      i += count;
    }
    CHECK(equal);
  }
  CollapsedLayout huge{int64_t{1} << 40, {1 << 20, 1 << 20}, {1 << 21, 1}};
  Odometer at(huge, (int64_t{1} << 40) - 1);
  CHECK(at.offset() == ((int64_t{1} << 20) - 1) * (1 << 21) + (1 << 20) - 1);
  // More dimensions than an odometer keeps inline.
  std::vector<int32_t> many(20, 2);
  std::vector<int64_t> strides(20);
  for (size_t d = 0; d < 20; ++d) strides[d] = int64_t{3} << d;
  CollapsedLayout deep = collapse(many, strides);
  Odometer walk(deep, 0);
  View view{many, strides, 0, 1};
  bool equal = true;
  for (int64_t i = 0; i < 4096; ++i, walk.advance(1)) equal &= walk.offset() == view.at(i);
  CHECK(equal);
}

TEST_CASE("ranges of random views are gathered and scattered") {
  on_each_instruction_set([](const char* name) {
    CAPTURE(name);
    Random random(2);
    for (int round = 0; round < 400; ++round) {
      std::vector<int32_t> shape = random_shape(random, 5, round % 4 == 0 ? 40 : 9);
      while (element_count(shape) > 100000) shape.pop_back();
      View view = random_view(random, shape);
      check_view<uint8_t>(random, view);
      check_view<uint16_t>(random, view);
      check_view<uint32_t>(random, view);
      check_view<uint64_t>(random, view);
      View distinct = random_view(random, shape, true);
      check_scatter<uint8_t>(random, distinct);
      check_scatter<uint16_t>(random, distinct);
      check_scatter<uint32_t>(random, distinct);
      check_scatter<uint64_t>(random, distinct);
    }
  });
}

TEST_CASE("transposed matrices, whole and in grains") {
  on_each_instruction_set([](const char* name) {
    CAPTURE(name);
    for (auto [rows, columns] : {std::pair{300, 517}, {64, 64}, {5, 1000}, {1000, 4}, {33, 31}}) {
      std::vector<uint32_t> buffer(static_cast<size_t>(rows * columns));
      std::iota(buffer.begin(), buffer.end(), 0u);
      CollapsedLayout layout =
          collapse(std::vector<int32_t>{columns, rows}, kernels::Dimensions{1, columns});
      std::vector<uint32_t> dense(buffer.size()), back(buffer.size());
      int64_t grain = copy_grain(layout, 4);
      for (int64_t begin = 0; begin < layout.size; begin += grain) {
        int64_t end = std::min(layout.size, begin + grain);
        gather_range(buffer.data(), layout, 4, begin, end, dense.data() + begin);
        scatter_range(dense.data() + begin, layout, 4, begin, end, back.data());
      }
      bool equal = true;
      for (int64_t c = 0; c < columns; ++c) {
        for (int64_t r = 0; r < rows; ++r) {
          equal &=
              dense[static_cast<size_t>(c * rows + r)] == static_cast<uint32_t>(r * columns + c);
        }
      }
      CHECK(equal);
      CHECK((back == buffer));
    }
  });
}

TEST_CASE("dense copies and fills, streamed or not, at any alignment") {
  std::vector<char> source(70000), target(70200);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i * 31 >> 3);
  for (bool stream : {false, true}) {
    for (size_t shift : {0u, 1u, 16u, 63u}) {
      for (size_t bytes : {0u, 1u, 4095u, 4096u, 65537u}) {
        std::fill(target.begin(), target.end(), char{9});
        copy_dense(target.data() + shift, source.data() + 3, bytes, stream);
        CHECK(std::memcmp(target.data() + shift, source.data() + 3, bytes) == 0);
        CHECK(target[shift + bytes] == 9);
      }
    }
    for (size_t itemsize : {1u, 2u, 4u, 8u}) {
      for (size_t shift : {0u, 1u, 7u}) {
        for (int64_t count : {0, 1, 5, 3000}) {
          std::fill(target.begin(), target.end(), char{9});
          uint64_t value = 0x0102030405060708u;
          fill_dense(target.data() + shift * itemsize, &value, itemsize, count, stream);
          bool equal = true;
          for (int64_t i = 0; i < count; ++i) {
            equal &= std::memcmp(target.data() + (shift + static_cast<size_t>(i)) * itemsize,
                                 &value, itemsize) == 0;
          }
          CHECK(equal);
          CHECK(target[(shift + static_cast<size_t>(count)) * itemsize] == 9);
        }
      }
    }
  }
}
