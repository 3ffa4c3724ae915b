#include "exec/ring.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>

#include "base/environment.h"
#include "exec/queue.h"

namespace holdfast::exec {
namespace {

constexpr size_t commands_per_list = 32;  // on average: lists of more push others out
// Appends formatted text, a line at most.
template <class... Values>
void append(std::string& text, const char* format, Values... values) {
  char line[512];
  int length = std::snprintf(line, sizeof line, format, values...);
  text.append(line, static_cast<size_t>(std::clamp<int>(length, 0, sizeof line - 1)));
}

}  // namespace

void Ring::add(const CommandList& list, bool owns_pipelines) noexcept {
  int kept = environment::settings().ring;
  if (kept == 0 || list.commands.empty() || !is_on.load(std::memory_order_relaxed)) return;
  if (lists_.empty()) {
    try {
      std::vector<ListRecord> lists(static_cast<size_t>(kept));
      std::vector<CommandRecord> commands(lists.size() * commands_per_list);
      std::lock_guard guard(lock_);
      lists_ = std::move(lists);
      commands_ = std::move(commands);
    } catch (...) {
      return;
    }
  }
  const uint64_t now = ticks();
  std::lock_guard guard(lock_);
  lists_[next_list_++ % lists_.size()] = {list.serial, now, next_command_,
                                          static_cast<uint32_t>(list.commands.size())};
  size_t place = next_command_ % commands_.size();
  for (const Command& command : list.commands) {
    CommandRecord& record = commands_[place];
    if (++place == commands_.size()) place = 0;
    record.op = command.op;
    record.work = command.work;
    record.bindings = command.binding_count;
    record.kind = command.kind;
    uint32_t end = command.first_binding + command.binding_count;
    record.last_binding = command.binding_count > 0 ? list.bindings[end - 1].identity : 0;
    size_t kernel = 0;
    if (command.kind == Command::Kind::dispatch && owns_pipelines) {
      kernel = command.pipeline->name().copy(record.kernel, sizeof(record.kernel) - 1);
    }
    record.kernel[kernel] = '\0';
  }
  next_command_ += list.commands.size();
}

std::string Ring::report(const CommandList& list, const Command& failed, const Failure& failure) {
  std::vector<ListRecord> lists;
  std::vector<CommandRecord> commands;
  uint64_t next_list, next_command;
  size_t list_count, command_count;
  {
    std::lock_guard guard(lock_);
    list_count = lists_.size();
    command_count = commands_.size();
  }
  if (list_count == 0) return "";
  // Not under the lock; the sizes stay.
  lists.resize(list_count);
  commands.resize(command_count);
  {
    std::lock_guard guard(lock_);
    std::copy(lists_.begin(), lists_.end(), lists.begin());
    std::copy(commands_.begin(), commands_.end(), commands.begin());
    next_list = next_list_;
    next_command = next_command_;
  }
  int stream = static_cast<Queue*>(list.owner)->stream().index;
  auto index = static_cast<uint64_t>(&failed - list.commands.data());
  std::string text = failure.message() + "\n";
  append(text, "list %" PRIu64 " of stream %d, command %" PRIu64 "\n\n", list.serial, stream,
         index);
  text += "the last lists that were submitted to this stream, the newest last:\n";
  uint64_t oldest = next_command - std::min<uint64_t>(next_command, command_count);
  for (uint64_t n = next_list - std::min<uint64_t>(next_list, list_count); n < next_list; ++n) {
    const ListRecord& record = lists[n % list_count];
    const double age = clock_.milliseconds_since(record.committed);
    append(text, "list %" PRIu64 ": %u commands, submitted %.3f ms before%s\n", record.serial,
           record.count, age, record.serial == list.serial ? ", failed" : "");
    for (uint32_t c = 0; c < record.count; ++c) {
      if (record.first + c < oldest) continue;
      const CommandRecord& command = commands[(record.first + c) % command_count];
      constexpr const char* kinds[] = {"native", "copy", "fill", "dispatch"};
      bool is_it = record.serial == list.serial && c == index;
      append(text,
             "%c %4u  %-8s %s %s  %" PRId64
             " bytes of work, %u bindings, the last one buffer #%" PRIu64 "\n",
             is_it ? '>' : ' ', c, kinds[static_cast<int>(command.kind)], command.op,
             command.kernel, command.work, command.bindings, command.last_binding);
    }
  }
  return text + "\n";
}

}  // namespace holdfast::exec
