#include "graph/copy_to_device.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <holdfast/errors.h>

#include "graph/node.h"

namespace holdfast::detail {

Event copy_to_device(exec::Queue& queue, const Event& computed, std::span<const array> inputs,
                     std::span<array* const> outputs) {
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
  const label::Label label;
  try {
    exec::Queue::Transaction transaction(queue, "copy to the device", label, {&computed, 1});
    for (const array* output : outputs) {
      const Shared& data = output->data_shared_ptr();
      if (!data || is_of_input(data) || copy_of(data)) continue;
      exec::Buffer* buffer = exec::buffer_of(data->buffer);
      // An output of zero bytes has nothing to copy, and one that a deleter ends is not ours.
      if (buffer->size() == 0 || data->d || buffer->storage()->adopted) continue;
      copies.emplace_back(data, std::make_shared<array::Data>(queue.copy_here(buffer)));
    }
    const Event copied = transaction.commit();
    if (!copied.valid()) return computed;
    for (array* output : outputs) {
      if (Shared* copy = copy_of(output->data_shared_ptr())) output->node()->data = *copy;
    }
    // Outputs that were not copied are there by then, too.
    return copied;
  } catch (const OutOfMemory&) {
    return computed;
  }
}

}  // namespace holdfast::detail
