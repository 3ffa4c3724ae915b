#include "exec/kernel_library.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/environment.h"
#include "base/fault.h"
#include "exec/layers/layer.h"

namespace holdfast::exec {
namespace {

double milliseconds_since(sync::Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(sync::now() - start).count();
}

}  // namespace

// One compilation, shared by those who wait for it.
struct KernelLibrary::Flight : RefCounted {
  sync::CondVar ended;
  // Guarded by the library's mutex.
  bool has_ended = false;
  Ref<Pipeline> pipeline;    // null: failed
  std::exception_ptr error;  // why
};

struct KernelLibrary::Entry {
  Ref<const KernelRequest> request;
  Ref<Pipeline> pipeline;  // null while it is being made
  Ref<Flight> flight;      // while it is being made
  Entry* newer = nullptr;
  Entry* older = nullptr;
  std::unique_ptr<Entry> next_dropped;
};

// Entries that were taken out, to be destroyed without the lock.
struct KernelLibrary::Dropped {
  std::unique_ptr<Entry> first;
  ~Dropped() {
    while (first) first = std::move(first->next_dropped);
  }
};

KernelLibrary::KernelLibrary(Parts parts) : parts_(std::move(parts)) {
  stats_.capacity = parts_.capacity;
}

KernelLibrary::~KernelLibrary() = default;

Ref<Pipeline> KernelLibrary::get(const Ref<const KernelRequest>& request) {
  Ref<Pipeline> pipeline = only_finds ? find_ready(*request) : find_or_make(request);
  if (!pipeline) throw NotReady{request};
  layers::on_pipeline(*request, *pipeline);
  return pipeline;
}

Ref<Pipeline> KernelLibrary::find_ready(const KernelRequest& request) {
  if (Ref<Pipeline> pipeline = KernelsAtHand::find(request)) return pipeline;
  std::unique_lock lock(mutex_);
  Entry* entry = find(request, lock);
  return entry && entry->pipeline ? use(*entry, lock) : nullptr;
}

Ref<Pipeline> KernelLibrary::use(Entry& entry, std::unique_lock<sync::Mutex>& lock) {
  ++stats_.hits;
  if (&entry != newest_) {
    unlink(entry, lock);
    link_first(entry, lock);
  }
  return entry.pipeline;
}

Ref<Pipeline> KernelLibrary::find_or_make(const Ref<const KernelRequest>& request) {
  if (!request->is_cacheable()) return compile_alone(*request);
  Ref<Flight> flight;
  {
    std::unique_lock lock(mutex_);
    if (Entry* entry = find(*request, lock)) {
      if (entry->pipeline) return use(*entry, lock);
      ++stats_.waits;
      flight = entry->flight;
      flight->ended.wait(lock, [&] { return flight->has_ended; });
      if (flight->pipeline) return flight->pipeline;
      std::rethrow_exception(flight->error);
    }
    flight = make_ref<Flight>();
    auto entry = std::make_unique<Entry>();
    entry->request = request;
    entry->flight = flight;
    table_.emplace(request->hash().low, std::move(entry));
    ++stats_.misses;
  }
  Ref<Pipeline> pipeline;
  std::unique_ptr<const Binary> compiled;
  std::exception_ptr error;
  try {
    const bool is_disk_first = request->target().assembles_images();
    if (is_disk_first) pipeline = load_from_disk(*request);
    if (!pipeline) pipeline = load_image(*request, compiled);
    if (!pipeline && !is_disk_first) pipeline = load_from_disk(*request);
    if (!pipeline) pipeline = compile(*request, compiled);
  } catch (...) {
    error = std::current_exception();
  }
  Dropped dropped;
  {
    std::lock_guard guard(mutex_);
    flight->pipeline = pipeline;
    flight->error = error;
    flight->has_ended = true;
    flight->ended.notify_all();
    // `clear` leaves entries that are being made alone, so that ours is still there.
    Entry* entry = find(*request, guard);
    if (pipeline) {
      entry->pipeline = pipeline;
      entry->flight.reset();
      link_first(*entry, guard);
      ++count_;
      evict(dropped, guard);
    } else {
      ++stats_.failures;
      take_out(*entry, dropped, guard);
    }
  }
  if (error) std::rethrow_exception(error);
  // Nobody waits for the disk, and only what could be loaded is worth keeping.
  if (compiled && parts_.disk) parts_.disk->store(*request, *compiled);
  if (when_made) when_made(*request);
  return pipeline;
}

// A source whose key does not say what it includes.
Ref<Pipeline> KernelLibrary::compile_alone(const KernelRequest& request) {
  std::unique_ptr<const Binary> compiled;
  try {
    Ref<Pipeline> pipeline = compile(request, compiled);
    std::lock_guard guard(mutex_);
    ++stats_.misses;
    return pipeline;
  } catch (...) {
    std::lock_guard guard(mutex_);
    ++stats_.misses;
    ++stats_.failures;
    throw;
  }
}

namespace {

void set_origin(Pipeline& pipeline, const KernelRequest& request, Pipeline::Source source,
                sync::Clock::time_point start) {
  pipeline.origin = std::make_shared<Ref<const KernelRequest>>(&request);
  pipeline.source = source;
  pipeline.milliseconds = milliseconds_since(start);
}

}  // namespace

Ref<Pipeline> KernelLibrary::load_image(const KernelRequest& request,
                                        std::unique_ptr<const Binary>& worth_keeping) {
  // What is not compiled leaves nothing to look at.
  const bool is_dumped =
      !environment::settings().dump_kernels.empty() && request.target().has_compiler();
  if (!find_image || is_dumped) return nullptr;
  auto start = sync::now();
  const std::string_view bytes = find_image(request);
  std::unique_ptr<const Binary> binary = bytes.empty() ? nullptr : request.target().load(bytes);
  if (!binary) return nullptr;
  Ref<Pipeline> pipeline = binary->make_pipeline(request.source().kernel);
  set_origin(*pipeline, request, Pipeline::Source::image, start);
  if (request.target().assembles_images()) worth_keeping = std::move(binary);
  std::lock_guard guard(mutex_);
  ++stats_.disk_hits;
  stats_.disk_milliseconds += milliseconds_since(start);
  return pipeline;
}

Ref<Pipeline> KernelLibrary::load_from_disk(const KernelRequest& request) {
  if (!parts_.disk) return nullptr;
  auto start = sync::now();
  std::optional<std::string> found = parts_.disk->load(request);
  if (!found) return nullptr;
  Ref<Pipeline> pipeline;
  try {
    std::unique_ptr<const Binary> binary = request.target().load(*found);
    if (!binary) throw std::runtime_error("not the bytes of a kernel");
    pipeline = binary->make_pipeline(request.source().kernel);
    set_origin(*pipeline, request, Pipeline::Source::disk, start);
  } catch (const std::exception&) {
    // Damaged in a way that the checksum did not see: made by another program, or on purpose.
    parts_.disk->remove(request);
    return nullptr;
  }
  std::lock_guard guard(mutex_);
  ++stats_.disk_hits;
  stats_.disk_milliseconds += milliseconds_since(start);
  return pipeline;
}

Ref<Pipeline> KernelLibrary::compile(const KernelRequest& request,
                                     std::unique_ptr<const Binary>& binary) {
  if (fault::hit(fault::Point::compile)) {
    throw std::runtime_error("[" + request.source().kernel + "] injected failure of a compilation");
  }
  auto start = sync::now();
  binary = request.target().compile(request.source(), request.options());
  Ref<Pipeline> pipeline = binary->make_pipeline(request.source().kernel);
  set_origin(*pipeline, request, Pipeline::Source::compiler, start);
  std::lock_guard guard(mutex_);
  ++stats_.compiles;
  stats_.compile_milliseconds += milliseconds_since(start);
  return pipeline;
}

// --- the table ---

KernelLibrary::Entry* KernelLibrary::find(const KernelRequest& request, sync::Held) {
  auto [begin, end] = table_.equal_range(request.hash().low);
  for (auto it = begin; it != end; ++it) {
    if (it->second->request->has_same_key(request)) return it->second.get();
  }
  if (parts_.trusts_names) {
    for (auto& [hash, entry] : table_) {
      if (entry->request->source().kernel == request.source().kernel) return entry.get();
    }
  }
  return nullptr;
}

void KernelLibrary::link_first(Entry& entry, sync::Held) {
  entry.newer = nullptr;
  entry.older = newest_;
  (newest_ ? newest_->newer : oldest_) = &entry;
  newest_ = &entry;
}

void KernelLibrary::unlink(Entry& entry, sync::Held) {
  (entry.newer ? entry.newer->older : newest_) = entry.older;
  (entry.older ? entry.older->newer : oldest_) = entry.newer;
}

void KernelLibrary::take_out(Entry& entry, Dropped& out, sync::Held) {
  auto [begin, end] = table_.equal_range(entry.request->hash().low);
  auto found = std::find_if(begin, end, [&](auto& row) { return row.second.get() == &entry; });
  found->second->next_dropped = std::move(out.first);
  out.first = std::move(found->second);
  table_.erase(found);
}

void KernelLibrary::evict(Dropped& evicted, sync::Held held) {
  while (count_ > parts_.capacity) {
    Entry* entry = oldest_;
    unlink(*entry, held);
    --count_;
    ++stats_.evictions;
    take_out(*entry, evicted, held);
  }
}

void KernelLibrary::clear() {
  Dropped dropped;
  std::lock_guard guard(mutex_);
  while (Entry* entry = oldest_) {
    unlink(*entry, guard);
    --count_;
    take_out(*entry, dropped, guard);
  }
}

KernelCacheStats KernelLibrary::stats() const {
  std::lock_guard guard(mutex_);
  KernelCacheStats copy = stats_;
  copy.entries = count_;
  return copy;
}

void KernelLibrary::reset_stats() {
  std::lock_guard guard(mutex_);
  stats_ = {};
  stats_.capacity = parts_.capacity;
}

// --- kernels at hand ---

thread_local KernelsAtHand* KernelsAtHand::innermost_ = nullptr;

KernelsAtHand::~KernelsAtHand() {
  if (innermost_ == this) innermost_ = outer_;
}

void KernelsAtHand::add(const Ref<const KernelRequest>& request) {
  kernels_.push_back({request, KernelLibrary::get().get(request)});
  if (innermost_ != this) outer_ = std::exchange(innermost_, this);
}

Ref<Pipeline> KernelsAtHand::find(const KernelRequest& request) {
  if (!innermost_) return nullptr;
  for (const Kernel& kernel : innermost_->kernels_) {
    if (kernel.request->has_same_key(request)) return kernel.pipeline;
  }
  return nullptr;
}

}  // namespace holdfast::exec
