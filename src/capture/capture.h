// Capture: a .hfcap file that was read and checked. The schema is in docs/capture.md.
//
// Nothing in a file is trusted: whatever does not fit is a std::runtime_error that names the file,
// the table and the row.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "devices/command_list.h"
#include "exec/layers/capture/capture_file.h"
#include "graph/op_note.h"
#include "msl/kernel_source.h"

struct sqlite3;

namespace holdfast::capture {

using exec::capture::Moment;

struct Place {
  uint64_t buffer = 0;  // 0: none
  int64_t offset = 0;
  // Of the command: one that covers the place. The file does not say which.
  uint32_t binding = Bound::nothing;
};

struct Argument {
  uint32_t bytes = 0;  // of a threadgroup argument or of `value`
  std::string value;   // what was bound as bytes
  Place place;
  std::string errors;  // of a report of errors: its texts (devices/error_report.h)
};

struct Binding {
  uint64_t buffer = 0;
  int64_t begin = 0, end = 0;
  bool writes = false;
};

struct Command {
  using Kind = exec::Command::Kind;
  Kind kind = Kind::native;
  std::string op, detail, label;
  int64_t work = 0, tasks = 0;
  std::vector<Binding> bindings;
  std::vector<exec::Edge> edges;  // to earlier commands of the list
  Place source, target;
  uint64_t bytes = 0;
  std::string pattern;
  uint64_t pipeline = 0;
  uint32_t grid[3] = {}, threadgroup[3] = {};
  std::vector<Argument> arguments;
  // When it ran, from the start of the capture, on which thread of the system.
  int64_t start = 0, end = 0;
  int32_t thread = 0;
  bool failed = false;

  double microseconds() const { return static_cast<double>(end - start) / 1e3; }
};

struct Op {
  uint32_t first_command = 0, command_count = 0;
  exec::NotedOp::Replay replay = exec::NotedOp::Replay::none;
  std::string text;  // see graph/op_note.h
};

struct List {
  int64_t id = 0, sequence = 0, serial = 0, committed = 0;
  int stream = 0;
  struct Wait {
    int32_t stream;
    uint64_t serial;
  };
  std::vector<Wait> waits;
  std::vector<Op> ops;
  std::vector<Command> commands;
  int64_t first_number = 0;  // of its first command, among all of the capture
};

struct Buffer {
  uint64_t id = 0;
  // Where `has_size` is false, the file ends early: as much as commands are known to use.
  uint64_t size = 0;
  bool has_size = false;
  int32_t stream = -1;
  std::string op, label;
  // Nanoseconds; -1: before the capture, or not in it.
  int64_t created = -1, retired = -1;
};

struct Pipeline {
  uint64_t id = 0;
  std::string name, key, entry, source;
  uint8_t math = 0, variant = 0;
  bool has_source = false, includes_files = false;
  std::vector<msl::FunctionConstant> constants;
};

// Its source as the compiler takes it.
msl::KernelSource source_of(const Pipeline& pipeline);

struct Queue {
  int stream = 0;
  bool is_gpu = false, created = false;
};

struct Contents {
  Moment moment = Moment::start;
  int64_t list = 0, command = 0;
  uint64_t buffer = 0;
  int64_t begin = 0, size = 0;
  int64_t blob = 0;
};

struct Digest {
  int64_t list = 0, command = 0;
  uint64_t buffer = 0;
  int64_t begin = 0, end = 0;
  std::string digest;
};

class Capture {
 public:
  // A process that was stopped while it recorded leaves a journal beside the file: what it was
  // writing is rolled back, in the file.
  explicit Capture(const std::string& path);
  // A file that is in memory.
  Capture(std::string_view bytes, const std::string& name);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  std::map<std::string, std::string> meta;
  std::vector<Queue> queues;
  std::map<uint64_t, Pipeline> pipelines;
  std::vector<List> lists;  // in the order in which they completed
  std::map<uint64_t, Buffer> buffers;
  std::vector<Contents> contents;
  std::vector<Digest> digests;
  std::map<int64_t, exec::FileRange> files;  // of rows of `blobs` whose bytes are in a file
  int64_t commands = 0;
  std::string name;
  uint64_t file_bytes = 0;

  // Why it cannot be replayed from what is in it; empty: it can. What is replayed from recorded
  // results is in `recorded_ops`.
  std::string why_not() const;
  std::vector<std::string> recorded_ops() const;
  // The files that it refers to, and how many bytes of them.
  std::map<std::string, uint64_t> referenced_files() const;
  // Where a referenced file is now: where it was, else beside the capture; empty: nowhere.
  std::string find_file(const std::string& path) const;
  bool is_complete() const;
  uint64_t number(const std::string& key) const;  // 0 where there is none

  // The bytes, checked against their digest. Those of a file are read from there; one that is
  // missing or has changed is a std::runtime_error that names it. Nothing else reads other files.
  std::string bytes(const Contents& of) const;

 private:
  void read();
  void read_lists();
  void read_list(int64_t row, List& list, const std::string& commands, const std::string& times);
  void read_memory(int64_t row, const std::string& events);
  // The buffer, of which bytes up to `end` are used, or null. What is known of buffers is written
  // late: a file that ends early may lack a buffer, or have the end of its life alone.
  const Buffer* used_buffer(uint64_t id, int64_t end);
  [[noreturn]] void fail(const std::string& where, const std::string& what) const;
  // The bytes of a row of `blobs`, checked against their digest; `file`: where they may be instead.
  std::string blob(int64_t id, const exec::FileRange* file = nullptr) const;
  std::string read_file(const std::string& where, const exec::FileRange& range, int64_t size) const;
  template <class Row>
  void query(const char* sql, const char* table, Row row) const;

  std::string bytes_;  // of a file in memory
  sqlite3* database_ = nullptr;
};

}  // namespace holdfast::capture
