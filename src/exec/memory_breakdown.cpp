// Who holds the memory, when there is none left.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "exec/allocator.h"

namespace holdfast::exec {
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

std::string Allocator::breakdown(size_t bytes, const char* op) {
  std::map<std::string, Holder> by_op, by_stream;
  // Other threads make and drop buffers meanwhile: a buffer is seen as it was or as it is. Storages
  // change hands under the lock or are never unmapped, so that looking is safe.
  for (const auto& slab : buffer_slabs_) {
    for (int i = 0; i < slab_objects; ++i) {
      const Buffer& buffer = slab[static_cast<size_t>(i)];
      Storage* storage = buffer.storage();
      if (buffer.identity() == 0 || !storage || storage->adopted) continue;
      int stream = buffer.stream();
      for (Holder* holder :
           {&by_op[buffer.op()],
            &by_stream[stream < 0 ? "the host" : "stream " + std::to_string(stream)]}) {
        holder->bytes += storage->capacity;
        ++holder->buffers;
      }
    }
  }
  return std::string("[") + op + "] cannot allocate " + std::to_string(bytes) +
         " bytes: active memory " + std::to_string(active_.load()) + ", cache " +
         std::to_string(cached_.load()) + ", limit " + std::to_string(memory_limit_.load()) +
         " bytes; free arrays, or raise the limit with set_memory_limit. By op: " +
         describe(by_op) + ". By stream: " + describe(by_stream) + ".";
}

}  // namespace holdfast::exec
