// Sums of cotangents: what is zero but for a few places is added in place, and the order of sums
// depends on nothing but the function.
#include <cstring>
#include <string>
#include <unordered_set>

#include <holdfast/memory.h>

#include "base/hash.h"
#include "ops/accumulate.h"
#include "ops/array_testing.h"
#include "support/child.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using Arrays = std::vector<array>;

// Nodes of this name and shape among those that `a` is to be computed from.
int count_nodes(const array& a, const std::string& name, const Shape& shape) {
  std::unordered_set<std::uintptr_t> seen;
  Arrays left = {a};
  int count = 0;
  while (!left.empty()) {
    array node = left.back();
    left.pop_back();
    if (!seen.insert(node.id()).second || !node.has_primitive()) continue;
    count += node.primitive().name() == name && node.shape() == shape;
    for (const array& input : node.inputs()) left.push_back(input);
  }
  return count;
}

array rows_of(const array& x) { return take(x, array({1, 3, 1}), 0); }
array part_of(const array& x) { return slice(x, {2, 0}, {4, 2}); }

// A gradient that rounds in many places: sums over a large batch, repeated indices, several uses.
std::string digest_of_gradient() {
  array table = random::normal({50, 64}, random::key(1));
  array weights = random::normal({64, 64}, random::key(2));
  array indices = astype(random::uniform({20000}, random::key(3)) * array(50.0f), int32);
  auto loss = [&](const Arrays& in) {
    array hidden = tanh(matmul(take(in[0], indices, 0), in[1]));
    array other = slice(in[0], {10, 0}, {30, 64}) * array(0.3f);
    return sum(square(hidden)) / array(7.0f) + sum(exp(other)) + mean(take(in[0], 3, 0));
  };
  Arrays gradients = grad(loss, std::vector<int>{0, 1})({table, weights});
  eval(gradients);
  std::string digest;
  for (const array& gradient : gradients) {
    array dense = contiguous(gradient);
    eval(dense);
    Hash128 hash = hash_bytes({dense.data<char>(), dense.nbytes()});
    digest += std::to_string(hash.low) + ":" + std::to_string(hash.high) + " ";
  }
  return digest;
}

}  // namespace

TEST_CASE("cotangents of parts are added in place to those of the whole") {
  array x = reshape(arange(0.0, 8.0, float32), {4, 2}), weights = full({4, 2}, 10.0f);
  eval(x, weights);
  Shape shape = x.shape();
  auto f = [&](const array& a) {
    return sum(a * weights) + sum(rows_of(a)) + array(5.0f) * sum(part_of(a));
  };
  array gradient = grad(f)(x);
  CHECK(count_nodes(gradient, "Add", shape) == 0);
  CHECK(count_nodes(gradient, "Full", shape) == 0);
  check_values<float>(gradient, shape, {10, 10, 12, 12, 15, 15, 16, 16});

  // Without a whole, the first part is put into zeros and the others are added to it.
  gradient = grad([&](const array& a) {
    return sum(rows_of(a)) + array(5.0f) * sum(part_of(a)) + sum(rows_of(a));
  })(x);
  CHECK(count_nodes(gradient, "Add", shape) == 0);
  CHECK(count_nodes(gradient, "Full", shape) == 1);
  check_values<float>(gradient, shape, {0, 0, 4, 4, 5, 5, 7, 7});
}

TEST_CASE("accumulate: only what was put into zeros") {
  array a = full({4, 2}, 2.0f), update = full({2, 2}, 3.0f);
  eval(a, update);
  array into_ones = slice_update(ones({4, 2}), update, {2, 0}, {4, 2});
  check_values<float>(accumulate(a, into_ones), {4, 2}, {3, 3, 3, 3, 5, 5, 5, 5});
  array into_zeros = slice_update(zeros({4, 2}), update, {2, 0}, {4, 2});
  CHECK(accumulate(a, into_zeros).primitive().name() == std::string("SliceUpdate"));
  CHECK(accumulate(into_zeros, a).primitive().name() == std::string("SliceUpdate"));
  check_values<float>(accumulate(into_zeros, a), {4, 2}, {2, 2, 2, 2, 5, 5, 5, 5});
  // The other sum is not changed, nor is the part, and twice the same is twice as much.
  check_values<float>(accumulate(into_zeros, into_zeros), {4, 2}, {0, 0, 0, 0, 6, 6, 6, 6});
  check_values<float>(into_zeros, {4, 2}, {0, 0, 0, 0, 3, 3, 3, 3});
  check_values<float>(a, {4, 2}, {2, 2, 2, 2, 2, 2, 2, 2});
  // Parts of parts are added one after the other, a part that replaces others is none.
  into_zeros = slice_update(zeros({4, 2}), update, {2, 0}, {4, 2});
  array twice = slice_update_add(into_zeros, update, {1, 0}, {3, 2});
  CHECK(count_nodes(accumulate(twice, a), "Add", {4, 2}) == 0);
  array replaced = slice_update(into_zeros, update, {1, 0}, {3, 2});
  array sums[] = {accumulate(twice, a), accumulate(replaced, a)};
  check_values<float>(sums[0], {4, 2}, {2, 2, 5, 5, 8, 8, 5, 5});
  check_values<float>(sums[1], {4, 2}, {2, 2, 5, 5, 5, 5, 5, 5});
  // The largest of zeros and the update is no sum.
  array largest = scatter_max(zeros({3}), array({1}), array({-4.0f}, {1, 1}), 0);
  check_values<float>(accumulate(full({3}, 1.0f), largest), {3}, {1, 1, 1});
}

TEST_CASE_FIXTURE(OnCpu, "cotangents of many parts need the memory of one") {
  array x = ones({1 << 10, 1 << 10});
  eval(x);
  auto f = [](const array& a) {
    array total(0.0f);
    for (int i = 0; i < 12; ++i) {
      total = total + sum(square(take(a, array({i, 2 * i}), 0)));
      total = total + sum(square(slice(a, {i, 0}, {i + 1, 1 << 10})));
    }
    return total;
  };
  array gradient = grad(f)(x);
  size_t before = get_active_memory();
  reset_peak_memory();
  eval(gradient);
  CHECK(get_peak_memory() - before < x.nbytes() + x.nbytes() / 2);
}

TEST_CASE("gradients: the same bits for any number of threads [child]") {
  if (!is_child("gradients: the same bits for any number of threads [child]")) return;
  report(digest_of_gradient());
}

TEST_CASE("gradients: the same bits for any number of threads") {
  std::string expected = digest_of_gradient();
  for (int run = 0; run < 3; ++run) CHECK(digest_of_gradient() == expected);
  const char* child = "gradients: the same bits for any number of threads [child]";
  for (const char* threads : {"HOLDFAST_THREADS=1", "HOLDFAST_THREADS=3", "HOLDFAST_THREADS=8"}) {
    CHECK(reported(run_child(child, {threads})) == expected + "\n");
  }
}
