#include "devices/cpu/jit/kernel_checker.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace holdfast::jit {

using exec::KernelFinding;

namespace {

bool is_aligned(const char* address, const AccessSite& site) {
  // A power of two.
  return (reinterpret_cast<uintptr_t>(address) & (site.alignment - 1u)) == 0;
}

}  // namespace

KernelChecker::KernelChecker(const CpuPipeline& pipeline, std::vector<Buffer> buffers)
    : interface_(pipeline.interface()), buffers_(std::move(buffers)) {}

std::vector<KernelFinding> KernelChecker::findings() const {
  std::lock_guard lock(mutex_);
  std::vector<KernelFinding> result = findings_;
  auto explains = [](const KernelFinding& race, const KernelFinding& read) {
    auto is_at = [&](const std::string& part, uint32_t line) {
      return line == read.line && part == read.part;
    };
    return race.kind == std::string_view("race") && race.object == read.object &&
           (is_at(race.part, race.line) || is_at(race.other_part, race.other_line));
  };
  std::erase_if(result, [&](const KernelFinding& one) {
    return one.kind == std::string_view("uninitialised-read") &&
           std::any_of(findings_.begin(), findings_.end(),
                       [&](const KernelFinding& other) { return explains(other, one); });
  });
  return result;
}

void KernelChecker::report(const Key& key, KernelFinding finding) {
  auto [place, is_new] = known_.try_emplace(key, findings_.size());
  if (!is_new) {
    KernelFinding& known = findings_[place->second];
    ++known.count;
    known.writes_same_value &= finding.writes_same_value;
  } else if (findings_.size() < most_findings) {
    findings_.push_back(std::move(finding));
  } else {
    known_.erase(place);
  }
}

void GroupChecker::begin(const GroupContext& group) {
  group_ = &group;
  group_number_ =
      group.group[0] + group.groups[0] * (group.group[1] + group.groups[1] * group.group[2]);
  epoch_ = 0;
  looping_ = nullptr;
  has_diverged_ = false;
  fences_.begin();
  threadgroup_releases_.clear();
  for (uint32_t i = 0; i < targets_.size(); ++i) targets_[i] = make_target(i);
  for (uint32_t i = 0; i < targets_.size(); ++i) targets_[i].is_ordered = may_be_written(i);
  std::fill(std::begin(stamp_of_simdgroup_), std::end(stamp_of_simdgroup_), uint16_t{0});
}

bool GroupChecker::Target::holds(const char* address, uint64_t count) const {
  const uint64_t from_start = static_cast<uint64_t>(address - base) + before;
  return bytes == UINT64_MAX ||
         (from_start <= before + bytes && count <= before + bytes - from_start);
}

bool GroupChecker::access(const ThreadContext& thread, const AccessSite& site,
                          const AccessObject& object, const void* base, const void* address,
                          uint64_t bytes, uint64_t value) noexcept {
  const char* at = static_cast<const char*>(address);
  // Most accesses are reads of what nobody writes.
  if (object.argument != AccessObject::no_argument) {
    const Target& argument = targets_[object.argument];
    if (!argument.is_ordered && is_aligned(at, site) && argument.holds(at, bytes)) return true;
  }
  const Target target = target_of(object, base, at);
  const bool is_inside = target.holds(at, bytes);
  try {
    const Access whole{thread, site, at, bytes, value};
    if (!is_inside) {
      KernelFinding found = finding("out-of-bounds", whole, target);
      report({found.kind, &site, nullptr, target.name}, std::move(found));
    } else {
      check(whole, target);
    }
  } catch (const std::bad_alloc&) {
  }
  return is_inside;
}

void GroupChecker::check(const Access& access, const Target& target) {
  if (!is_aligned(access.address, access.site)) {
    KernelFinding found = finding("misaligned", access, target);
    report({found.kind, &access.site, nullptr, target.name}, std::move(found));
  }
  if (!target.is_ordered) return;
  if (target.space == AccessObject::threadgroup) {
    check_order(access, target, threadgroup_, threadgroup_releases_);
  } else {
    check_order(access, target, checker_.device_, checker_.releases_);
  }
}

PastAccess GroupChecker::state_of(const ThreadContext& thread, const AccessSite* site) const {
  PastAccess now;
  now.site = site;
  now.group = group_number_;
  now.epoch = epoch_;
  now.thread = static_cast<uint16_t>(thread.index);
  now.simd_stamp = stamp_of_simdgroup_[thread.simdgroup];
  now.fences = fences_.fences_of(thread.index);
  return now;
}

void GroupChecker::fence(const ThreadContext& thread) noexcept {
  try {
    fences_.fence(state_of(thread, nullptr));
  } catch (const std::bad_alloc&) {
  }
}

void GroupChecker::check_order(const Access& access, const Target& target, ShadowMemory& shadow,
                               Releases& releases) {
  const uint8_t kind = access.site.kind;
  const bool is_threadgroup = target.space == AccessObject::threadgroup;
  const bool is_undefined = is_threadgroup || !checker_.buffers_[target.argument].has_contents;
  const PastAccess now = state_of(access.thread, &access.site);
  if ((kind & AccessSite::atomic) != 0) {
    const auto address = reinterpret_cast<uintptr_t>(access.address);
    if ((kind & AccessSite::reads) != 0) fences_.read(now, address, releases);
    if ((kind & AccessSite::writes) != 0) fences_.write(now, address, releases);
  }
  auto is_before = [&](const PastAccess& earlier, const PastAccess& later) {
    return fences_.has_any() && fences_.is_before(earlier, later);
  };
  bool raced = false, was_undefined = false;
  shadow.visit(access.address, access.bytes, [&](ShadowMemory::Cell& cell, const char* at) {
    if (is_threadgroup && cell.owner != group_number_ + 1) {
      cell = {};
      cell.owner = group_number_ + 1;
    }
    if (const PastAccess* other = cell.conflict(now, kind, is_before); other && !raced) {
      raced = true;
      KernelFinding found = finding("race", access, target);
      found.byte = at - target.base;
      found.has_other_thread = true;
      set_thread(found.other_thread, other->group, other->thread);
      found.other_writes = (other->site->kind & AccessSite::writes) != 0;
      found.other_line = other->site->line;
      found.other_column = other->site->column;
      found.other_part = other->site->part;
      constexpr uint8_t access_kinds = AccessSite::writes | AccessSite::atomic;
      found.writes_same_value = (kind & access_kinds) == AccessSite::writes &&
                                (other->site->kind & access_kinds) == AccessSite::writes &&
                                access.bytes <= sizeof(access.value) &&
                                std::memcmp(access.address, &access.value, access.bytes) == 0;
      // Which of the two comes first is luck.
      auto [one, two] = std::minmax({&access.site, other->site});
      report({found.kind, one, two, target.name}, std::move(found));
    }
    if (is_undefined && (kind & AccessSite::reads) != 0 && cell.written_in == 0 && !was_undefined) {
      was_undefined = true;
      KernelFinding found = finding("uninitialised-read", access, target);
      found.byte = at - target.base;
      report({found.kind, &access.site, nullptr, target.name}, std::move(found));
    }
    cell.add(now, kind);
  });
}

void GroupChecker::diverge(const ThreadContext& thread, const AccessSite* site,
                           const ThreadContext& other, const AccessSite* other_site,
                           bool other_returned) noexcept {
  // Once threads have gone different ways, what they come to next follows from that.
  if (std::exchange(has_diverged_, true) && other_returned) return;
  try {
    KernelFinding found;
    found.kind = other_returned ? "barrier-after-return" : "divergent-barrier";
    set_thread(found.thread, group_number_, thread.index);
    set_thread(found.other_thread, group_number_, other.index);
    found.has_other_thread = true;
    if (site) {
      found.line = site->line;
      found.column = site->column;
      found.part = site->part;
    }
    if (other_site) {
      found.other_line = other_site->line;
      found.other_column = other_site->column;
      found.other_part = other_site->part;
    }
    report({found.kind, site, other_site, nullptr}, std::move(found));
  } catch (const std::bad_alloc&) {
  }
}

void GroupChecker::stopped() noexcept {
  if (!looping_) return;
  try {
    KernelFinding found;
    found.kind = "endless-loop";
    set_thread(found.thread, group_number_, looping_thread_);
    found.line = looping_->line;
    found.column = looping_->column;
    found.part = looping_->part;
    report({found.kind, looping_, nullptr, nullptr}, std::move(found));
  } catch (const std::bad_alloc&) {
  }
}

// Whether this dispatch can write to the memory of an argument, through any of its arguments.
bool GroupChecker::may_be_written(uint32_t index) const {
  const Target& own = targets_[index];
  if (own.space != AccessObject::device) return own.space == AccessObject::threadgroup;
  if (!checker_.buffers_[index].has_contents) return true;
  for (uint32_t i = 0; i < targets_.size(); ++i) {
    const Target& other = targets_[i];
    if (!checker_.interface_.arguments[i].written || other.space != AccessObject::device) continue;
    if (i == index || (other.base - other.before < own.base + own.bytes &&
                       own.base - own.before < other.base + other.bytes)) {
      return true;
    }
  }
  return false;
}

GroupChecker::Target GroupChecker::make_target(uint32_t index) const {
  const msl::KernelArgument& described = checker_.interface_.arguments[index];
  Target target;
  target.argument = index;
  target.name = described.name.c_str();
  target.base = static_cast<const char*>(group_->buffers[index]);
  switch (described.kind) {
    case msl::KernelArgument::Kind::threadgroup:
      target.space = AccessObject::threadgroup;
      target.bytes = arguments_.threadgroup_bytes ? arguments_.threadgroup_bytes[index] : 0;
      return target;
    case msl::KernelArgument::Kind::constant:
      target.space = AccessObject::constant;
      break;
    default:
      target.space = AccessObject::device;
  }
  target.bytes = checker_.buffers_[index].bytes;
  target.before = checker_.buffers_[index].before;
  return target;
}

GroupChecker::Target GroupChecker::target_of(const AccessObject& object, const void* base,
                                             const char* address) const {
  if (object.argument != AccessObject::no_argument) return targets_[object.argument];
  Target target{AccessObject::no_argument, object.name,
                static_cast<AccessObject::Space>(object.space), static_cast<const char*>(base),
                object.bytes};
  target.is_ordered = target.space == AccessObject::threadgroup;
  if (base) return target;
  // A pointer that came out of memory: to what it points, its value alone tells.
  for (const Target& one : targets_) {
    if (address >= one.base - one.before && address < one.base + one.bytes) return one;
  }
  const char* variables = group_->threadgroup_memory;
  const uint64_t bytes = checker_.interface_.threadgroup_bytes;
  target.base = address;
  target.bytes = target.space == AccessObject::device ? 0 : UINT64_MAX;
  if (address >= variables && address < variables + bytes) {
    target.base = variables;
    target.bytes = bytes;
    target.space = AccessObject::threadgroup;
    target.is_ordered = true;
  }
  return target;
}

KernelFinding GroupChecker::finding(const char* kind, const Access& access,
                                    const Target& target) const {
  KernelFinding found;
  found.kind = kind;
  if (target.argument != AccessObject::no_argument) found.buffer = target.argument;
  found.object = target.name;
  found.space = static_cast<KernelFinding::Space>(target.space);
  found.size = target.bytes;
  found.byte = access.address - target.base;
  found.bytes = static_cast<uint32_t>(std::min<uint64_t>(access.bytes, UINT32_MAX));
  found.writes = (access.site.kind & AccessSite::writes) != 0;
  set_thread(found.thread, group_number_, access.thread.index);
  found.line = access.site.line;
  found.column = access.site.column;
  found.part = access.site.part;
  return found;
}

// The position in the grid of a thread by its index in a group.
void GroupChecker::set_thread(uint32_t (&position)[3], uint32_t group, uint32_t index) const {
  for (int axis = 0; axis < 3; ++axis) {
    const uint32_t start = group % group_->groups[axis] * group_->full_size[axis];
    const uint32_t size = std::min(group_->full_size[axis], group_->grid[axis] - start);
    position[axis] = start + index % size;
    group /= group_->groups[axis];
    index /= size;
  }
}

}  // namespace holdfast::jit
