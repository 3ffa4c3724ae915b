#include "exec/file_origins.h"

#include <algorithm>
#include <utility>

namespace holdfast::exec {

FileOrigins& FileOrigins::get() {
  static auto* kept = new FileOrigins;
  return *kept;
}

void FileOrigins::note(const Buffer& buffer, int64_t bytes, FileRange range) {
  std::lock_guard guard(mutex_);
  if (origins_.size() >= next_sweep_) {
    std::erase_if(origins_,
                  [](const auto& entry) { return entry.second.buffer->identity() != entry.first; });
    next_sweep_ = std::max(next_sweep_, 2 * origins_.size());
  }
  origins_.insert_or_assign(buffer.identity(), Origin{&buffer, bytes, std::move(range)});
}

void FileOrigins::note_copy(const Buffer& from, const Buffer& to) {
  std::unique_lock lock(mutex_);
  auto found = origins_.find(from.identity());
  if (found == origins_.end()) return;
  const Origin origin = found->second;
  lock.unlock();
  note(to, origin.bytes, origin.range);
}

std::optional<FileRange> FileOrigins::find(uint64_t identity, int64_t begin, int64_t end) {
  std::lock_guard guard(mutex_);
  auto found = origins_.find(identity);
  if (found == origins_.end() || end > found->second.bytes) return std::nullopt;
  return FileRange{found->second.range.path, found->second.range.first + begin};
}

size_t FileOrigins::size() {
  std::lock_guard guard(mutex_);
  return origins_.size();
}

}  // namespace holdfast::exec
