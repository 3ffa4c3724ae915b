#include "devices/cpu/jit/shadow_memory.h"

#include <iterator>
#include <utility>

namespace holdfast::jit {
namespace {

bool is_same_thread(const PastAccess& a, const PastAccess& b) {
  return a.group == b.group && a.thread == b.thread;
}

uint32_t simdgroup_of(const PastAccess& access) { return access.thread / simdgroup_width; }

}  // namespace

bool PastAccess::is_before(const PastAccess& later) const {
  if (group != later.group) return false;
  if (thread == later.thread || epoch != later.epoch) return true;
  return simdgroup_of(*this) == simdgroup_of(later) && simd_stamp != later.simd_stamp;
}

void ShadowMemory::Cell::add(const PastAccess& now, uint8_t kind) {
  if ((kind & AccessSite::writes) != 0) written_in = now.group + 1;
  if ((kind & AccessSite::writes) != 0 && (kind & AccessSite::atomic) == 0) {
    // Whoever raced with those before races with this one, too, or has been reported.
    write = now;
    others[0] = others[1] = {};
    return;
  }
  PastAccess &first = others[0], &second = others[1];
  if (!first.site || is_same_thread(first, now)) {
    first = now;
  } else if (!second.site || is_same_thread(second, now)) {
    second = now;
  } else if (first.is_before(now)) {
    first = now;
  } else if (second.is_before(now)) {
    second = now;
  } else if (first.group == second.group &&
             (now.group != first.group || (simdgroup_of(first) == simdgroup_of(second) &&
                                           simdgroup_of(now) != simdgroup_of(first)))) {
    // Of two groups, or of two simdgroups: no later thread can be ordered with both.
    second = now;
  }
}

ShadowMemory::Page& ShadowMemory::page_of(uintptr_t address, bool is_fine) {
  const uintptr_t number = address / page_bytes;
  Recent& recent = recent_[number % std::size(recent_)];
  if (!recent.page || number != recent.number) {
    Page& page = pages_[number];
    if (!page.cells) page.cells = std::make_unique<Cell[]>(page_bytes / page.step);
    recent = {number, &page};
  }
  Page& page = *recent.page;
  if (is_fine && page.step != 1) {
    auto cells = std::make_unique<Cell[]>(page_bytes);
    for (uintptr_t i = 0; i < page_bytes; ++i) cells[i] = page.cells[i / page.step];
    page.cells = std::move(cells);
    page.step = 1;
  }
  return page;
}

}  // namespace holdfast::jit
