// KernelLibrary: pipelines by content and target. What was compiled once is found again: in memory,
// bounded by a number of entries, in the images that the library embeds of its own kernels, and on
// disk.
//
// It cannot confuse kernels (keys are compared in full after the hash), and it cannot take one away
// from running work (command lists own their pipelines; the library only drops its own reference).
// Each kernel is compiled by one thread at a time, under no lock: other threads that want the same
// one wait for it, all others go on.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <holdfast/kernel_cache.h>

#include "base/sync.h"
#include "devices/pipeline.h"
#include "exec/disk_cache.h"
#include "exec/kernel_request.h"

namespace holdfast::exec {

// Thrown by KernelLibrary::get where a thread may neither compile nor wait.
struct NotReady {
  Ref<const KernelRequest> request;
};

class KernelLibrary {
 public:
  struct Parts {
    size_t capacity = 1024;           // entries kept in memory, at least 1
    std::unique_ptr<DiskCache> disk;  // may be null
    // The ablation, for tests: kernels of one name are taken for the same kernel.
    bool trusts_names = false;
  };
  explicit KernelLibrary(Parts parts);
  ~KernelLibrary();
  KernelLibrary(const KernelLibrary&) = delete;
  KernelLibrary& operator=(const KernelLibrary&) = delete;

  // The pipeline: found, waited for, loaded or compiled. Throws what the compiler threw, to
  // everyone who waits for it; a failure is not kept: it may have been one of the moment (no
  // memory, no compiler installed), and a source that is wrong is corrected, not tried again.
  Ref<Pipeline> get(const Ref<const KernelRequest>& request);

  // The kernels that are compiled into the library: the bytes of a request's Binary; empty: it has
  // none. Set before the first kernel is asked for; null: there are none.
  using FindImage = std::string_view(const KernelRequest&);
  static inline FindImage* find_image = nullptr;
  // Called with each request whose pipeline was made, with nothing locked; null: nothing to do.
  static inline void (*when_made)(const KernelRequest&) = nullptr;

  // Set on a thread that holds a queue's lock: `get` throws NotReady for what has to be made or
  // waited for.
  static inline thread_local bool only_finds = false;

  KernelCacheStats stats() const;
  void reset_stats();
  // Forgets what is in memory; what is on disk stays.
  void clear();

  // The settings of the environment, the user's disk cache.
  static Parts process_parts();
  // The library of the process: made at first use, never destroyed.
  static KernelLibrary& get();
  // For tests: `library` stands in for the one of the process until it is replaced; null: back.
  static void replace(KernelLibrary* library);

 private:
  struct Entry;
  struct Flight;
  struct Dropped;
  using Table = std::unordered_multimap<uint64_t, std::unique_ptr<Entry>>;

  Ref<Pipeline> find_ready(const KernelRequest& request);
  Ref<Pipeline> use(Entry& entry, std::unique_lock<sync::Mutex>& lock);
  Ref<Pipeline> find_or_make(const Ref<const KernelRequest>& request);
  Ref<Pipeline> compile_alone(const KernelRequest& request);
  Ref<Pipeline> load_image(const KernelRequest& request,
                           std::unique_ptr<const Binary>& worth_keeping);
  Ref<Pipeline> load_from_disk(const KernelRequest& request);
  // `binary`: what it was made of.
  Ref<Pipeline> compile(const KernelRequest& request, std::unique_ptr<const Binary>& binary);
  Entry* find(const KernelRequest& request, sync::Held);
  void link_first(Entry& entry, sync::Held);
  void unlink(Entry& entry, sync::Held);
  // Takes entries out until the bound is kept. Allocates nothing.
  void evict(Dropped& evicted, sync::Held);
  void take_out(Entry& entry, Dropped& out, sync::Held);

  const Parts parts_;

  mutable sync::Mutex mutex_{sync::Rank::kernel_library};
  // Guarded by mutex_. Entries that are being compiled are in the table but not in the list.
  Table table_;
  Entry* newest_ = nullptr;
  Entry* oldest_ = nullptr;
  size_t count_ = 0;
  KernelCacheStats stats_;
};

// Kernels that an encoding was found to need. While it lives, `get` finds them on this thread, so
// that one that is encoded again comes further each time, however small the library is.
class KernelsAtHand {
 public:
  KernelsAtHand() = default;
  ~KernelsAtHand();
  KernelsAtHand(const KernelsAtHand&) = delete;
  KernelsAtHand& operator=(const KernelsAtHand&) = delete;
  // With no queue locked. Throws what KernelLibrary::get throws.
  void add(const Ref<const KernelRequest>& request);
  // Of the calling thread; null when there is none.
  static Ref<Pipeline> find(const KernelRequest& request);

 private:
  struct Kernel {
    Ref<const KernelRequest> request;
    Ref<Pipeline> pipeline;
  };
  std::vector<Kernel> kernels_;
  KernelsAtHand* outer_ = nullptr;
  static thread_local KernelsAtHand* innermost_;
};

}  // namespace holdfast::exec
