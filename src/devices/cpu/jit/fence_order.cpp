#include "devices/cpu/jit/fence_order.h"

#include <algorithm>
#include <utility>

namespace holdfast::jit {
namespace {

// The later one of two releases by one thread covers the earlier.
void add(std::vector<Release>& list, const Release& release) {
  for (Release& known : list) {
    if (known.group != release.group || known.thread != release.thread) continue;
    known.epoch = std::max(known.epoch, release.epoch);
    known.fences = std::max(known.fences, release.fences);
    return;
  }
  list.push_back(release);
}

}  // namespace

void FenceOrder::begin() {
  if (std::exchange(has_any_, false)) threads_.clear();
  acquired_.clear();
}

void FenceOrder::fence(PastAccess now) {
  if (threads_.empty()) threads_.resize(most_threads);
  has_any_ = true;
  Thread& thread = threads_[now.thread()];
  ++thread.fences;
  thread.epoch = now.epoch();
  for (const Release& release : thread.heard) acquired_.push_back({release, now});
  thread.heard.clear();
}

void FenceOrder::read(PastAccess now, uintptr_t address, const Releases& releases) {
  auto found = releases.find(address);
  if (found == releases.end()) return;
  if (threads_.empty()) threads_.resize(most_threads);
  for (const Release& release : found->second) add(threads_[now.thread()].heard, release);
}

void FenceOrder::write(PastAccess now, uintptr_t address, Releases& releases) const {
  if (fences_of(now.thread()) == 0) return;
  const Thread& thread = threads_[now.thread()];
  std::vector<Release>& list = releases[address];
  add(list, {now.group(), thread.epoch, static_cast<uint16_t>(now.thread()), thread.fences});
  for (const Acquired& one : acquired_) {
    if (one.by.is_before(now)) add(list, one.release);
  }
}

bool FenceOrder::is_before(PastAccess earlier, PastAccess now) const {
  for (const Acquired& one : acquired_) {
    const Release& release = one.release;
    if (earlier.group() != release.group || !one.by.is_before(now)) continue;
    if (earlier.epoch() < release.epoch ||
        (earlier.thread() == release.thread && earlier.fences() < release.fences)) {
      return true;
    }
  }
  return false;
}

}  // namespace holdfast::jit
