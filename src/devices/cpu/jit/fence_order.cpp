#include "devices/cpu/jit/fence_order.h"

#include <algorithm>
#include <utility>

namespace holdfast::jit {

bool Release::covers(PastAccess earlier) const {
  if (earlier.group() != group) return false;
  if (earlier.epoch() < epoch) return true;
  if (earlier.thread() == thread) {
    return earlier.fences() < fences;
  }
  return earlier.simdgroup() == thread / simdgroup_width && earlier.epoch() == epoch &&
         earlier.simd_stamp() < simd_stamp;
}

void ReleaseLog::add(const Release& release) {
  std::vector<Entry<Release>>& known = releases_[release.group];
  // Who spins at a lock adds nothing.
  for (const Entry<Release>& one : known) {
    if (one.what.thread == release.thread && one.what.fences == release.fences) return;
  }
  known.push_back({entries_++, release});
}

void ReleaseLog::add(const Heard& other) {
  // What it said before it still says.
  if (other.log == this) return;
  for (const Entry<Heard>& one : handed_on_) {
    if (one.what.log == other.log && one.what.entries >= other.entries) return;
  }
  handed_on_.push_back({entries_++, other});
}

bool ReleaseLog::covers(PastAccess earlier, uint32_t entries, std::vector<Heard>& more) const {
  if (auto known = releases_.find(earlier.group()); known != releases_.end()) {
    for (const Entry<Release>& one : known->second) {
      if (one.number < entries && one.what.covers(earlier)) return true;
    }
  }
  for (const Entry<Heard>& one : handed_on_) {
    if (one.number < entries) more.push_back(one.what);
  }
  return false;
}

namespace {

// Follows what logs hand on of others, each once.
bool covers(Heard heard, PastAccess earlier) {
  std::vector<Heard> next;
  if (heard.log->covers(earlier, heard.entries, next)) return true;
  std::unordered_map<const ReleaseLog*, uint32_t> seen{{heard.log, heard.entries}};
  while (!next.empty()) {
    const Heard one = next.back();
    next.pop_back();
    uint32_t& entries = seen[one.log];
    if (entries >= one.entries) continue;
    entries = one.entries;
    if (one.log->covers(earlier, one.entries, next)) return true;
  }
  return false;
}

}  // namespace

void FenceOrder::begin() {
  has_any_ = false;
  threads_.clear();
  acquired_.clear();
}

void FenceOrder::fence(PastAccess now) {
  if (threads_.empty()) threads_.resize(most_threads);
  has_any_ = true;
  Thread& thread = threads_[now.thread()];
  ++thread.fences;
  thread.epoch = now.epoch();
  thread.simd_stamp = now.simd_stamp();
  for (const Heard& heard : thread.heard) acquired_.push_back({heard, now});
  thread.heard.clear();
}

void FenceOrder::read(PastAccess now, uintptr_t address, const Releases& releases) {
  auto found = releases.find(address);
  if (found == releases.end()) return;
  if (threads_.empty()) threads_.resize(most_threads);
  const Heard all = found->second->all();
  for (Heard& known : threads_[now.thread()].heard) {
    if (known.log == all.log) {
      known = all;
      return;
    }
  }
  threads_[now.thread()].heard.push_back(all);
}

void FenceOrder::write(PastAccess now, uintptr_t address, Releases& releases, bool is_store) {
  if (is_store && !releases.empty()) releases.erase(address);
  if (fences_of(now.thread()) == 0) return;
  auto found = releases.find(address);
  if (found == releases.end()) {
    logs_.push_back(std::make_unique<ReleaseLog>());
    found = releases.emplace(address, logs_.back().get()).first;
  }
  ReleaseLog& log = *found->second;
  const Thread& thread = threads_[now.thread()];
  log.add(Release{now.group(), thread.epoch, static_cast<uint16_t>(now.thread()), thread.simd_stamp,
                  thread.fences});
  for (const Acquired& one : acquired_) {
    if (one.by.is_before(now)) log.add(one.heard);
  }
}

bool FenceOrder::is_before(PastAccess earlier, PastAccess now) const {
  return std::any_of(acquired_.begin(), acquired_.end(), [&](const Acquired& one) {
    return one.by.is_before(now) && covers(one.heard, earlier);
  });
}

}  // namespace holdfast::jit
