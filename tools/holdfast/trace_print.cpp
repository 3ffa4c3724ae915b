// What `holdfast trace info`, `list`, `show` and `diff` print.
#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>

#include "tools/holdfast/trace_command.h"

namespace holdfast::tool {
namespace {

using capture::Binding;
using capture::Capture;
using capture::Command;
using capture::List;

const char* kind_name(Command::Kind kind) {
  constexpr const char* names[] = {"native", "copy", "fill", "dispatch"};
  return names[static_cast<size_t>(kind)];
}

std::string size_text(uint64_t bytes) {
  char text[32];
  if (bytes < 10240) {
    std::snprintf(text, sizeof(text), "%" PRIu64 " B", bytes);
  } else if (bytes < (uint64_t{10} << 20)) {
    std::snprintf(text, sizeof(text), "%.1f KiB", static_cast<double>(bytes) / 1024);
  } else {
    std::snprintf(text, sizeof(text), "%.1f MiB", static_cast<double>(bytes) / 1048576);
  }
  return text;
}

// What ran: the kernel's name for a dispatch, else the op's and which of its commands.
std::string title(const Capture& capture, const Command& command) {
  if (command.kind == Command::Kind::dispatch) return capture.pipelines.at(command.pipeline).name;
  return command.op + (command.detail.empty() || command.detail == command.op
                           ? ""
                           : " (" + command.detail + ")");
}

std::string bindings_text(const Command& command) {
  std::string text;
  for (const Binding& binding : command.bindings) {
    text += (text.empty() ? "" : " ") + std::string(binding.writes ? ">" : "<") + "#" +
            std::to_string(binding.buffer);
  }
  return text;
}

}  // namespace

void print_capture_info(const Capture& capture) {
  std::printf("%s: format %" PRIu64 ", %s\n", capture.name.c_str(), capture.number("format"),
              size_text(capture.file_bytes).c_str());
  std::string why_not = capture.why_not();
  std::vector<std::string> recorded = capture.recorded_ops();
  std::map<std::string, uint64_t> files = capture.referenced_files();
  if (!why_not.empty()) std::printf("hermetic: no, %s\n", why_not.c_str());
  if (why_not.empty() && recorded.empty() && files.empty()) std::printf("hermetic: yes\n");
  if (why_not.empty() && !recorded.empty()) {
    std::printf("hermetic: no, these are replayed from recorded results:");
    for (const std::string& name : recorded) std::printf(" %s", name.c_str());
    std::printf("\n");
  }
  for (const auto& [path, bytes] : files) {
    std::string place = capture.find_file(path);
    std::printf("hermetic: no, it needs %s of %s%s%s\n", size_text(bytes).c_str(), path.c_str(),
                place.empty()   ? ", which is missing"
                : place == path ? ""
                                : ", found as ",
                place == path ? "" : place.c_str());
  }
  std::map<std::string, int64_t> kinds;
  std::set<int32_t> threads;
  int64_t failed = 0, busy = 0;
  for (const List& list : capture.lists) {
    for (const Command& command : list.commands) {
      ++kinds[kind_name(command.kind)];
      threads.insert(command.thread);
      failed += command.failed;
      busy += command.end - command.start;
    }
  }
  uint64_t memory = 0, contents = 0;
  for (const auto& [id, buffer] : capture.buffers) memory += buffer.size;
  for (const auto& c : capture.contents) contents += static_cast<uint64_t>(c.size);
  std::printf("queues %zu, lists %zu, commands %" PRId64 ":", capture.queues.size(),
              capture.lists.size(), capture.commands);
  for (const auto& [kind, count] : kinds) std::printf(" %" PRId64 " %s", count, kind.c_str());
  std::printf("\nthreads %zu, failed commands %" PRId64 ", time in commands %.3f ms of %.3f ms\n",
              threads.size(), failed, static_cast<double>(busy) / 1e6,
              static_cast<double>(capture.number("nanoseconds")) / 1e6);
  std::printf("pipelines %zu, buffers %zu of %s in all, contents %s, digests %zu\n",
              capture.pipelines.size(), capture.buffers.size(), size_text(memory).c_str(),
              size_text(contents).c_str(), capture.digests.size());
  std::printf("wired limit %" PRIu64 " bytes\n", capture.number("wired limit"));
}

void print_capture_list(const Capture& capture) {
  std::printf("%8s %6s %6s %-9s %10s %10s  %-28s %s\n", "command", "stream", "list", "kind",
              "at µs", "µs", "what", "reads and writes");
  for (const List& list : capture.lists) {
    for (size_t i = 0; i < list.commands.size(); ++i) {
      const Command& command = list.commands[i];
      std::printf("%8" PRId64 " %6d %6" PRId64 " %-9s %10.1f %10.2f  %-28s %s%s%s%s\n",
                  list.first_number + static_cast<int64_t>(i), list.stream, list.serial,
                  kind_name(command.kind), static_cast<double>(command.start) / 1e3,
                  command.microseconds(), title(capture, command).c_str(),
                  bindings_text(command).c_str(), command.label.empty() ? "" : "  ",
                  command.label.c_str(), command.failed ? "  FAILED" : "");
    }
  }
}

void print_capture_command(const Capture& capture, int64_t number) {
  for (const List& list : capture.lists) {
    int64_t index = number - list.first_number;
    if (index < 0 || index >= static_cast<int64_t>(list.commands.size())) continue;
    const Command& command = list.commands[static_cast<size_t>(index)];
    std::printf("command %" PRId64 ": %s, %s, op %s\n", number, title(capture, command).c_str(),
                kind_name(command.kind), command.op.c_str());
    if (!command.label.empty()) std::printf("label %s\n", command.label.c_str());
    std::printf("stream %d, list %" PRId64 ", thread %d, %.2f µs at %.1f µs%s\n", list.stream,
                list.serial, command.thread, command.microseconds(),
                static_cast<double>(command.start) / 1e3, command.failed ? ", FAILED" : "");
    for (const exec::Edge& edge : command.edges) {
      std::printf("after command %" PRId64 " (%s)\n", list.first_number + edge.predecessor,
                  edge.kind == exec::Edge::Kind::data ? "its data" : "its memory is reused");
    }
    for (const Binding& binding : command.bindings) {
      const capture::Buffer& buffer = capture.buffers.at(binding.buffer);
      std::printf("%s buffer #%" PRIu64 " bytes %" PRId64 " to %" PRId64 " of %" PRIu64
                  ", made by %s\n",
                  binding.writes ? "writes" : "reads ", binding.buffer, binding.begin, binding.end,
                  buffer.size, buffer.op.c_str());
      for (const auto& c : capture.contents) {
        if (c.buffer != binding.buffer || c.begin > binding.begin || c.size < 4) continue;
        std::string bytes = capture.bytes(c);
        if (auto file = capture.files.find(c.blob); file != capture.files.end()) {
          std::printf("  from byte %" PRId64 " of %s\n", file->second.first,
                      file->second.path.c_str());
        }
        std::printf("  first contents from byte %" PRId64 ", as float32:", c.begin);
        for (size_t at = 0; at + 4 <= std::min<size_t>(bytes.size(), 32); at += 4) {
          float value;
          std::memcpy(&value, bytes.data() + at, 4);
          std::printf(" %g", static_cast<double>(value));
        }
        std::printf("%s\n", bytes.size() > 32 ? " …" : "");
        break;
      }
    }
    for (const auto& digest : capture.digests) {
      if (digest.list == list.id && digest.command == index) {
        std::printf("wrote buffer #%" PRIu64 " with digest %s\n", digest.buffer,
                    digest.digest.c_str());
      }
    }
    if (command.kind != Command::Kind::dispatch) return;
    const capture::Pipeline& pipeline = capture.pipelines.at(command.pipeline);
    std::printf("grid %u x %u x %u, threadgroup %u x %u x %u\n", command.grid[0], command.grid[1],
                command.grid[2], command.threadgroup[0], command.threadgroup[1],
                command.threadgroup[2]);
    std::printf("key %s, entry %s\n\n%s\n", pipeline.key.c_str(), pipeline.entry.c_str(),
                pipeline.source.c_str());
    return;
  }
  throw std::runtime_error("[trace] there is no command " + std::to_string(number) +
                           "; the capture has " + std::to_string(capture.commands));
}

int print_capture_difference(const Capture& a, const Capture& b) {
  // By stream of appearance, in order: streams have other numbers in another process, and their
  // lists complete in another order.
  auto by_stream = [](const Capture& capture) {
    std::vector<std::vector<std::pair<const List*, const Command*>>> streams;
    std::map<int, size_t> place;
    std::vector<const List*> committed;
    for (const List& list : capture.lists) committed.push_back(&list);
    std::sort(committed.begin(), committed.end(), [](const List* x, const List* y) {
      return x->committed != y->committed ? x->committed < y->committed : x->id < y->id;
    });
    for (const List* list : committed) {
      auto [found, is_new] = place.try_emplace(list->stream, streams.size());
      if (is_new) streams.emplace_back();
      for (const Command& command : list->commands) {
        streams[found->second].emplace_back(list, &command);
      }
    }
    return streams;
  };
  auto digests_of = [](const Capture& capture, const List& list, const Command& command) {
    std::vector<std::string> result;
    auto index = static_cast<int64_t>(&command - list.commands.data());
    for (const auto& digest : capture.digests) {
      if (digest.list == list.id && digest.command == index) result.push_back(digest.digest);
    }
    return result;
  };
  auto streams_a = by_stream(a), streams_b = by_stream(b);
  int differs = 0;
  auto report = [&](const std::string& text) {
    if (!differs++) std::printf("first difference: %s\n", text.c_str());
  };
  if (streams_a.size() != streams_b.size()) {
    report(std::to_string(streams_a.size()) + " streams, and " + std::to_string(streams_b.size()));
  }
  for (size_t s = 0; s < std::min(streams_a.size(), streams_b.size()) && !differs; ++s) {
    size_t count = std::min(streams_a[s].size(), streams_b[s].size());
    for (size_t i = 0; i < count && !differs; ++i) {
      auto [list_a, x] = streams_a[s][i];
      auto [list_b, y] = streams_b[s][i];
      std::string where = "stream " + std::to_string(s) + ", its command " + std::to_string(i);
      std::string name = title(a, *x), other = title(b, *y);
      bool same_kernel = x->kind != Command::Kind::dispatch || y->kind != Command::Kind::dispatch ||
                         a.pipelines.at(x->pipeline).key == b.pipelines.at(y->pipeline).key;
      if (x->kind != y->kind || name != other) {
        report(where + ": " + name + ", and " + other);
      } else if (!same_kernel) {
        report(where + ": " + name + " is another kernel of the same name");
      } else if (!std::equal(std::begin(x->grid), std::end(x->grid), std::begin(y->grid))) {
        report(where + ": " + name + " has another grid");
      } else if (x->bindings.size() != y->bindings.size() || x->work != y->work) {
        report(where + ": " + name + " works on other sizes");
      } else {
        auto of_a = digests_of(a, *list_a, *x), of_b = digests_of(b, *list_b, *y);
        if (!of_a.empty() && !of_b.empty() && of_a != of_b) {
          report(where + ": " + name + " wrote other values");
        }
      }
    }
    if (!differs && streams_a[s].size() != streams_b[s].size()) {
      report("stream " + std::to_string(s) + " has " + std::to_string(streams_a[s].size()) +
             " commands, and " + std::to_string(streams_b[s].size()));
    }
  }
  if (!differs)
    std::printf("the same commands%s\n",
                a.digests.empty() || b.digests.empty() ? "" : " and the same values");
  std::map<std::string, std::array<double, 4>> times;  // µs and counts of both
  for (int side = 0; side < 2; ++side) {
    const Capture& capture = side == 0 ? a : b;
    for (const List& list : capture.lists) {
      for (const Command& command : list.commands) {
        auto& row = times[title(capture, command)];
        row[static_cast<size_t>(side)] += command.microseconds();
        row[static_cast<size_t>(side) + 2] += 1;
      }
    }
  }
  std::vector<std::pair<std::string, std::array<double, 4>>> rows(times.begin(), times.end());
  std::sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) {
    return std::abs(x.second[0] - x.second[1]) > std::abs(y.second[0] - y.second[1]);
  });
  std::printf("\n%-32s %12s %12s %8s %8s\n", "what", "A µs", "B µs", "A runs", "B runs");
  for (const auto& [name, row] : rows) {
    std::printf("%-32s %12.1f %12.1f %8.0f %8.0f\n", name.c_str(), row[0], row[1], row[2], row[3]);
  }
  return differs ? 1 : 0;
}

}  // namespace holdfast::tool
