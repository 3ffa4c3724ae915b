// nan: the op in which the first NaN or infinity came up. Before a command runs, the numbers that
// it reads are looked at, and afterwards those that it has written: what is not finite although all
// of its inputs were is its own doing. Commands that read such a number are not to blame, so that
// of a whole chain only the first op is reported.
//
// Bytes whose type is not known (Encoder::raw_input) could hold anything: a command that reads some
// is not reported. Commands that only move numbers, or fill memory with one that was given, make
// none. Elements between those that a command writes keep their bytes, and what has not changed is
// not looked at. So that nothing that older buffers left in recycled memory looks like that, it is
// taken away before the first command writes to a buffer: nobody may count on it.
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "exec/layers/contents.h"
#include "exec/layers/validation/messages.h"
#include "exec/layers/validation/validator.h"

namespace holdfast::validation {
namespace {

using exec::Binding;
using exec::Elements;

// What a number of `bytes` bytes is when all bits of its exponent are set.
struct Format {
  size_t bytes;
  uint64_t exponent, fraction, sign;
};
Format format_of(Elements elements) {
  switch (elements) {
    case Elements::float16:
      return {2, 0x7c00, 0x03ff, 0x8000};
    case Elements::bfloat16:
      return {2, 0x7f80, 0x007f, 0x8000};
    case Elements::float32:
      return {4, 0x7f800000, 0x007fffff, 0x80000000};
    case Elements::float64:
      return {8, 0x7ff0000000000000, 0x000fffffffffffff, 0x8000000000000000};
    default:
      return {0, 0, 0, 0};
  }
}

template <class Word, class Visit>
void for_each_word(const char* bytes, size_t count, const Format& format, Visit visit) {
  for (size_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, bytes + i * sizeof(Word), sizeof(word));
    if ((word & static_cast<Word>(format.exponent)) == static_cast<Word>(format.exponent))
      visit(i, uint64_t{word});
  }
}

// Calls `visit(index, bits)` for each number that is not finite.
template <class Visit>
void for_each_special(std::string_view numbers, Elements elements, Visit visit) {
  const char* bytes = numbers.data();
  const size_t size = numbers.size();
  const Format format = format_of(elements);
  switch (format.bytes) {
    case 2:
      return for_each_word<uint16_t>(bytes, size / 2, format, visit);
    case 4:
      return for_each_word<uint32_t>(bytes, size / 4, format, visit);
    case 8:
      return for_each_word<uint64_t>(bytes, size / 8, format, visit);
    default:
      return;
  }
}

exec::Contents contents_of(const Binding& binding) {
  return {*binding.storage, binding.begin, std::max(binding.begin, binding.end)};
}
size_t size_of(const Binding& binding) {
  return static_cast<size_t>(std::max<int64_t>(binding.end - binding.begin, 0));
}
bool is_whole(const Binding& binding) {
  return binding.begin >= 0 && binding.storage->space &&
         binding.end <= static_cast<int64_t>(binding.storage->capacity);
}

void clear_special(const Binding& binding) {
  if (!is_whole(binding)) return;
  exec::Contents contents = contents_of(binding);
  const size_t item = format_of(binding.elements).bytes;
  constexpr char zeros[8] = {};
  for_each_special(contents.bytes(), binding.elements,
                   [&](size_t i, uint64_t) { contents.write(i * item, {zeros, item}); });
}

bool is_finite(const Binding& binding) {
  if (binding.elements == Elements::unknown || !is_whole(binding)) return false;
  bool result = true;
  for_each_special(contents_of(binding).bytes(), binding.elements,
                   [&](size_t, uint64_t) { result = false; });
  return result;
}

}  // namespace

// Watches the commands of one list, on the thread that runs it.
class Validator::OriginWatch final : public exec::CommandObserver {
 public:
  explicit OriginWatch(Validator& validator) : validator_(validator) {}

  void before(const CommandList& list, uint32_t index) noexcept override {
    const Command& command = list.commands[index];
    before_.clear();
    is_candidate_ =
        command.kind == Command::Kind::native || command.kind == Command::Kind::dispatch;
    const auto bindings = bindings_of(list, command);
    try {
      for (const Binding& binding : bindings) {
        if (binding.writes && validator_.is_first_write(binding.identity)) clear_special(binding);
      }
      for (const Binding& binding : bindings) {
        if (!is_candidate_) return;
        if (!binding.writes) is_candidate_ = is_finite(binding);
      }
      for (const Binding& binding : bindings) {
        const bool is_watched =
            binding.writes && format_of(binding.elements).bytes != 0 && is_whole(binding);
        before_.emplace_back(is_watched ? contents_of(binding).bytes() : std::string_view());
      }
    } catch (const std::exception&) {
      is_candidate_ = false;  // there is no memory to look at it
    }
  }

  void after(const CommandList& list, uint32_t index, bool failed) noexcept override {
    if (failed || !is_candidate_) return;
    const Command& command = list.commands[index];
    const auto bindings = bindings_of(list, command);
    try {
      for (size_t i = 0; i < bindings.size(); ++i) {
        if (!before_[i].empty()) look_at(list, command, bindings[i], before_[i]);
      }
    } catch (const std::exception&) {
    }
  }

 private:
  static std::span<const Binding> bindings_of(const CommandList& list, const Command& command) {
    return std::span(list.bindings).subspan(command.first_binding, command.binding_count);
  }

  void look_at(const CommandList& list, const Command& command, const Binding& binding,
               const std::string& before) {
    const Format format = format_of(binding.elements);
    messages::MadeNumbers nans, infinities;
    const exec::Contents contents = contents_of(binding);
    const std::string_view bytes = contents.bytes();
    for_each_special(bytes, binding.elements, [&](size_t i, uint64_t bits) {
      const size_t at = i * format.bytes;
      if (std::memcmp(bytes.data() + at, before.data() + at, format.bytes) == 0) return;
      messages::MadeNumbers& made = (bits & format.fraction) != 0 ? nans : infinities;
      if (made.count++ != 0) return;
      made.first_byte = binding.begin + static_cast<int64_t>(at);
      made.is_negative = (bits & format.sign) != 0;
    });
    const size_t numbers = size_of(binding) / format.bytes;
    if (nans.count != 0) validator_.report_origin(list, command, binding, true, nans, numbers);
    if (infinities.count != 0)
      validator_.report_origin(list, command, binding, false, infinities, numbers);
  }

  Validator& validator_;
  bool is_candidate_ = false;
  std::vector<std::string> before_;  // the bytes of each binding that is written
};

void Validator::watch_origins(CommandList& list, sync::Held) {
  auto watch = std::make_shared<OriginWatch>(*this);
  list.add_observer(*watch);
  origin_watches_[{list.queue, list.serial}] = std::move(watch);
}

bool Validator::is_first_write(uint64_t identity) {
  std::lock_guard guard(mutex_);
  BufferRecord* buffer = find(identity, guard);
  return buffer && !std::exchange(buffer->has_numbers, true);
}

void Validator::report_origin(const CommandList& list, const Command& command,
                              const Binding& binding, bool is_nan,
                              const messages::MadeNumbers& made, size_t numbers) noexcept {
  try {
    Reports reports;
    {
      std::lock_guard guard(mutex_);
      if (const BufferRecord* buffer = find(binding.identity, guard))
        reports.push_back(
            messages::origin(side_of(list, command, guard), *buffer, is_nan, made, numbers));
    }
    deliver_later(reports, list.queue);
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace holdfast::validation
