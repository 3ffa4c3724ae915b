// The data of a capture as JSON: for Perfetto, and inside the page of a report.
#include <nlohmann/json.hpp>

#include <map>

#include "tools/holdfast/trace_command.h"

namespace holdfast::tool {
namespace {

using capture::Capture;
using capture::Command;
using capture::List;
using Json = nlohmann::json;

std::string title(const Capture& capture, const Command& command) {
  if (command.kind == Command::Kind::dispatch) return capture.pipelines.at(command.pipeline).name;
  return command.op;
}

// Text that may not be UTF-8, and text that would end the script it stands in.
std::string dump(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos;)
    text.replace(at, 1, "\\u003c");
  return text;
}

// Strings by number: most repeat.
class Names {
 public:
  size_t operator()(const std::string& name) {
    auto [found, is_new] = places_.try_emplace(name, list.size());
    if (is_new) list.push_back(name);
    return found->second;
  }
  Json list = Json::array();

 private:
  std::map<std::string, size_t> places_;
};

}  // namespace

std::string perfetto_json(const Capture& capture) {
  Json events = Json::array();
  for (const auto& queue : capture.queues) {
    std::string name = "stream " + std::to_string(queue.stream) + (queue.is_gpu ? " (gpu)" : "");
    events.push_back({{"ph", "M"},
                      {"pid", 1},
                      {"tid", queue.stream},
                      {"name", "thread_name"},
                      {"args", {{"name", name}}}});
  }
  events.push_back(
      {{"ph", "M"}, {"pid", 1}, {"name", "process_name"}, {"args", {{"name", "holdfast"}}}});
  int64_t number = 0;
  for (const List& list : capture.lists) {
    for (const Command& command : list.commands) {
      events.push_back({{"ph", "X"},
                        {"pid", 1},
                        {"tid", list.stream},
                        {"ts", static_cast<double>(command.start) / 1e3},
                        {"dur", command.microseconds()},
                        {"name", title(capture, command)},
                        {"cat", command.op},
                        {"args",
                         {{"command", number++},
                          {"list", list.serial},
                          {"label", command.label},
                          {"bytes", command.work},
                          {"thread", command.thread}}}});
    }
  }
  std::multimap<int64_t, double> changes;
  for (const auto& [id, buffer] : capture.buffers) {
    auto size = static_cast<double>(buffer.size);
    changes.emplace(std::max<int64_t>(buffer.created, 0), size);
    if (buffer.retired >= 0) changes.emplace(buffer.retired, -size);
  }
  double bytes = 0;
  for (const auto& [time, change] : changes) {
    bytes += change;
    events.push_back({{"ph", "C"},
                      {"pid", 1},
                      {"ts", static_cast<double>(time) / 1e3},
                      {"name", "memory"},
                      {"args", {{"bytes", bytes}}}});
  }
  return Json({{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string report_html(const Capture& capture) {
  Names names;
  Json data;
  std::map<uint64_t, size_t> pipeline_place;
  data["pipelines"] = Json::array();
  for (const auto& [id, pipeline] : capture.pipelines) {
    pipeline_place[id] = data["pipelines"].size();
    LoweredKernel lowered = lower_again(pipeline);
    constexpr const char* modes[] = {"safe", "relaxed", "fast"};
    data["pipelines"].push_back({{"name", pipeline.name},
                                 {"key", pipeline.key},
                                 {"entry", pipeline.entry},
                                 {"lowering", lowered.summary},
                                 {"assembly", lowered.assembly},
                                 {"math", modes[pipeline.math]},
                                 {"source", pipeline.source}});
  }
  // A row: title, op, label, kind, stream, list, thread, start, duration, bytes, failed, pipeline
  // or -1, grid text, predecessors (numbers, negative - 1 where only memory is reused), bindings
  // (buffer, begin, end, writes) one after the other.
  Json& commands = data["commands"] = Json::array();
  for (const List& list : capture.lists) {
    for (const Command& command : list.commands) {
      Json edges = Json::array(), bindings = Json::array();
      for (const exec::Edge& edge : command.edges) {
        int64_t number = list.first_number + edge.predecessor;
        edges.push_back(edge.kind == exec::Edge::Kind::data ? number : -number - 1);
      }
      for (const capture::Binding& b : command.bindings) {
        for (int64_t value : {static_cast<int64_t>(b.buffer), b.begin, b.end, int64_t{b.writes}}) {
          bindings.push_back(value);
        }
      }
      std::string grid;
      if (command.kind == Command::Kind::dispatch) {
        for (int i = 0; i < 3; ++i) grid += (i ? " × " : "") + std::to_string(command.grid[i]);
        grid += " threads in groups of ";
        for (int i = 0; i < 3; ++i) {
          grid += (i ? " × " : "") + std::to_string(command.threadgroup[i]);
        }
      }
      bool is_dispatch = command.kind == Command::Kind::dispatch;
      commands.push_back({names(title(capture, command)), names(command.op), names(command.label),
                          static_cast<int>(command.kind), list.stream, list.serial, command.thread,
                          command.start, command.end - command.start, command.work,
                          static_cast<int>(command.failed),
                          is_dispatch ? static_cast<int64_t>(pipeline_place[command.pipeline]) : -1,
                          names(grid), std::move(edges), std::move(bindings)});
    }
  }
  Json& buffers = data["buffers"] = Json::array();
  for (const auto& [id, b] : capture.buffers) {
    buffers.push_back({id, b.size, names(b.op), names(b.label), b.stream, b.created, b.retired});
  }
  data["names"] = std::move(names.list);
  data["file"] = capture.name.substr(capture.name.find_last_of('/') + 1);
  data["meta"] = capture.meta;
  return report_page_head + dump(data) + report_page_tail;
}

}  // namespace holdfast::tool
