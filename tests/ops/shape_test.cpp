// Views: values, exact strides, flags and data sizes, and that memory is shared.
#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

array counting(const Shape& shape) {
  int size = 1;
  for (int dim : shape) size *= dim;
  array a = reshape(arange(size), shape);
  a.eval();
  return a;
}

bool shares_memory(array a, array b) {
  a.eval();
  b.eval();
  return a.data_shared_ptr() == b.data_shared_ptr();
}

}  // namespace

TEST_CASE("transpose permutes strides and shares memory") {
  array a = counting({2, 3, 4});
  check_layout(a, {12, 4, 1}, true, true, false, 24);
  array t = transpose(a);
  CHECK(t.shape() == Shape{4, 3, 2});
  check_layout(t, {1, 4, 12}, true, false, true, 24);
  CHECK(shares_memory(a, t));
  array p = transpose(a, {0, 2, 1});
  CHECK(p.shape() == Shape{2, 4, 3});
  check_layout(p, {12, 1, 4}, true, false, false, 24);
  check_values<int>(transpose(counting({2, 3})), {3, 2}, {0, 3, 1, 4, 2, 5});
  CHECK(transpose(a, {0, 1, 2}).id() == a.id());
  check_values<int>(transpose(a, {-1, -3, -2}), {4, 2, 3}, values_of<int>(transpose(a, {2, 0, 1})));
  CHECK(transpose(array(1)).ndim() == 0);
  check_error<std::invalid_argument>("transpose", [&] { transpose(a, {0, 1}); });
  check_error<std::invalid_argument>("transpose", [&] { transpose(a, {0, 1, 1}); });
  check_error<std::out_of_range>("transpose", [&] { transpose(a, {0, 1, 3}); });
}

TEST_CASE("swapaxes and moveaxis") {
  array a = counting({2, 3, 4});
  CHECK(swapaxes(a, 0, -1).shape() == Shape{4, 3, 2});
  CHECK(moveaxis(a, 0, -1).shape() == Shape{3, 4, 2});
  CHECK(moveaxis(a, 2, 0).shape() == Shape{4, 2, 3});
  check_values<int>(moveaxis(counting({2, 3}), 1, 0), {3, 2}, {0, 3, 1, 4, 2, 5});
  check_error<std::out_of_range>("swapaxes", [&] { swapaxes(a, 0, 3); });
  check_error<std::out_of_range>("moveaxis", [&] { moveaxis(a, -4, 0); });
}

TEST_CASE("broadcast_to repeats with stride 0") {
  array scalar = broadcast_to(array(5), {2, 3});
  check_values<int>(scalar, {2, 3}, {5, 5, 5, 5, 5, 5});
  check_layout(scalar, {0, 0}, true, false, false, 1);
  array row = broadcast_to(counting({3}), {2, 3});
  check_layout(row, {0, 1}, true, false, false, 3);
  check_values<int>(row, {2, 3}, {0, 1, 2, 0, 1, 2});
  array column = broadcast_to(counting({2, 1}), {2, 3});
  check_layout(column, {1, 0}, true, false, false, 2);
  check_values<int>(column, {2, 3}, {0, 0, 0, 1, 1, 1});
  check_layout(broadcast_to(array(5), {0, 3}), {0, 0}, true, true, true, 0);
  array a = counting({2, 3});
  CHECK(broadcast_to(a, {2, 3}).id() == a.id());
  check_error<std::invalid_argument>("broadcast_to", [&] { broadcast_to(a, {3}); });
  check_error<std::invalid_argument>("broadcast_to", [&] { broadcast_to(a, {2, 4}); });
  check_error<std::invalid_argument>("broadcast_to", [&] { broadcast_to(a, {-1, 3}); });
  check_error<std::overflow_error>(
      "broadcast_to", [] { broadcast_to(array(1), {2147483647, 2147483647, 2147483647}); });
  std::vector<array> both = broadcast_arrays({counting({3, 1}), counting({4})});
  CHECK(both[0].shape() == Shape{3, 4});
  CHECK(both[1].shape() == Shape{3, 4});
  check_error<std::invalid_argument>("broadcast_arrays",
                                     [] { broadcast_arrays({zeros({3}), zeros({4})}); });
  // Also where there is one element.
  array single = broadcast_to(ones({1, 3}), {4, 1, 3});
  single.eval();
  CHECK(single.strides() == Strides{0, 0, 1});
}

TEST_CASE("squeeze and expand_dims") {
  array a = counting({1, 3, 1, 4});
  CHECK(squeeze(a).shape() == Shape{3, 4});
  CHECK(squeeze(a, 0).shape() == Shape{3, 1, 4});
  CHECK(squeeze(a, {0, -2}).shape() == Shape{3, 4});
  check_layout(squeeze(a), {4, 1}, true, true, false, 12);
  CHECK(shares_memory(a, squeeze(a)));
  array t = transpose(counting({2, 3}));
  check_layout(expand_dims(t, {0, 2}), {3, 1, 6, 3}, true, false, true, 6);
  CHECK(expand_dims(t, {0, -1}).shape() == Shape{1, 3, 2, 1});
  CHECK(expand_dims(array(1), 0).shape() == Shape{1});
  check_values<int>(expand_dims(t, 1), {3, 1, 2}, {0, 3, 1, 4, 2, 5});
  check_error<std::invalid_argument>("squeeze", [&] { squeeze(a, 1); });
  check_error<std::invalid_argument>("squeeze", [&] { squeeze(a, {0, 0}); });
  check_error<std::out_of_range>("squeeze", [&] { squeeze(a, 4); });
  check_error<std::invalid_argument>("expand_dims", [&] { expand_dims(a, {0, 0}); });
  check_error<std::out_of_range>("expand_dims", [&] { expand_dims(a, 6); });
}

TEST_CASE("reshape shares where strides allow and copies where they do not") {
  array a = counting({4, 6});
  CHECK(shares_memory(a, reshape(a, {2, 12})));
  check_layout(reshape(a, {2, 2, 6}), {12, 6, 1}, true, true, false, 24);
  array t = transpose(a);
  CHECK_FALSE(shares_memory(t, reshape(t, {24})));
  std::vector<int> expected;
  for (int c = 0; c < 6; ++c) {
    for (int r = 0; r < 4; ++r) expected.push_back(r * 6 + c);
  }
  check_values<int>(reshape(t, {24}), {24}, expected);
  check_layout(reshape(t, {24}), {1}, true, true, true, 24);
  // Splitting one axis of a transposed array needs no copy.
  array split_axis = reshape(t, {3, 2, 4});
  CHECK(shares_memory(t, split_axis));
  check_layout(split_axis, {2, 1, 6}, true, false, false, 24);
  check_values<int>(split_axis, {3, 2, 4}, expected);
  // Rows with gaps: splitting rows shares, merging them copies.
  array gaps = slice(a, {0, 0}, {4, 4});
  CHECK(shares_memory(gaps, reshape(gaps, {2, 2, 2, 2})));
  CHECK_FALSE(shares_memory(gaps, reshape(gaps, {16})));
  check_values<int>(reshape(gaps, {8, 2}), {8, 2},
                    {0, 1, 2, 3, 6, 7, 8, 9, 12, 13, 14, 15, 18, 19, 20, 21});
  array repeated = broadcast_to(array(7), {2, 3});
  CHECK(shares_memory(repeated, reshape(repeated, {6})));
  check_layout(reshape(repeated, {6}), {0}, true, false, false, 1);
  CHECK(reshape(a, {-1, 8}).shape() == Shape{3, 8});
  CHECK(reshape(a, {4, 6}).id() == a.id());
  CHECK(reshape(zeros({0, 3}), {-1, 5}).shape() == Shape{0, 5});
  CHECK(reshape(zeros({0, 3}), {5, 0}).shape() == Shape{5, 0});
  CHECK(reshape(array(3), {1, 1}).shape() == Shape{1, 1});
  CHECK(reshape(counting({1, 1}), {}).ndim() == 0);
  check_error<std::invalid_argument>("reshape", [&] { reshape(a, {5, 5}); });
  check_error<std::invalid_argument>("reshape", [&] { reshape(a, {-1, -1}); });
  check_error<std::invalid_argument>("reshape", [&] { reshape(a, {7, -1}); });
  check_error<std::invalid_argument>("reshape", [&] { reshape(a, {-2, 12}); });
  check_error<std::invalid_argument>("reshape", [] { reshape(zeros({0, 3}), {-1, 0}); });
}

TEST_CASE("flatten, unflatten, atleast") {
  array a = counting({2, 3, 4});
  CHECK(flatten(a).shape() == Shape{24});
  CHECK(flatten(a, 1).shape() == Shape{2, 12});
  CHECK(flatten(a, 0, 1).shape() == Shape{6, 4});
  CHECK(flatten(a, -5, 9).shape() == Shape{24});
  CHECK(flatten(array(1)).shape() == Shape{1});
  CHECK(unflatten(a, -1, {2, -1}).shape() == Shape{2, 3, 2, 2});
  check_error<std::invalid_argument>("flatten", [&] { flatten(a, 2, 1); });
  check_error<std::invalid_argument>("unflatten", [&] { unflatten(a, 0, {}); });
  check_error<std::invalid_argument>("unflatten", [&] { unflatten(a, 1, {2, 2}); });
  check_error<std::out_of_range>("unflatten", [&] { unflatten(a, 3, {1}); });
  CHECK(atleast_1d(array(1)).shape() == Shape{1});
  CHECK(atleast_2d(counting({3})).shape() == Shape{1, 3});
  CHECK(atleast_3d(counting({3})).shape() == Shape{1, 3, 1});
  CHECK(atleast_3d(counting({3, 2})).shape() == Shape{3, 2, 1});
  CHECK(atleast_3d(std::vector<array>{array(1), a})[0].shape() == Shape{1, 1, 1});
}

TEST_CASE("copy and contiguous") {
  array a = counting({2, 3});
  array c = copy(a);
  CHECK_FALSE(shares_memory(a, c));
  check_values<int>(c, {2, 3}, {0, 1, 2, 3, 4, 5});
  array t = transpose(a);
  check_values<int>(copy(t), {3, 2}, {0, 3, 1, 4, 2, 5});
  check_layout(copy(t), {2, 1}, true, true, false, 6);
  CHECK(shares_memory(a, contiguous(a)));
  CHECK_FALSE(shares_memory(t, contiguous(t)));
  CHECK(shares_memory(t, contiguous(t, true)));
  check_values<int>(contiguous(t), {3, 2}, {0, 3, 1, 4, 2, 5});
  CHECK(copy(zeros({0, 3})).shape() == Shape{0, 3});
  CHECK(shares_memory(a, stop_gradient(a)));
}

TEST_CASE("view reinterprets bytes") {
  check_values<uint32_t>(view(array({1.0f, -2.0f}), uint32), {2}, {0x3f800000u, 0xc0000000u});
  array bytes({0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}, {2, 4}, uint8);
  check_values<float>(view(bytes, float32), {2, 1}, {1.0f, 2.0f});
  check_values<uint8_t>(view(array({1.0f}), uint8), {4}, {0, 0, 0x80, 0x3f});
  // Columns are not next to each other, and a slice may be out of alignment: both are copied.
  check_values<float>(
      view(transpose(array({0, 0, 0, 0, 0x80, 0, 0x3f, 0x40}, {4, 2}, uint8)), float32), {2, 1},
      {1.0f, 2.0f});
  array shifted = slice(array({9, 0, 0, 0x80, 0x3f}, {5}, uint8), {1}, {5});
  array aligned = view(shifted, float32);
  check_values<float>(aligned, {1}, {1.0f});
  CHECK(reinterpret_cast<uintptr_t>(aligned.data<char>()) % sizeof(float) == 0);
  array every_second =
      slice(array({0, 9, 0, 9, 0x80, 9, 0x3f, 9}, {1, 8}, uint8), {0, 0}, {1, 8}, {1, 2});
  check_values<float>(view(every_second, float32), {1, 1}, {1.0f});
  check_values<uint16_t>(view(slice(counting({2, 2}), {0, 0}, {2, 1}), uint16), {2, 2},
                         {0, 0, 2, 0});
  // A program's memory may begin anywhere.
  for (size_t begin : {0, 1}) {
    alignas(float) uint8_t memory[9] = {};
    std::copy_n(bytes.data<uint8_t>(), 8, memory + begin);
    array adopted(memory + begin, {8}, uint8, nullptr);
    array seen = view(adopted, float32);
    check_values<float>(seen, {2}, {1.0f, 2.0f});
    CHECK(shares_memory(adopted, seen) == (begin == 0));
  }
  CHECK(view(zeros({0, 4}, uint8), uint32).shape() == Shape{0, 1});
  check_error<std::invalid_argument>("view", [] { view(zeros({3}, uint8), float32); });
  check_error<std::invalid_argument>("view", [] { view(array(1.0f), uint8); });
}

TEST_CASE("as_strided stays inside the array") {
  array a = counting({6});
  check_values<int>(as_strided(a, {2, 2}, {1, 1}, 3), {2, 2}, {3, 4, 4, 5});
  check_values<int>(as_strided(a, {3}, {-2}, 5), {3}, {5, 3, 1});
  check_values<int>(as_strided(transpose(counting({2, 3})), {6}, {1}, 0), {6}, {0, 3, 1, 4, 2, 5});
  CHECK(as_strided(a, {0}, {100}, 50).size() == 0);
  check_error<std::invalid_argument>("as_strided", [&] { as_strided(a, {2, 2}, {9, 1}, 0); });
  check_error<std::invalid_argument>("as_strided", [&] { as_strided(a, {3}, {-2}, 3); });
  check_error<std::invalid_argument>("as_strided", [&] { as_strided(a, {3}, {1, 1}, 0); });
}

TEST_CASE("depends and number_of_elements") {
  array a = counting({3});
  std::vector<array> outputs = depends({a, a + 1}, {a * 2});
  REQUIRE(outputs.size() == 2);
  check_values<int>(outputs[1], {3}, {1, 2, 3});
  check_values<int>(outputs[0], {3}, {0, 1, 2});
  CHECK(values_of<int>(number_of_elements(zeros({2, 3, 4}), {0, -1}, false))[0] == 8);
  CHECK(values_of<float>(number_of_elements(zeros({2, 3, 4}), {0, 2}, true, float32))[0] == 0.125f);
}

TEST_CASE("a float64 op on the gpu is refused when it is built") {
  CHECK_THROWS_AS(add(array(1.0, float64), array(1.0, float64), Device::gpu),
                  std::invalid_argument);
}

TEST_CASE("ops run on any stream, and wait for inputs of other streams") {
  Stream other = new_stream(Device::cpu);
  array a = add(arange(1000.0, other), array(1.0f), other);
  array results[] = {
      full({3, 1000}, a, Device::gpu),
      concatenate({a, multiply(a, a, Device::gpu)}, 0),
      reshape(broadcast_to(a, {3, 1000}, Device::gpu), {3000}),
      take(a, astype(a, int32, other) - 1),
      view(a, int32, Device::gpu),
  };
  for (array& result : results) {
    result.eval();
    CHECK(result.size() >= 1000);
  }
  CHECK(sum(results[0]).item<float>() == 3 * 500500.0f);
  CHECK(sum(results[1], Device::gpu).item<float>() == doctest::Approx(334334000.0));
  CHECK(sum(results[2]).item<float>() == 3 * 500500.0f);
  CHECK(sum(results[3]).item<float>() == 500500.0f);
}
