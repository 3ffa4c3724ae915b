// DiskCache: compiled kernels in a folder the user owns, found again by other processes, and by
// builds (tools/aot).
//
// Files hold machine code, so that only the user may write them: the folder must belong to the user
// and be closed to others (mode 0700), or it is not used. An entry appears by rename, whole or not
// at all; what is damaged, truncated or another key's is not used and overwritten. Nothing here
// throws: without a usable disk everything works, and is compiled again.
//
// Any number of processes and threads may use one folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/sync.h"
#include "exec/kernel_request.h"

namespace holdfast::exec {

class DiskCache {
 public:
  // `folder` and its parents are made when something is stored. The entries' bytes are kept below
  // `max_bytes`, by removing those that were not used for the longest time.
  DiskCache(std::string folder, uint64_t max_bytes);

  // $HOLDFAST_CACHE_DIR/kernels, $XDG_CACHE_HOME/holdfast/kernels or ~/.cache/holdfast/kernels;
  // empty when there is no home. Another `part` is a folder beside that one.
  static std::string default_folder(const std::string& part = "kernels");

  // The bytes of the request's Binary.
  std::optional<std::string> load(const KernelRequest& request) noexcept;
  void store(const KernelRequest& request, const Binary& binary) noexcept;
  void remove(const KernelRequest& request) noexcept;

  // The bytes that were stored under this key. `name`, the name of the file, need not be unique.
  std::optional<std::string> load(const std::string& name, std::string_view key) noexcept;
  void store(const std::string& name, std::string_view key, std::string_view bytes) noexcept;

  const std::string& folder() const { return folder_; }

 private:
  // An open folder that may be trusted; -1 when there is none.
  int open_folder(bool create);
  bool write_entry(int folder, const std::string& name, const std::string& bytes);
  void keep_bound(int folder, uint64_t added);

  const std::string folder_;
  const uint64_t max_bytes_;

  sync::Mutex mutex_;
  // Guarded by mutex_: what we believe lies there; the truth is looked up now and then.
  std::optional<uint64_t> bytes_;
  int stores_since_look_ = 0;
  sync::Atomic<bool> has_warned_{false};
};

}  // namespace holdfast::exec
