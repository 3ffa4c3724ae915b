#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include <holdfast/holdfast.h>

#include "exec/hazards.h"
#include "graph/encoder_scope.h"

using namespace holdfast;
using namespace holdfast::exec;

namespace {

// Commands one after the other, over a few storages.
struct Commands {
  HazardTable table;
  std::vector<Edge> edges;
  uint32_t count = 0;

  struct Access {
    Storage& storage;
    uint64_t identity;
    int64_t begin, end;
    bool writes;
  };

  // The edges of a command with these bindings, reads first, sorted by predecessor.
  std::vector<std::pair<uint32_t, Edge::Kind>> add(std::vector<Access> accesses) {
    uint32_t first_edge = static_cast<uint32_t>(edges.size());
    for (bool writes : {false, true}) {
      for (Access& a : accesses) {
        if (a.writes != writes) continue;
        Binding binding{nullptr, a.identity, &a.storage, a.begin, a.end, a.writes};
        table.access(table.find(&a.storage), binding, count, edges, first_edge);
      }
    }
    ++count;
    std::vector<std::pair<uint32_t, Edge::Kind>> result;
    for (size_t i = first_edge; i < edges.size(); ++i) {
      result.emplace_back(edges[i].predecessor, edges[i].kind);
    }
    std::sort(result.begin(), result.end());
    return result;
  }
};

constexpr auto data = Edge::Kind::data;
constexpr auto reuse = Edge::Kind::reuse;
using Edges = std::vector<std::pair<uint32_t, Edge::Kind>>;

}  // namespace

TEST_CASE("hazards: a read follows the write of its data") {
  Storage s;
  Commands c;
  CHECK(c.add({{s, 1, 0, 64, true}}) == Edges{});
  CHECK(c.add({{s, 1, 0, 64, false}}) == Edges{{0, data}});
  CHECK(c.add({{s, 1, 32, 40, false}}) == Edges{{0, data}});
}

TEST_CASE("hazards: a write follows the reads and the write before it") {
  Storage s;
  Commands c;
  c.add({{s, 1, 0, 64, true}});
  c.add({{s, 1, 0, 64, false}});
  c.add({{s, 1, 0, 64, false}});
  CHECK(c.add({{s, 1, 0, 64, true}}) == Edges{{0, reuse}, {1, reuse}, {2, reuse}});
  // What came before the write is covered by it.
  CHECK(c.add({{s, 1, 0, 64, true}}) == Edges{{3, reuse}});
  CHECK(c.add({{s, 1, 0, 64, false}}) == Edges{{4, data}});
}

TEST_CASE("hazards: reads do not order each other") {
  Storage s;
  Commands c;
  CHECK(c.add({{s, 1, 0, 64, false}}) == Edges{});
  CHECK(c.add({{s, 1, 0, 64, false}}) == Edges{});
}

TEST_CASE("hazards: disjoint intervals of one storage are independent") {
  Storage s;
  Commands c;
  c.add({{s, 1, 0, 32, true}});
  CHECK(c.add({{s, 1, 32, 64, true}}) == Edges{});
  CHECK(c.add({{s, 1, 0, 32, false}}) == Edges{{0, data}});
  CHECK(c.add({{s, 1, 32, 33, false}}) == Edges{{1, data}});
  CHECK(c.add({{s, 1, 31, 33, false}}) == Edges{{0, data}, {1, data}});
}

TEST_CASE("hazards: a write over a part leaves the rest to the older write") {
  Storage s;
  Commands c;
  c.add({{s, 1, 0, 64, true}});
  CHECK(c.add({{s, 1, 0, 16, true}}) == Edges{{0, reuse}});
  CHECK(c.add({{s, 1, 32, 64, false}}) == Edges{{0, data}});
  CHECK(c.add({{s, 1, 0, 64, false}}) == Edges{{0, data}, {1, data}});
  // A read of a part that is not covered by the next write is remembered.
  CHECK(c.add({{s, 1, 0, 16, true}}) == Edges{{0, reuse}, {1, reuse}, {3, reuse}});
  CHECK(c.add({{s, 1, 0, 64, true}}) == Edges{{0, reuse}, {2, reuse}, {3, reuse}, {4, reuse}});
}

TEST_CASE("hazards: storage that changed its buffer is reuse, not data") {
  Storage s;
  Commands c;
  c.add({{s, 1, 0, 64, true}});
  c.add({{s, 1, 0, 64, false}});
  CHECK(c.add({{s, 2, 0, 64, true}}) == Edges{{0, reuse}, {1, reuse}});
  CHECK(c.add({{s, 2, 0, 64, false}}) == Edges{{2, data}});
  // What it reads was never its own.
  CHECK(c.add({{s, 3, 0, 64, false}}) == Edges{{2, reuse}});
}

TEST_CASE("hazards: a command that reads and writes the same bytes does not wait for itself") {
  Storage s;
  Commands c;
  c.add({{s, 1, 0, 64, true}});
  CHECK(c.add({{s, 1, 0, 64, false}, {s, 1, 0, 64, true}}) == Edges{{0, data}});
  CHECK(c.add({{s, 1, 0, 64, false}, {s, 1, 0, 64, true}}) == Edges{{1, data}});
}

TEST_CASE("hazards: one edge for each predecessor, data if any is") {
  Storage s, t;
  Commands c;
  c.add({{s, 1, 0, 64, true}, {t, 2, 0, 64, true}});
  CHECK(c.add({{s, 1, 0, 64, false}, {t, 3, 0, 64, true}}) == Edges{{0, data}});
}

TEST_CASE("hazards: clearing forgets, and many storages make the table grow") {
  std::vector<std::unique_ptr<Storage>> storages;
  for (int i = 0; i < 1000; ++i) storages.push_back(std::make_unique<Storage>());
  Commands c;
  for (auto& storage : storages) CHECK(c.add({{*storage, 1, 0, 8, true}}) == Edges{});
  for (uint32_t i = 0; i < 1000; ++i) {
    CHECK(c.add({{*storages[i], 1, 0, 8, false}}) == Edges{{i, data}});
  }
  c.table.clear();
  for (auto& storage : storages) CHECK(c.add({{*storage, 1, 0, 8, true}}) == Edges{});
}

TEST_CASE("hazards: a view is bound as the bytes from its first to its last element") {
  std::vector<int32_t> zeros(20);
  array x(zeros.begin(), {20}, int32);
  auto interval = [](array view) {
    eval(view);
    return byte_interval(view);
  };
  using Bytes = std::pair<int64_t, int64_t>;
  CHECK(interval(slice(x, {2}, {18}, {4})) == Bytes{8, 60});
  CHECK(interval(slice(x, {19}, {0}, {-4})) == Bytes{12, 80});
  CHECK(interval(slice(reshape(x, {4, 5}), {1, 1}, {3, 3})) == Bytes{24, 52});
  CHECK(interval(transpose(reshape(x, {4, 5}))) == Bytes{0, 80});
  CHECK(interval(broadcast_to(slice(x, {3}, {4}), {7})) == Bytes{12, 16});
}
