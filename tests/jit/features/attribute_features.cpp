// Attributes of threads, over a grid of three dimensions with partial threadgroups.
#include "jit/features/feature.h"

namespace holdfast::jit::testing {
namespace {

constexpr Size grid = {13, 5, 3}, asked = {8, 9, 2};  // 9 is clamped to 5
constexpr Size full = {8, 5, 2};

struct Thread {
  Size position, in_group, group, size;  // size: of its own threadgroup, which may be partial
  uint32_t index() const { return in_group[0] + size[0] * (in_group[1] + size[1] * in_group[2]); }
  uint32_t total() const { return size[0] * size[1] * size[2]; }
};

uint32_t divided_up(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

template <class Body>
void each_thread(Body body) {
  for (uint32_t z = 0; z < grid[2]; ++z) {
    for (uint32_t y = 0; y < grid[1]; ++y) {
      for (uint32_t x = 0; x < grid[0]; ++x) {
        Thread thread{{x, y, z}, {}, {}, {}};
        for (size_t axis = 0; axis < 3; ++axis) {
          const uint32_t at = thread.position[axis];
          thread.group[axis] = at / full[axis];
          thread.in_group[axis] = at % full[axis];
          thread.size[axis] = std::min(full[axis], grid[axis] - thread.group[axis] * full[axis]);
        }
        body(thread, x + grid[0] * (y + grid[1] * z));
      }
    }
  }
}

constexpr int32_t count = 13 * 5 * 3;
const std::string index_of_thread =
    "uint i = thread_position_in_grid.x + 13 * (thread_position_in_grid.y + 5 * "
    "thread_position_in_grid.z);\n";

Feature scalar_attribute(const char* name, std::function<uint32_t(const Thread&)> value) {
  return {name,
          index_of_thread + "y[i] = " + name + ";",
          {},
          {zeros("y", uint32, {count})},
          [value](Arrays& a) {
            each_thread(
                [&](const Thread& thread, uint32_t i) { a.out<uint32_t>()[i] = value(thread); });
          },
          grid,
          asked};
}

Feature vector_attribute(const char* name, std::function<Size(const Thread&)> value) {
  return {name,
          index_of_thread + "uint3 a = " + name +
              "; y[3 * i] = a.x; y[3 * i + 1] = a.y; y[3 * i + 2] = a.z;",
          {},
          {zeros("y", uint32, {count, 3})},
          [value](Arrays& a) {
            each_thread([&](const Thread& thread, uint32_t i) {
              for (size_t axis = 0; axis < 3; ++axis)
                a.out<uint32_t>()[3 * i + axis] = value(thread)[axis];
            });
          },
          grid,
          asked};
}

}  // namespace

Section attribute_features() {
  constexpr uint32_t most = full[0] * full[1] * full[2];
  return {
      "Attributes of threads",
      {
          vector_attribute("thread_position_in_grid", [](const Thread& t) { return t.position; }),
          vector_attribute("thread_position_in_threadgroup",
                           [](const Thread& t) { return t.in_group; }),
          vector_attribute("threadgroup_position_in_grid", [](const Thread& t) { return t.group; }),
          scalar_attribute("thread_index_in_simdgroup",
                           [](const Thread& t) { return t.index() % 32; }),
          scalar_attribute("simdgroup_index_in_threadgroup",
                           [](const Thread& t) { return t.index() / 32; }),
          vector_attribute("threads_per_threadgroup", [](const Thread& t) { return t.size; }),
          scalar_attribute("thread_index_in_threadgroup",
                           [](const Thread& t) { return t.index(); }),
          vector_attribute("threadgroups_per_grid",
                           [](const Thread&) {
                             return Size{divided_up(grid[0], full[0]), divided_up(grid[1], full[1]),
                                         divided_up(grid[2], full[2])};
                           }),
          scalar_attribute("threads_per_simdgroup", [](const Thread&) { return 32; }),
          vector_attribute("threads_per_grid", [](const Thread&) { return grid; }),
          vector_attribute("grid_size", [](const Thread&) { return grid; }),
          vector_attribute("grid_origin", [](const Thread&) { return Size{0, 0, 0}; }),
          scalar_attribute("simdgroups_per_threadgroup",
                           [](const Thread& t) { return divided_up(t.total(), 32); }),
          scalar_attribute("thread_index_in_quadgroup",
                           [](const Thread& t) { return t.index() % 4; }),
          scalar_attribute("quadgroup_index_in_threadgroup",
                           [](const Thread& t) { return t.index() / 4; }),
          scalar_attribute("quadgroups_per_threadgroup",
                           [](const Thread& t) { return divided_up(t.total(), 4); }),
          vector_attribute("dispatch_threads_per_threadgroup", [](const Thread&) { return full; }),
          scalar_attribute("dispatch_simdgroups_per_threadgroup",
                           [](const Thread&) { return divided_up(most, 32); }),
          scalar_attribute("dispatch_quadgroups_per_threadgroup",
                           [](const Thread&) { return divided_up(most, 4); }),
          scalar_attribute("thread_execution_width", [](const Thread&) { return 32; }),
      }};
}

}  // namespace holdfast::jit::testing
