// What layers see of the memory that commands work on, in whichever space it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "devices/memory_space.h"

namespace holdfast::exec {

// Bytes of a storage, read at once: nothing that is in flight may write them.
class Contents {
 public:
  Contents(Storage& storage, int64_t begin, int64_t end)
      : storage_(storage),
        begin_(static_cast<size_t>(begin)),
        size_(static_cast<size_t>(end - begin)) {
    if (storage.bytes) return;
    copy_.resize(size_);
    storage.space->read(storage, begin_, copy_.data(), size_);
  }
  size_t size() const { return size_; }
  std::string_view bytes() const {
    return {storage_.bytes ? storage_.bytes + begin_ : copy_.data(), size_};
  }
  // Replaces bytes; nothing that is in flight may read them, either.
  void write(size_t at, std::string_view bytes) {
    storage_.space->write(storage_, begin_ + at, bytes.data(), bytes.size());
  }

 private:
  Storage& storage_;
  const size_t begin_, size_;
  std::string copy_;  // where the host's cores do not find them
};

}  // namespace holdfast::exec
