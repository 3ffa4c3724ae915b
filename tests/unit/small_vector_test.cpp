// SmallVector: inside and outside its own storage, with values that must be destroyed.
#include <doctest/doctest.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <holdfast/small_vector.h>

using holdfast::SmallVector;

namespace {
template <typename V>
std::vector<typename V::value_type> list(const V& values) {
  return {values.begin(), values.end()};
}
}  // namespace

TEST_CASE("SmallVector: construction and comparison") {
  SmallVector<int> a{1, 2, 3};
  CHECK(list(a) == std::vector{1, 2, 3});
  CHECK(a == SmallVector<int>{1, 2, 3});
  CHECK(a != SmallVector<int>{1, 2});
  CHECK(SmallVector<int>(3, 7) == SmallVector<int>{7, 7, 7});
  CHECK(SmallVector<int>(size_t{4}).size() == 4);
  std::vector<long> longs{4, 5};
  CHECK(SmallVector<int>(longs.begin(), longs.end()) == SmallVector<int>{4, 5});
  std::istringstream input("1 2 3");
  CHECK(SmallVector<int>(std::istream_iterator<int>(input), std::istream_iterator<int>()) ==
        SmallVector<int>{1, 2, 3});
  CHECK(SmallVector<int>{}.empty());
  CHECK(a.front() == 1);
  CHECK(a.back() == 3);
  CHECK(*a.rbegin() == 3);
  CHECK(a.at(2) == 3);
  CHECK_THROWS_AS(a.at(3), std::out_of_range);
}

TEST_CASE("SmallVector: grows beyond its own storage and keeps its values") {
  SmallVector<std::string, 2> a;
  for (int i = 0; i < 50; ++i) a.push_back(std::string(static_cast<size_t>(i) + 20, 'x'));
  CHECK(a.size() == 50);
  CHECK(a.capacity() >= 50);
  for (size_t i = 0; i < 50; ++i) CHECK(a[i].size() == i + 20);
  SmallVector<std::string, 2> full{"a", "b"};
  full.push_back(full[0]);  // an argument that lives in the vector
  CHECK(list(full) == std::vector<std::string>{"a", "b", "a"});
}

TEST_CASE("SmallVector: copy, move and self-assignment, small and large") {
  for (size_t size : {size_t{2}, size_t{30}}) {
    SmallVector<std::string, 4> a(size, "value long enough for the heap");
    SmallVector<std::string, 4> copy(a), assigned;
    assigned = a;
    CHECK(copy == a);
    CHECK(assigned == a);
    SmallVector<std::string, 4> moved(std::move(copy));
    CHECK(moved == a);
    CHECK(copy.empty());
    assigned = std::move(moved);
    CHECK(assigned == a);
    CHECK(moved.empty());
    auto& self = assigned;
    assigned = self;
    CHECK(assigned == a);
    assigned = {"x"};
    CHECK(assigned.size() == 1);
    moved.push_back("still usable");
    CHECK(moved.back() == "still usable");
  }
}

TEST_CASE("SmallVector: insert, erase, resize") {
  for (size_t start : {size_t{3}, size_t{10}}) {
    SmallVector<int> a;
    std::vector<int> b;
    for (int i = 0; i < static_cast<int>(start); ++i) {
      a.push_back(i);
      b.push_back(i);
    }
    std::vector<int> more{70, 71, 72, 73, 74, 75, 76, 77};
    CHECK(*a.insert(a.begin() + 1, 50) == 50);
    b.insert(b.begin() + 1, 50);
    a.insert(a.end(), size_t{2}, 60);
    b.insert(b.end(), size_t{2}, 60);
    a.insert(a.begin() + 2, more.begin(), more.end());
    b.insert(b.begin() + 2, more.begin(), more.end());
    CHECK(list(a) == b);
    CHECK(*a.erase(a.begin() + 1) == 70);
    b.erase(b.begin() + 1);
    a.erase(a.begin() + 2, a.begin() + 5);
    b.erase(b.begin() + 2, b.begin() + 5);
    CHECK(list(a) == b);
    a.resize(20, 9);
    b.resize(20, 9);
    CHECK(list(a) == b);
    a.resize(4);
    b.resize(4);
    CHECK(list(a) == b);
    a.pop_back(2);
    CHECK(a.size() == 2);
    a.clear();
    CHECK(a.empty());
  }
}

TEST_CASE("SmallVector: every value is destroyed once") {
  auto token = std::make_shared<int>(1);
  {
    SmallVector<std::shared_ptr<int>, 2> a(5, token), b(1, token);
    a.erase(a.begin(), a.begin() + 2);
    b = a;
    a.pop_back();
    SmallVector<std::shared_ptr<int>, 2> c(std::move(b));
    c.insert(c.begin(), token);
  }
  CHECK(token.use_count() == 1);
}

TEST_CASE("SmallVector: prints as (a,b,c)") {
  std::ostringstream text;
  using holdfast::operator<<;
  text << SmallVector<int>{1, -2} << SmallVector<int>{} << std::vector<int>{3};
  CHECK(text.str() == "(1,-2)()(3)");
}
