#include "exec/ring.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/environment.h"
#include "exec/queue.h"

namespace holdfast::exec {
namespace {

constexpr size_t commands_per_list = 32;  // on average: lists of more push others out
constexpr int most_failures = 8;          // of a process that are written

// The file of this process. Made once: every failure is added to it.
struct RingFile {
  std::atomic<int> failures{0};
  sync::Mutex mutex;
  // Guarded by mutex.
  std::string path;
};

RingFile& ring_file() {
  static auto* file = new RingFile;
  return *file;
}

// Opens the file of this process; null when it cannot be made.
std::FILE* open_ring(RingFile& file) {
  if (!file.path.empty()) return std::fopen(file.path.c_str(), "ae");
  std::filesystem::path folder = environment::settings().ring_folder;
  if (folder.empty()) folder = std::filesystem::temp_directory_path();
  std::string path = folder / ("holdfast-ring-" + std::to_string(::getpid()) + "-XXXXXX.txt");
  int descriptor = ::mkostemps(path.data(), 4, O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  file.path = path;
  return ::fdopen(descriptor, "w");
}

}  // namespace

void Ring::add(const CommandList& list) noexcept {
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
  auto now = sync::now();
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
    // Where lists own nothing, it may have ended: that is for the validator to say.
    if (command.kind == Command::Kind::dispatch && Pipeline::is_alive(command.pipeline_identity)) {
      kernel = command.pipeline->name().copy(record.kernel, sizeof(record.kernel) - 1);
    }
    record.kernel[kernel] = '\0';
  }
  next_command_ += list.commands.size();
}

void Ring::write_out(const CommandList& list, const Command& failed,
                     const Failure& failure) noexcept {
  try {
    RingFile& file = ring_file();
    if (file.failures.load(std::memory_order_relaxed) >= most_failures) return;
    std::vector<ListRecord> lists;
    std::vector<CommandRecord> commands;
    uint64_t next_list, next_command;
    size_t list_count, command_count;
    {
      std::lock_guard guard(lock_);
      list_count = lists_.size();
      command_count = commands_.size();
    }
    if (list_count == 0) return;
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
    if (file.failures.fetch_add(1) >= most_failures) return;
    std::lock_guard guard(file.mutex);
    bool is_new = file.path.empty();
    std::FILE* out = open_ring(file);
    if (!out) return;
    auto now = sync::now();
    int stream = static_cast<Queue*>(list.owner)->stream().index;
    auto index = static_cast<uint64_t>(&failed - list.commands.data());
    std::fprintf(out, "%s\nlist %" PRIu64 " of stream %d, command %" PRIu64 "\n\n",
                 failure.message().c_str(), list.serial, stream, index);
    std::fprintf(out, "the last lists that were submitted to this stream, the newest last:\n");
    uint64_t oldest = next_command - std::min<uint64_t>(next_command, command_count);
    for (uint64_t n = next_list - std::min<uint64_t>(next_list, list_count); n < next_list; ++n) {
      const ListRecord& record = lists[n % list_count];
      double age = std::chrono::duration<double, std::milli>(now - record.committed).count();
      std::fprintf(out, "list %" PRIu64 ": %u commands, submitted %.3f ms before%s\n",
                   record.serial, record.count, age,
                   record.serial == list.serial ? ", failed" : "");
      for (uint32_t c = 0; c < record.count; ++c) {
        if (record.first + c < oldest) continue;
        const CommandRecord& command = commands[(record.first + c) % command_count];
        constexpr const char* kinds[] = {"native", "copy", "fill", "dispatch"};
        bool is_it = record.serial == list.serial && c == index;
        std::fprintf(out,
                     "%c %4u  %-8s %s %s  %" PRId64
                     " bytes of work, %u bindings, the last one buffer #%" PRIu64 "\n",
                     is_it ? '>' : ' ', c, kinds[static_cast<int>(command.kind)], command.op,
                     command.kernel, command.work, command.bindings, command.last_binding);
      }
    }
    std::fprintf(out, "\n");
    if (std::fclose(out) == 0 && is_new) {
      std::fprintf(stderr, "[holdfast] a command failed; what ran before it is in %s\n",
                   file.path.c_str());
    }
  } catch (const std::exception&) {
    // No memory, or no folder: the failure itself is told all the same.
  }
}

}  // namespace holdfast::exec
