#include "exec/buffer_pool.h"

#include <algorithm>
#include <map>
#include <utility>

#include "exec/layers/layer.h"

namespace holdfast::exec {
namespace {

// Buffers that this thread retired, for its next allocations: no lock on the way of a decode loop.
struct SpareBuffers {
  Buffer* first = nullptr;
  int count = 0;
  bool is_registered = false;
  bool is_closed = false;  // the thread ends: what is retired later goes to the pool
};
constinit thread_local SpareBuffers spare_buffers;
constexpr int spare_limit = 256, refill = 32;

}  // namespace

BufferPool& BufferPool::get() {
  static BufferPool* pool = new BufferPool;
  return *pool;
}

Buffer* BufferPool::take() {
  SpareBuffers& spare = spare_buffers;
  if (!spare.first) {
    std::lock_guard guard(mutex_);
    locked_searches_.fetch_add(1, std::memory_order_relaxed);
    if (!free_) {
      slabs_.push_back(std::make_unique<Buffer[]>(slab_objects));
      Buffer* slab = slabs_.back().get();
      for (int i = 0; i < slab_objects; ++i) {
        slab[i].next_ = free_;
        free_ = &slab[i];
      }
    }
    int wanted = spare.is_closed ? 1 : refill;
    while (free_ && spare.count < wanted) {
      Buffer* buffer = free_;
      free_ = buffer->next_;
      buffer->next_ = spare.first;
      spare.first = buffer;
      ++spare.count;
    }
  }
  Buffer* buffer = spare.first;
  spare.first = std::exchange(buffer->next_, nullptr);
  --spare.count;
  return buffer;
}

void BufferPool::put(Buffer* buffer) noexcept {
  SpareBuffers& spare = spare_buffers;
  if (!spare.is_registered) {
    spare.is_registered = true;
    sync::at_thread_exit(
        [](void* pool) {
          spare_buffers.is_closed = true;
          static_cast<BufferPool*>(pool)->return_spare(0);
        },
        this);
  }
  buffer->next_ = spare.first;
  spare.first = buffer;
  ++spare.count;
  if (spare.is_closed) {
    return_spare(0);
  } else if (spare.count > spare_limit) {
    return_spare(spare_limit / 2);
  }
}

void BufferPool::return_spare(int keep) noexcept {
  if (is_shut_down()) return;
  std::lock_guard guard(mutex_);
  for (SpareBuffers& spare = spare_buffers; spare.count > keep; --spare.count) {
    Buffer* buffer = spare.first;
    spare.first = buffer->next_;
    buffer->next_ = free_;
    free_ = buffer;
  }
}

Buffer* BufferPool::start(Buffer* buffer, Storage* storage, size_t bytes, const char* op,
                          const label::Label& label, int stream) {
  buffer->storage_.store(storage, std::memory_order_relaxed);
  buffer->size_ = bytes;
  buffer->op_.store(op, std::memory_order_relaxed);
  buffer->stream_.store(stream, std::memory_order_relaxed);
  buffer->label_ = label;
  buffer->identity_.store(next_identity_.fetch_add(1, std::memory_order_relaxed),
                          std::memory_order_relaxed);
  buffer->counts_.store(Buffer::one_owner, std::memory_order_relaxed);
  live_.fetch_add(1, std::memory_order_relaxed);
  layers::on_create(*buffer);
  return buffer;
}

void BufferPool::end(Buffer* buffer) noexcept {
  live_.fetch_sub(1, std::memory_order_relaxed);
  put(buffer);
}

size_t BufferPool::made() {
  std::lock_guard guard(mutex_);
  return slabs_.size() * slab_objects;
}

// --- who holds the memory, when there is none left ---

namespace {

// Names that are listed; the rest is one sum.
constexpr size_t listed = 6;

struct Holder {
  size_t bytes = 0, buffers = 0;
};

// "name 12 bytes in 3 buffers, …", the largest first.
std::string describe(const std::map<std::string, Holder>& holders) {
  std::vector<std::pair<std::string, Holder>> sorted(holders.begin(), holders.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.bytes != b.second.bytes ? a.second.bytes > b.second.bytes : a.first < b.first;
  });
  Holder rest;
  std::string text;
  auto append = [&](const std::string& name, const Holder& holder) {
    text += (text.empty() ? "" : ", ") + name + " " + std::to_string(holder.bytes) + " in " +
            std::to_string(holder.buffers) + (holder.buffers == 1 ? " buffer" : " buffers");
  };
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i < listed) {
      append(sorted[i].first, sorted[i].second);
    } else {
      rest.bytes += sorted[i].second.bytes;
      rest.buffers += sorted[i].second.buffers;
    }
  }
  if (rest.buffers > 0) append("others", rest);
  return text.empty() ? "nothing" : text;
}

}  // namespace

std::string BufferPool::holders(const MemorySpace& space) {
  std::map<std::string, Holder> by_op, by_stream;
  std::lock_guard guard(mutex_);
  // Other threads make and drop buffers meanwhile: a buffer is seen as it was or as it is. Storages
  // are never unmapped, so that looking is safe.
  for (const auto& slab : slabs_) {
    for (int i = 0; i < slab_objects; ++i) {
      const Buffer& buffer = slab[static_cast<size_t>(i)];
      Storage* storage = buffer.storage();
      if (buffer.identity() == 0 || !storage || storage->adopted || storage->space != &space)
        continue;
      int stream = buffer.stream();
      for (Holder* holder :
           {&by_op[buffer.op()],
            &by_stream[stream < 0 ? "the host" : "stream " + std::to_string(stream)]}) {
        holder->bytes += storage->capacity;
        ++holder->buffers;
      }
    }
  }
  return "By op: " + describe(by_op) + ". By stream: " + describe(by_stream) + ".";
}

}  // namespace holdfast::exec
