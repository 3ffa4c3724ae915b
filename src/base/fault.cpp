#include "base/fault.h"

#if HOLDFAST_CHECKS

namespace holdfast::fault {
namespace {

// Plain atomics: a fault point is not a scheduling point.
std::atomic<uint64_t> visited[static_cast<int>(Point::count)];
std::atomic<uint64_t> failing[static_cast<int>(Point::count)];
std::atomic<bool> persistently{false};

}  // namespace

void arm(Point point, uint64_t k, bool persistent) {
  persistently = persistent;
  visited[static_cast<int>(point)] = 0;
  failing[static_cast<int>(point)] = k;
}

void disarm() {
  for (auto& k : failing) k = 0;
}

uint64_t visits(Point point) { return visited[static_cast<int>(point)]; }

bool hit(Point point) {
  int i = static_cast<int>(point);
  uint64_t visit = visited[i].fetch_add(1) + 1;
  uint64_t k = failing[i].load();
  return k != 0 && (visit == k || (visit > k && persistently.load()));
}

}  // namespace holdfast::fault

#endif
