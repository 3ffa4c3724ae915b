// Which bytes of buffers were read from which range of a file, so that a capture can name the range
// in place of a copy. Hints: a buffer may have been written since, and so may its file; whoever
// uses one compares the bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/sync.h"
#include "devices/memory.h"

namespace holdfast::exec {

struct FileRange {
  std::string path;   // absolute
  int64_t first = 0;  // byte
};

class FileOrigins {
 public:
  // Of the process.
  static FileOrigins& get();

  // The first `bytes` bytes of the buffer are being read from the range.
  void note(const Buffer& buffer, int64_t bytes, FileRange range);
  // All bytes of a buffer are being copied to one of the same size.
  void note_copy(const Buffer& from, const Buffer& to);
  // Where bytes [begin, end) of the buffer with this identity were read from, if they were.
  std::optional<FileRange> find(uint64_t identity, int64_t begin, int64_t end);
  size_t size();

 private:
  struct Origin {
    const Buffer* buffer;  // which may be dead, or another one by now
    int64_t bytes;
    FileRange range;
  };
  sync::Mutex mutex_;  // inside all others
  // Guarded by mutex_.
  std::unordered_map<uint64_t, Origin> origins_;  // by identity
  size_t next_sweep_ = 256;                       // the size at which those of dead buffers go
};

}  // namespace holdfast::exec
