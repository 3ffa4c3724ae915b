#include "devices/cpu/jit/shadow_memory.h"

#include <utility>

namespace holdfast::jit {

void ShadowMemory::Cell::add_other(PastAccess now, bool writes) {
  if (writes) write_.set_written();
  PastAccess &first = others_->first, &second = others_->second;
  if (first.site() == 0 || first.is_same_thread(now)) {
    first = now;
  } else if (second.site() == 0 || second.is_same_thread(now)) {
    second = now;
  } else if (first.is_before(now)) {
    first = now;
  } else if (second.is_before(now)) {
    second = now;
  } else if (first.group() == second.group() &&
             (now.group() != first.group() ||
              (first.simdgroup() == second.simdgroup() && now.simdgroup() != first.simdgroup()))) {
    // Of two groups, or of two simdgroups: no later thread can be ordered with both.
    second = now;
  }
}

ShadowMemory::ShadowMemory(const void* begin, uint64_t bytes, bool is_shared)
    : begin_(reinterpret_cast<uintptr_t>(begin)),
      bytes_(bytes),
      is_shared_(is_shared),
      pages_((begin_ + bytes) / page_bytes - begin_ / page_bytes + 1) {}

ShadowMemory::~ShadowMemory() {
  for (std::atomic<Page*>& page : pages_) delete page.load(std::memory_order_relaxed);
}

ShadowMemory::Page& ShadowMemory::make_page(std::atomic<Page*>& place) {
  std::lock_guard guard(mutex_);
  Page* known = place.load(std::memory_order_relaxed);
  if (known) return *known;
  auto page = std::make_unique<Page>();
  page->writes = std::make_unique<PastAccess[]>(page_bytes / page->step);
  place.store(page.get(), std::memory_order_release);
  return *page.release();
}

void ShadowMemory::grow(Page& page, bool is_fine, bool with_others) {
  std::lock_guard guard(mutex_);
  // Others may visit the page, but nobody else changes its form.
  const uintptr_t step = is_fine ? 1 : page.step;
  const uintptr_t cells = page_bytes / step;
  std::unique_ptr<PastAccess[]> writes;
  std::unique_ptr<Others[]> others;
  if (step != page.step) writes = std::make_unique<PastAccess[]>(cells);
  if (with_others || page.others) others = std::make_unique<Others[]>(cells);
  std::lock_guard lock(page.lock);
  for (uintptr_t i = 0; i < cells; ++i) {
    if (writes) writes[i] = page.writes[i * step / page.step];
    if (page.others) others[i] = page.others[i * step / page.step];
  }
  if (writes) page.writes.swap(writes);
  page.others.swap(others);
  page.step = step;
}

}  // namespace holdfast::jit
