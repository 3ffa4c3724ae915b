#include "graph/copies.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <holdfast/errors.h>

#include "graph/node.h"

namespace holdfast::detail {

void bring_inputs(exec::Queue& queue, std::span<const array> inputs) {
  for (const array& input : inputs) {
    if (!input.data_shared_ptr() || input.size() == 0) continue;
    if (exec::Buffer* buffer = exec::buffer_of(input.buffer()); buffer && buffer->storage())
      queue.bring_here(buffer);
  }
}

size_t bytes_missing(const exec::MemorySpace& space, std::span<const array> inputs) {
  std::set<exec::Buffer*> missing;
  for (const array& input : inputs) {
    if (!input.data_shared_ptr() || input.size() == 0) continue;
    exec::Buffer* buffer = exec::buffer_of(input.buffer());
    if (buffer && buffer->storage() && !exec::Replicas::find(*buffer, space).buffer)
      missing.insert(buffer);
  }
  size_t bytes = 0;
  for (const exec::Buffer* buffer : missing) bytes += buffer->size();
  return bytes;
}

CopiedOutputs copy_to_device(exec::Queue& queue, const Event& computed, const label::Label& label,
                             std::span<const array> inputs, std::span<array* const> outputs) {
  using Shared = std::shared_ptr<array::Data>;
  std::vector<std::pair<Shared, Shared>> copies;  // of what, and the copy
  auto is_of_input = [&](const Shared& data) {
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](const array& input) { return input.data_shared_ptr() == data; });
  };
  auto copy_of = [&](const Shared& data) -> Shared* {
    for (auto& [from, to] : copies) {
      if (from == data) return &to;
    }
    return nullptr;
  };
  size_t bytes = 0;
  try {
    exec::Queue::Transaction transaction(queue, "copy to the device", label, {&computed, 1});
    for (const array* output : outputs) {
      const Shared& data = output->data_shared_ptr();
      if (!data || is_of_input(data) || copy_of(data)) continue;
      exec::Buffer* buffer = exec::buffer_of(data->buffer);
      // An output of zero bytes has nothing to copy, and one that a deleter ends is not ours.
      if (buffer->size() == 0 || data->d || buffer->storage()->adopted) continue;
      bytes += buffer->size();
      auto copy = std::make_shared<array::Data>(allocator::Buffer(nullptr));
      copy->buffer = queue.copy_here(buffer);
      copies.emplace_back(data, std::move(copy));
    }
    const Event copied = transaction.commit();
    if (!copied.valid()) return {computed};
    for (array* output : outputs) {
      if (Shared* copy = copy_of(output->data_shared_ptr())) output->node()->data = *copy;
    }
    // Outputs that were not copied are there by then, too.
    return {copied, bytes};
  } catch (...) {
    // The op has been committed and may have changed its inputs: it cannot be rolled back. The host
    // has its outputs, and the next command that binds one copies it.
    return {computed};
  }
}

}  // namespace holdfast::detail
