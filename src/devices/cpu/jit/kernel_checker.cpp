#include "devices/cpu/jit/kernel_checker.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace holdfast::jit {

using exec::KernelFinding;

KernelChecker::KernelChecker(const CpuPipeline& pipeline, std::vector<Buffer> buffers)
    : interface_(pipeline.interface()), buffers_(std::move(buffers)) {}

std::vector<KernelFinding> KernelChecker::findings() const {
  std::lock_guard lock(mutex_);
  return findings_;
}

void KernelChecker::report(const Key& key, KernelFinding finding) {
  auto [place, is_new] = known_.try_emplace(key, findings_.size());
  if (!is_new) {
    ++findings_[place->second].count;
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
  std::fill(std::begin(stamp_of_simdgroup_), std::end(stamp_of_simdgroup_), uint16_t{0});
}

bool GroupChecker::access(const ThreadContext& thread, const AccessSite& site,
                          const AccessObject& object, const void* base, const void* address,
                          uint64_t bytes, uint64_t value) noexcept {
  const char* at = static_cast<const char*>(address);
  const Target target = target_of(object, base, at);
  const int64_t offset = at - target.base;
  const bool is_inside =
      target.bytes == UINT64_MAX || (offset >= 0 && bytes <= target.bytes &&
                                     static_cast<uint64_t>(offset) <= target.bytes - bytes);
  try {
    const Access whole{thread, site, at, bytes, value};
    if (!is_inside) {
      KernelFinding found = finding("out-of-bounds", whole, target);
      std::lock_guard lock(checker_.mutex_);
      checker_.report({found.kind, &site, nullptr, target.name}, std::move(found));
    } else {
      check(whole, target);
    }
  } catch (const std::bad_alloc&) {
  }
  return is_inside;
}

void GroupChecker::check(const Access& access, const Target& target) {
  if (reinterpret_cast<uintptr_t>(access.address) % access.site.alignment != 0) {
    KernelFinding found = finding("misaligned", access, target);
    std::lock_guard lock(checker_.mutex_);
    checker_.report({found.kind, &access.site, nullptr, target.name}, std::move(found));
  }
  if (target.space == AccessObject::threadgroup) {
    check_order(access, target, threadgroup_);
  } else if (target.space == AccessObject::device && may_be_written(target.argument)) {
    std::lock_guard lock(checker_.mutex_);
    check_order(access, target, checker_.device_);
  }
}

void GroupChecker::check_order(const Access& access, const Target& target, ShadowMemory& shadow) {
  const uint8_t kind = access.site.kind;
  const bool is_threadgroup = target.space == AccessObject::threadgroup;
  const bool is_undefined = is_threadgroup || !checker_.buffers_[target.argument].has_contents;
  PastAccess now;
  now.site = &access.site;
  now.group = group_number_;
  now.epoch = epoch_;
  now.thread = static_cast<uint16_t>(access.thread.index);
  now.simd_stamp = stamp_of_simdgroup_[access.thread.simdgroup];
  bool raced = false, was_undefined = false;
  shadow.visit(access.address, access.bytes, [&](ShadowMemory::Cell& cell, const char* at) {
    if (is_threadgroup && cell.owner != group_number_ + 1) {
      cell = {};
      cell.owner = group_number_ + 1;
    }
    if (const PastAccess* other = cell.conflict(now, kind); other && !raced) {
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
      report({found.kind, &access.site, other->site, target.name}, std::move(found),
             is_threadgroup);
    }
    if (is_undefined && (kind & AccessSite::reads) != 0 && cell.written_in == 0 && !was_undefined) {
      was_undefined = true;
      KernelFinding found = finding("uninitialised-read", access, target);
      found.byte = at - target.base;
      report({found.kind, &access.site, nullptr, target.name}, std::move(found), is_threadgroup);
    }
    cell.add(now, kind);
  });
}

void GroupChecker::report(const KernelChecker::Key& key, KernelFinding found, bool takes_lock) {
  std::unique_lock lock(checker_.mutex_, std::defer_lock);
  if (takes_lock) lock.lock();
  checker_.report(key, std::move(found));
}

void GroupChecker::diverge(const ThreadContext& thread, const AccessSite* site,
                           const ThreadContext& other, const AccessSite* other_site,
                           bool other_returned) noexcept {
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
    report({found.kind, site, other_site, nullptr}, std::move(found), true);
  } catch (const std::bad_alloc&) {
  }
}

// Whether this dispatch can write to the memory of an argument, through any of its arguments.
bool GroupChecker::may_be_written(uint32_t index) const {
  const Target own = argument(index);
  if (checker_.interface_.arguments[index].written || !checker_.buffers_[index].has_contents)
    return true;
  for (uint32_t i = 0; i < checker_.interface_.arguments.size(); ++i) {
    if (!checker_.interface_.arguments[i].written) continue;
    const Target other = argument(i);
    if (other.base < own.base + own.bytes && own.base < other.base + other.bytes) return true;
  }
  return false;
}

GroupChecker::Target GroupChecker::argument(uint32_t index) const {
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
  return target;
}

GroupChecker::Target GroupChecker::target_of(const AccessObject& object, const void* base,
                                             const char* address) const {
  if (object.argument != AccessObject::no_argument) return argument(object.argument);
  Target target{AccessObject::no_argument, object.name,
                static_cast<AccessObject::Space>(object.space), static_cast<const char*>(base),
                object.bytes};
  if (base) return target;
  // A pointer that came out of memory: to what it points, its value alone tells.
  for (uint32_t i = 0; i < checker_.interface_.arguments.size(); ++i) {
    const Target one = argument(i);
    if (address >= one.base && address < one.base + one.bytes) return one;
  }
  const char* variables = group_->threadgroup_memory;
  const uint64_t bytes = checker_.interface_.threadgroup_bytes;
  target.base = address;
  target.bytes = target.space == AccessObject::device ? 0 : UINT64_MAX;
  if (address >= variables && address < variables + bytes) {
    target.base = variables;
    target.bytes = bytes;
    target.space = AccessObject::threadgroup;
  }
  return target;
}

KernelFinding GroupChecker::finding(const char* kind, const Access& access,
                                    const Target& target) const {
  KernelFinding found;
  found.kind = kind;
  if (target.argument != AccessObject::no_argument) found.buffer = target.argument;
  found.object = target.name;
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
