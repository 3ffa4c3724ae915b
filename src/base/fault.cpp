#include "base/fault.h"

#include <algorithm>
#include <string_view>

namespace holdfast::fault {

std::atomic<bool> is_armed{false};

namespace {

// Plain atomics: a fault point is not a scheduling point.
struct State {
  std::atomic<uint64_t> visited{0};
  std::atomic<uint64_t> failing{0};  // 0: never
  std::atomic<bool> persistent{false};
};
State states[static_cast<int>(Point::count)];

State& state_of(Point point) { return states[static_cast<int>(point)]; }

struct Name {
  std::string_view text;
  Point point;
};
constexpr Name names[] = {{"alloc", Point::allocation},   {"compile", Point::compile},
                          {"dispatch", Point::dispatch},  {"event", Point::event},
                          {"file", Point::file},          {"migration", Point::migration},
                          {"thread", Point::thread_start}};

}  // namespace

void arm(Point point, uint64_t k, bool persistent) {
  State& state = state_of(point);
  state.visited = 0;
  state.persistent = persistent;
  state.failing = k;
  is_armed = true;
}

void disarm() {
  is_armed = false;
  for (State& state : states) state.failing = 0;
}

uint64_t visits(Point point) { return state_of(point).visited; }

bool count_visit(Point point) {
  State& state = state_of(point);
  uint64_t visit = state.visited.fetch_add(1) + 1;
  uint64_t k = state.failing.load();
  return k != 0 && (visit == k || (visit > k && state.persistent.load()));
}

bool parse(const std::string& text, std::vector<Setting>& settings) {
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(',', at), text.size());
    std::string_view one = std::string_view(text).substr(at, end - at);
    at = end + 1;
    size_t colon = one.find(':');
    if (colon == std::string_view::npos) return false;
    const Name* name = std::find_if(std::begin(names), std::end(names), [&](const Name& row) {
      return row.text == one.substr(0, colon);
    });
    if (name == std::end(names)) return false;
    std::string_view number = one.substr(colon + 1);
    bool persistent = number.ends_with('+');
    if (persistent) number.remove_suffix(1);
    bool is_number = !number.empty() && number.size() <= 18 &&
                     number.find_first_not_of("0123456789") == std::string_view::npos;
    if (!is_number) return false;
    uint64_t k = std::stoull(std::string(number));
    bool is_known = std::any_of(settings.begin(), settings.end(),
                                [&](const Setting& known) { return known.point == name->point; });
    // A point has one visit from which on it fails: of two the first would be lost.
    if (k == 0 || is_known) return false;
    settings.push_back({name->point, k, persistent});
  }
  return true;
}

}  // namespace holdfast::fault
