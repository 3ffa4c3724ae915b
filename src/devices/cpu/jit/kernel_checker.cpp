#include "devices/cpu/jit/kernel_checker.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "devices/cpu/jit/image.h"

namespace holdfast::jit {

using exec::KernelFinding;

namespace {

bool is_aligned(const char* address, const AccessSite& site) {
  // A power of two.
  return (reinterpret_cast<uintptr_t>(address) & (site.alignment - 1u)) == 0;
}

}  // namespace

KernelChecker::KernelChecker(const CpuPipeline& pipeline, std::vector<Buffer> buffers,
                             void* const* addresses, bool is_shared)
    : code_(pipeline.image().code()),
      interface_(pipeline.interface()),
      buffers_(std::move(buffers)),
      addresses_(addresses),
      shadow_of_(buffers_.size()) {
  make_shadows(is_shared);
}

bool KernelChecker::may_be_written(uint32_t index) const {
  if (!buffers_[index].has_contents) return true;
  auto begin = [&](uint32_t i) {
    return static_cast<const char*>(addresses_[i]) - buffers_[i].before;
  };
  auto end = [&](uint32_t i) {
    return static_cast<const char*>(addresses_[i]) + buffers_[i].bytes;
  };
  for (uint32_t i = 0; i < buffers_.size(); ++i) {
    const msl::KernelArgument& other = interface_.arguments[i];
    if (!other.written || other.kind != msl::KernelArgument::Kind::device) continue;
    if (i == index || (begin(i) < end(index) && begin(index) < end(i))) return true;
  }
  return false;
}

void KernelChecker::make_shadows(bool is_shared) {
  struct Stretch {
    const char *begin, *end;
    uint32_t argument;
  };
  std::vector<Stretch> stretches;
  for (uint32_t i = 0; i < buffers_.size(); ++i) {
    if (interface_.arguments[i].kind != msl::KernelArgument::Kind::device || !may_be_written(i))
      continue;
    const char* base = static_cast<const char*>(addresses_[i]);
    stretches.push_back({base - buffers_[i].before, base + buffers_[i].bytes, i});
  }
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  // Those that overlap have one.
  for (size_t first = 0; first < stretches.size();) {
    const char* end = stretches[first].end;
    size_t last = first + 1;
    for (; last < stretches.size() && stretches[last].begin < end; ++last)
      end = std::max(end, stretches[last].end);
    const char* begin = stretches[first].begin;
    shadows_.push_back(
        std::make_unique<ShadowMemory>(begin, static_cast<uint64_t>(end - begin), is_shared));
    for (; first < last; ++first) shadow_of_[stretches[first].argument] = shadows_.back().get();
  }
}

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
  std::lock_guard lock(mutex_);
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

GroupChecker::GroupChecker(KernelChecker& checker, const DispatchArguments& arguments,
                           const GroupContext& group, size_t threadgroup_bytes)
    : checker_(checker),
      group_(group),
      threadgroup_(group.threadgroup_memory, threadgroup_bytes, false) {
  for (uint32_t i = 0; i < checker.interface_.arguments.size(); ++i) {
    targets_.push_back(make_target(i, arguments));
    const Target& target = targets_.back();
    free_ranges_.push_back(target.shadow || traffic_ ? FreeRange{}
                                                     : FreeRange{target.base - target.before,
                                                                 target.before + target.bytes});
  }
}

void GroupChecker::begin() {
  group_number_ =
      group_.group[0] + group_.groups[0] * (group_.group[1] + group_.groups[1] * group_.group[2]);
  epoch_ = 0;
  has_diverged_ = false;
  fences_.begin();
  threadgroup_releases_.clear();
  std::fill(std::begin(stamp_of_simdgroup_), std::end(stamp_of_simdgroup_), uint16_t{0});
}

uint32_t GroupChecker::access(ThreadContext* thread, const AccessSite* site,
                              const AccessObject* object, const void* base, const void* address,
                              uint64_t bytes, uint64_t value) noexcept {
  GroupChecker* checker = thread->group->checker;
  if (!checker) return 1;
  const char* at = static_cast<const char*>(address);
  Target made;
  const Target& target = object->argument != AccessObject::no_argument
                             ? checker->targets_[object->argument]
                             : checker->find_target(*object, base, at, made);
  const Access whole{*thread, *site, at, bytes, value};
  if (checker->traffic_ && target.space == AccessObject::device && target.bytes > 64) {
    auto& total =
        whole.is(AccessSite::writes) ? checker->traffic_->written : checker->traffic_->read;
    total.fetch_add(bytes, std::memory_order_relaxed);
  }
  if (target.shadow && !whole.is(AccessSite::atomic) && target.holds(at, bytes) &&
      is_aligned(at, *site) && target.shadow->holds(at, bytes)) {
    const bool writes = whole.is(AccessSite::writes);
    const PastAccess now = checker->state_of(*thread, checker->checker_.number_of(site));
    if (target.shadow->add_own(at, bytes, now,
                               writes ? ShadowMemory::plain_write : ShadowMemory::read,
                               target.is_undefined && !writes))
      return 1;
  }
  return checker->look_at(whole, target);
}

bool GroupChecker::look_at(const Access& access, const Target& target) {
  const bool is_inside = target.holds(access.address, access.bytes);
  try {
    if (!is_inside || !is_aligned(access.address, access.site)) {
      KernelFinding found = finding(is_inside ? "misaligned" : "out-of-bounds", access, target);
      report({found.kind, &access.site, nullptr, target.name}, std::move(found));
    }
    if (is_inside && target.shadow && target.shadow->holds(access.address, access.bytes))
      check_order(access, target);
  } catch (const std::bad_alloc&) {
  }
  return is_inside;
}

void GroupChecker::fence(const ThreadContext& thread) noexcept {
  try {
    fences_.fence(state_of(thread, 0));
  } catch (const std::bad_alloc&) {
  }
}

void GroupChecker::check_order(const Access& access, const Target& target) {
  const bool reads = access.is(AccessSite::reads), writes = access.is(AccessSite::writes);
  const bool is_atomic = access.is(AccessSite::atomic);
  const ShadowMemory::Use use =
      is_atomic ? (writes ? ShadowMemory::atomic_write : ShadowMemory::atomic_read)
                : (writes ? ShadowMemory::plain_write : ShadowMemory::read);
  const bool is_threadgroup = target.space == AccessObject::threadgroup;
  const bool must_be_written = reads && target.is_undefined && !access.is(AccessSite::gap);
  const PastAccess now = state_of(access.thread, checker_.number_of(&access.site));
  if (is_atomic) {
    Releases& releases = is_threadgroup ? threadgroup_releases_ : checker_.releases_;
    const auto address = reinterpret_cast<uintptr_t>(access.address);
    if (reads) fences_.read(now, address, releases);
    if (writes) fences_.write(now, address, releases, !reads);
  }
  auto is_before = [this](PastAccess earlier, PastAccess later) {
    return fences_.has_any() && fences_.is_before(earlier, later);
  };
  Trouble trouble;
  target.shadow->visit(access.address, access.bytes, use,
                       [=, &trouble](ShadowMemory::Cell cell, const char* at) {
                         if (is_threadgroup) cell.belong_to(now.group());
                         const PastAccess other = cell.conflict(now, use, is_before);
                         if (other.site() != 0) [[unlikely]]
                           trouble.race_with(other, at);
                         if (must_be_written && !cell.is_written()) [[unlikely]]
                           trouble.read_undefined(at);
                         else
                           trouble.is_any_defined = true;
                         cell.add(now, use);
                       });
  if (access.is(AccessSite::block) && trouble.is_any_defined) trouble.undefined = nullptr;
  if (trouble.race || trouble.undefined) [[unlikely]]
    report_trouble(access, target, trouble);
}

void GroupChecker::report_trouble(const Access& access, const Target& target,
                                  const Trouble& trouble) {
  if (trouble.race) report_race(access, target, trouble.other, trouble.race);
  if (trouble.undefined) {
    KernelFinding found = finding("uninitialised-read", access, target);
    found.byte = trouble.undefined - target.base;
    report({found.kind, &access.site, nullptr, target.name}, std::move(found));
  }
}

void GroupChecker::report_race(const Access& access, const Target& target, PastAccess other,
                               const char* at) {
  const AccessSite& other_site = checker_.site_of(other.site());
  KernelFinding found = finding("race", access, target);
  found.byte = at - target.base;
  found.has_other_thread = true;
  set_thread(found.other_thread, other.group(), other.thread());
  found.other_writes = (other_site.kind & AccessSite::writes) != 0;
  found.other_line = other_site.line;
  found.other_column = other_site.column;
  found.other_part = other_site.part;
  constexpr uint8_t access_kinds = AccessSite::writes | AccessSite::atomic;
  found.writes_same_value = (access.site.kind & access_kinds) == AccessSite::writes &&
                            (other_site.kind & access_kinds) == AccessSite::writes &&
                            access.bytes <= sizeof(access.value) &&
                            std::memcmp(access.address, &access.value, access.bytes) == 0;
  // Which of the two comes first is luck.
  auto [one, two] = std::minmax({&access.site, &other_site});
  report({found.kind, one, two, target.name}, std::move(found));
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

void GroupChecker::stopped(const LastTurn& last) noexcept {
  if (!last.site) return;
  try {
    KernelFinding found;
    found.kind = "endless-loop";
    set_thread(found.thread, group_number_, last.thread);
    found.line = last.site->line;
    found.column = last.site->column;
    found.part = last.site->part;
    report({found.kind, last.site, nullptr, nullptr}, std::move(found));
  } catch (const std::bad_alloc&) {
  }
}

GroupChecker::Target GroupChecker::make_target(uint32_t index, const DispatchArguments& arguments) {
  const msl::KernelArgument& described = checker_.interface_.arguments[index];
  Target target;
  target.argument = index;
  target.name = described.name.c_str();
  target.base = static_cast<const char*>(group_.buffers[index]);
  if (described.kind == msl::KernelArgument::Kind::threadgroup) {
    target.space = AccessObject::threadgroup;
    target.bytes = arguments.threadgroup_bytes ? arguments.threadgroup_bytes[index] : 0;
    target.shadow = &threadgroup_;
    target.is_undefined = true;
    return target;
  }
  target.space = described.kind == msl::KernelArgument::Kind::constant ? AccessObject::constant
                                                                       : AccessObject::device;
  target.bytes = checker_.buffers_[index].bytes;
  target.before = checker_.buffers_[index].before;
  target.shadow = checker_.shadow_of_[index];
  target.is_undefined = !checker_.buffers_[index].has_contents;
  return target;
}

const GroupChecker::Target& GroupChecker::find_target(const AccessObject& object, const void* base,
                                                      const char* address, Target& made) {
  made = {AccessObject::no_argument, object.name, static_cast<AccessObject::Space>(object.space),
          static_cast<const char*>(base), object.bytes};
  auto be_shared = [&] {
    made.shadow = &threadgroup_;
    made.is_undefined = true;
  };
  if (made.space == AccessObject::threadgroup) be_shared();
  if (base) return made;
  // A pointer that came out of memory: to what it points, its value alone tells.
  for (const Target& one : targets_) {
    if (address >= one.base - one.before && address < one.base + one.bytes) return one;
  }
  const char* variables = group_.threadgroup_memory;
  const uint64_t bytes = checker_.interface_.threadgroup_bytes;
  made.base = address;
  made.bytes = made.space == AccessObject::device ? 0 : UINT64_MAX;
  if (address >= variables && address < variables + bytes) {
    made.base = variables;
    made.bytes = bytes;
    made.space = AccessObject::threadgroup;
    be_shared();
  }
  return made;
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
    const uint32_t start = group % group_.groups[axis] * group_.full_size[axis];
    const uint32_t size = std::min(group_.full_size[axis], group_.grid[axis] - start);
    position[axis] = start + index % size;
    group /= group_.groups[axis];
    index /= size;
  }
}

}  // namespace holdfast::jit
