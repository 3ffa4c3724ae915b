#include "devices/cpu/jit/shadow_memory.h"

#include <sys/mman.h>

#include <mutex>
#include <utility>

namespace holdfast::jit {

void ShadowMemory::Others::add_another(PastAccess now) {
  if (second.site() == 0 || second.is_same_thread(now)) {
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

char* ShadowArena::take_bytes(size_t bytes) {
  constexpr size_t line = 64, huge_page = size_t{2} << 20;
  // A line more than it is: pages are visited in turn at the same place, and must not all lie in
  // the same lines of the cache.
  bytes = (bytes + line - 1) / line * line + line;
  if (bytes > left_) {
    const size_t size = std::max(bytes, std::clamp(taken_, size_t{32} << 10, huge_page));
    const size_t alignment = size < huge_page ? line : huge_page;
    pieces_.reserve(pieces_.size() + 1);
    char* piece = static_cast<char*>(::operator new(size, std::align_val_t{alignment}));
    pieces_.emplace_back(piece, Release{alignment});
    if (size == huge_page) madvise(piece, size, MADV_HUGEPAGE);  // where there are any
    taken_ += size;
    next_ = piece;
    left_ = size;
  }
  left_ -= bytes;
  return std::exchange(next_, next_ + bytes);
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
  page->form.writes = arena_.take<PastAccess>(page_bytes >> page->form.shift);
  place.store(page.get(), std::memory_order_release);
  return *page.release();
}

void ShadowMemory::grow(Page& page, bool is_fine, Use use) {
  std::lock_guard guard(mutex_);
  // Others may visit the page, but nobody else changes its form.
  const Form old = page.form;
  Form form = old;
  if (is_fine) form.shift = 0;
  const uintptr_t cells = page_bytes >> form.shift;
  const bool has_other_cells = form.shift != old.shift;
  if (has_other_cells) form.writes = arena_.take<PastAccess>(cells);
  if (old.reads ? has_other_cells : use == read) form.reads = arena_.take<Others>(cells);
  if (old.atomics ? has_other_cells : use == atomic_read || use == atomic_write)
    form.atomics = arena_.take<Atomics>(cells);
  std::lock_guard lock(page.lock);
  for (uintptr_t i = 0; has_other_cells && i < cells; ++i) {
    const uintptr_t from = i >> (old.shift - form.shift);
    form.writes[i] = old.writes[from];
    if (old.reads) form.reads[i] = old.reads[from];
    if (old.atomics) form.atomics[i] = old.atomics[from];
  }
  page.form = form;
}

}  // namespace holdfast::jit
