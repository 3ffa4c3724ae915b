#include "capture/capture.h"

#include <sqlite3.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "exec/kernel_request.h"

namespace holdfast::capture {
namespace {

// A blob is held in memory: more is no capture of this machine's.
constexpr int64_t largest_blob = int64_t{1} << 36;

std::string text_at(sqlite3_stmt* s, int column) {
  const void* text = sqlite3_column_blob(s, column);
  return text ? std::string(static_cast<const char*>(text),
                            static_cast<size_t>(sqlite3_column_bytes(s, column)))
              : std::string();
}

Place read_place(ByteReader& in) {
  Place place;
  place.buffer = in.value<uint64_t>();
  place.offset = in.value<int64_t>();
  return place;
}

// Does the file end as SQLite's journals do that name a journal of several databases? Ours never
// do; rolling one back may delete the file that it names.
bool names_other_journal(const std::string& journal) {
  constexpr std::string_view magic("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8);
  std::ifstream file(journal, std::ios::binary);
  std::string end(magic.size(), '\0');
  file.seekg(-static_cast<std::streamoff>(end.size()), std::ios::end);
  return !file.read(end.data(), static_cast<std::streamsize>(end.size())) || end == magic;
}

// Rolls back what a process was writing when it was stopped, which a connection that only reads may
// not. Returns why it cannot; empty: it could, or there was nothing to do.
std::string roll_back_journal(sqlite3* reader, const std::string& path) {
  auto look = [](sqlite3* database) {
    return sqlite3_exec(database, "select 1 from sqlite_master", nullptr, nullptr, nullptr);
  };
  if (look(reader) == SQLITE_OK || sqlite3_extended_errcode(reader) != SQLITE_READONLY_ROLLBACK) {
    return "";
  }
  // SQLite, too, looks for the journal beside what a link points to.
  std::string file = std::filesystem::canonical(path).string();
  if (names_other_journal(file + "-journal")) return "it names other files";
  sqlite3* writer = nullptr;
  sqlite3_open_v2(file.c_str(), &writer, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  std::string problem = look(writer) == SQLITE_OK ? "" : sqlite3_errmsg(writer);
  sqlite3_close(writer);
  return problem;
}

}  // namespace

msl::KernelSource source_of(const Pipeline& pipeline) {
  msl::KernelSource source;
  source.kernel = pipeline.name;
  source.entry = pipeline.entry;
  source.text = pipeline.source;
  source.math = static_cast<msl::MathMode>(pipeline.math);
  source.parts.push_back({pipeline.name, 0, source.text.size()});
  source.constants = pipeline.constants;
  return source;
}

Capture::Capture(const std::string& path) : name(path) {
  std::error_code error;
  file_bytes = std::filesystem::file_size(path, error);
  if (error) throw std::runtime_error("[capture] cannot open \"" + path + "\": " + error.message());
  int result = sqlite3_open_v2(path.c_str(), &database_, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX,
                               nullptr);
  try {
    if (result != SQLITE_OK) fail("file", sqlite3_errmsg(database_));
    std::string problem = roll_back_journal(database_, path);
    if (!problem.empty()) {
      fail("file", "its writer was stopped, and its journal cannot be rolled back: " + problem);
    }
    read();
  } catch (...) {
    sqlite3_close(database_);
    throw;
  }
}

Capture::Capture(std::string_view bytes, const std::string& file_name)
    : name(file_name), file_bytes(bytes.size()), bytes_(bytes) {
  sqlite3_open_v2(":memory:", &database_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  try {
    int result =
        sqlite3_deserialize(database_, "main", reinterpret_cast<unsigned char*>(bytes_.data()),
                            static_cast<sqlite3_int64>(bytes_.size()),
                            static_cast<sqlite3_int64>(bytes_.size()), SQLITE_DESERIALIZE_READONLY);
    if (result != SQLITE_OK) fail("file", sqlite3_errmsg(database_));
    read();
  } catch (...) {
    sqlite3_close(database_);
    throw;
  }
}

Capture::~Capture() { sqlite3_close(database_); }

void Capture::fail(const std::string& where, const std::string& what) const {
  throw std::runtime_error("[capture] " + name + ": " + where + ": " + what);
}

template <class Row>
void Capture::query(const char* sql, const char* table, Row row) const {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr) != SQLITE_OK) {
    fail(table, sqlite3_errmsg(database_));
  }
  std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> owner(statement, &sqlite3_finalize);
  int result;
  for (int64_t number = 1; (result = sqlite3_step(statement)) == SQLITE_ROW; ++number) {
    row(statement, number);
  }
  if (result != SQLITE_DONE) fail(table, sqlite3_errmsg(database_));
}

std::string Capture::bytes(const Contents& of) const {
  auto file = files.find(of.blob);
  std::string result = blob(of.blob, file == files.end() ? nullptr : &file->second);
  // They go where that many bytes have room.
  if (static_cast<int64_t>(result.size()) != of.size) {
    fail("blobs row " + std::to_string(of.blob), "it has changed since it was read");
  }
  return result;
}

std::string Capture::blob(int64_t id, const exec::FileRange* file) const {
  std::string result;
  bool found = false;
  std::string where = "blobs row " + std::to_string(id);
  std::string sql = "select digest,size,data from blobs where id=" + std::to_string(id);
  query(sql.c_str(), "blobs", [&](sqlite3_stmt* s, int64_t) {
    found = true;
    int64_t size = sqlite3_column_int64(s, 1);
    if (size < 0 || size > largest_blob) fail(where, "its size is not what it says");
    if (sqlite3_column_type(s, 2) == SQLITE_NULL) {
      if (!file) fail(where, "it has no bytes");
      result = read_file(where, *file, size);
      if (to_hex(hash_bytes(result)) != text_at(s, 0)) {
        fail(where, "\"" + find_file(file->path) + "\" has changed: bytes " +
                        std::to_string(file->first) + " to " + std::to_string(file->first + size) +
                        " are not those that were recorded");
      }
      return;
    }
    const void* data = sqlite3_column_blob(s, 2);
    auto packed = static_cast<size_t>(sqlite3_column_bytes(s, 2));
    unsigned long long stated = data ? ZSTD_getFrameContentSize(data, packed) : 0;
    // No frame of zstd is smaller than that: memory is only taken for what may be there.
    constexpr size_t largest_ratio = 32768;
    if (stated != static_cast<unsigned long long>(size) || stated / largest_ratio > packed) {
      fail(where, "its size is not what it says");
    }
    result.resize(static_cast<size_t>(size));
    size_t got = ZSTD_decompress(result.data(), result.size(), data, packed);
    if (ZSTD_isError(got) || got != result.size()) fail(where, "it cannot be decompressed");
    if (to_hex(hash_bytes(result)) != text_at(s, 0)) fail(where, "its digest does not match");
  });
  if (!found) fail(where, "there is no such row");
  return result;
}

std::map<std::string, uint64_t> Capture::referenced_files() const {
  std::map<std::string, uint64_t> bytes;
  if (files.empty()) return bytes;
  query("select path,size from files join blobs on blobs.id=files.blob", "files",
        [&](sqlite3_stmt* s, int64_t) {
          bytes[text_at(s, 0)] += static_cast<uint64_t>(sqlite3_column_int64(s, 1));
        });
  return bytes;
}

std::string Capture::find_file(const std::string& path) const {
  std::filesystem::path there(path), beside(name);
  beside.replace_filename(there.filename());
  std::error_code ignored;
  for (const std::filesystem::path& place : {there, beside}) {
    if (std::filesystem::is_regular_file(place, ignored)) return place.string();
  }
  return "";
}

std::string Capture::read_file(const std::string& where, const exec::FileRange& range,
                               int64_t size) const {
  std::string path = find_file(range.path);
  if (path.empty()) {
    fail(where, "\"" + range.path + "\" is missing, from which bytes " +
                    std::to_string(range.first) + " to " + std::to_string(range.first + size) +
                    " were loaded");
  }
  std::error_code error;
  auto length = static_cast<int64_t>(std::filesystem::file_size(path, error));
  std::string bytes;
  std::ifstream file(path, std::ios::binary);
  if (!error && range.first <= length && size <= length - range.first) {
    bytes.resize(static_cast<size_t>(size));
    file.seekg(range.first);
    file.read(bytes.data(), size);
  }
  if (!file || static_cast<int64_t>(bytes.size()) != size) {
    fail(where, "\"" + path + "\" has changed: it has no bytes " + std::to_string(range.first) +
                    " to " + std::to_string(range.first + size));
  }
  return bytes;
}

uint64_t Capture::number(const std::string& key) const {
  auto found = meta.find(key);
  return found == meta.end() ? 0 : std::strtoull(found->second.c_str(), nullptr, 10);
}

bool Capture::is_complete() const {
  auto state = meta.find("state");
  return state != meta.end() && state->second == "complete";
}

std::vector<std::string> Capture::recorded_ops() const {
  std::vector<std::string> names;
  const std::string prefix = "not hermetic: ";
  for (const auto& [key, value] : meta) {
    if (key.starts_with(prefix) && key != prefix + "contents") {
      names.push_back(key.substr(prefix.size()));
    }
  }
  return names;
}

std::string Capture::why_not() const {
  if (!is_complete()) {
    auto state = meta.find("state");
    return "it is not complete (" + (state == meta.end() ? "no state" : state->second) + ")";
  }
  if (number("contents") == 0) return "it has no contents of memory";
  for (const auto& [id, pipeline] : pipelines) {
    if (!pipeline.has_source) return "it has no source of the kernel \"" + pipeline.name + "\"";
    if (pipeline.includes_files) {
      return "the kernel \"" + pipeline.name + "\" includes files that are not in it";
    }
  }
  return "";
}

void Capture::read() {
  sqlite3_db_config(database_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  bool is_empty = true;
  query("select 1 from sqlite_master limit 1", "file",
        [&](sqlite3_stmt*, int64_t) { is_empty = false; });
  if (is_empty) fail("file", "it is empty: what made it was stopped before it began to write");
  // A view could say something else each time.
  query("select name from sqlite_master where rootpage=0 or type not in ('table','index')", "file",
        [&](sqlite3_stmt* s, int64_t) { fail("file", "\"" + text_at(s, 0) + "\" is no table"); });
  query("select key,value from meta", "meta",
        [&](sqlite3_stmt* s, int64_t) { meta[text_at(s, 0)] = text_at(s, 1); });
  uint64_t format = number("format");
  if (format == 0) fail("meta", "it does not say which format it has");
  if (format > static_cast<uint64_t>(exec::capture::format_version)) {
    fail("meta", "it has format " + std::to_string(format) +
                     ", made by a newer version; this one "
                     "reads up to " +
                     std::to_string(exec::capture::format_version));
  }
  bool has_files = false;
  query("select 1 from sqlite_master where type='table' and name='files'", "sqlite_master",
        [&](sqlite3_stmt*, int64_t) { has_files = true; });
  if (has_files) {
    query("select blob,path,first from files", "files", [&](sqlite3_stmt* s, int64_t row) {
      exec::FileRange range{text_at(s, 1), sqlite3_column_int64(s, 2)};
      if (range.first < 0 || range.first > INT64_MAX - largest_blob ||
          !range.path.starts_with('/') || range.path.find('\0') != std::string::npos) {
        fail("files row " + std::to_string(row), "it is no range of a file");
      }
      files[sqlite3_column_int64(s, 0)] = std::move(range);
    });
  }
  query("select stream,device,created from queues order by stream", "queues",
        [&](sqlite3_stmt* s, int64_t) {
          queues.push_back(
              {sqlite3_column_int(s, 0), text_at(s, 1) == "gpu", sqlite3_column_int(s, 2) != 0});
        });
  query("select id,name,key,description from pipelines", "pipelines",
        [&](sqlite3_stmt* s, int64_t row) {
          Pipeline pipeline;
          pipeline.id = static_cast<uint64_t>(sqlite3_column_int64(s, 0));
          pipeline.name = text_at(s, 1);
          pipeline.key = text_at(s, 2);
          std::string text = blob(sqlite3_column_int64(s, 3));
          if (!text.empty()) {
            ByteReader in(text);
            pipeline.has_source = true;
            pipeline.name = in.text();
            pipeline.entry = in.text();
            pipeline.source = in.text();
            pipeline.math = in.value_up_to<uint8_t>(2);
            pipeline.variant = in.value_up_to<uint8_t>(2);
            pipeline.includes_files = in.boolean();
            pipeline.constants = exec::read_constants(in, format == 1 ? 1 : 4);
            if (!in.is_done()) fail("pipelines row " + std::to_string(row), "it is damaged");
          }
          pipelines[pipeline.id] = std::move(pipeline);
        });
  query("select id,events from memory order by id", "memory",
        [&](sqlite3_stmt* s, int64_t row) { read_memory(row, blob(sqlite3_column_int64(s, 1))); });
  read_lists();
  std::unordered_map<int64_t, const List*> by_id;
  for (const List& list : lists) by_id[list.id] = &list;
  auto check = [&](const char* table, int64_t row, int64_t list, int64_t command, uint64_t buffer,
                   int64_t begin, int64_t end) {
    std::string where = std::string(table) + " row " + std::to_string(row);
    auto found = by_id.find(list);
    if (found == by_id.end()) {
      if (!is_complete()) return false;
      fail(where, "there is no list " + std::to_string(list));
    }
    if (command < 0 || command >= static_cast<int64_t>(found->second->commands.size())) {
      fail(where, "list " + std::to_string(list) + " has no command " + std::to_string(command));
    }
    const Buffer* known = used_buffer(buffer, end);
    if (!known) fail(where, "there is no buffer " + std::to_string(buffer));
    if (begin < 0 || end < begin || static_cast<uint64_t>(end) > known->size) {
      fail(where, "bytes " + std::to_string(begin) + " to " + std::to_string(end) +
                      " are not inside buffer " + std::to_string(buffer));
    }
    return true;
  };
  query(
      "select moment,list,command,buffer,first,bytes,size from contents join blobs on "
      "blobs.id=contents.bytes order by contents.rowid",
      "contents", [&](sqlite3_stmt* s, int64_t row) {
        Contents c;
        int moment = sqlite3_column_int(s, 0);
        if (moment < 0 || moment > 2) {
          fail("contents row " + std::to_string(row),
               "there is no moment " + std::to_string(moment));
        }
        c.moment = static_cast<Moment>(moment);
        c.list = sqlite3_column_int64(s, 1);
        c.command = sqlite3_column_int64(s, 2);
        c.buffer = static_cast<uint64_t>(sqlite3_column_int64(s, 3));
        c.begin = sqlite3_column_int64(s, 4);
        c.blob = sqlite3_column_int64(s, 5);
        c.size = sqlite3_column_int64(s, 6);
        if (c.size < 0 || c.size > largest_blob || c.begin > largest_blob) {
          fail("contents row " + std::to_string(row), "it is larger than any buffer");
        }
        if (check("contents", row, c.list, c.command, c.buffer, c.begin, c.begin + c.size)) {
          contents.push_back(c);
        }
      });
  query("select list,command,buffer,first,last,digest from digests order by rowid", "digests",
        [&](sqlite3_stmt* s, int64_t row) {
          Digest d;
          d.list = sqlite3_column_int64(s, 0);
          d.command = sqlite3_column_int64(s, 1);
          d.buffer = static_cast<uint64_t>(sqlite3_column_int64(s, 2));
          d.begin = sqlite3_column_int64(s, 3);
          d.end = sqlite3_column_int64(s, 4);
          d.digest = text_at(s, 5);
          if (check("digests", row, d.list, d.command, d.buffer, d.begin, d.end)) {
            digests.push_back(std::move(d));
          }
        });
}

void Capture::read_memory(int64_t row, const std::string& events) {
  ByteReader in(events);
  while (in.ok() && !in.is_done()) {
    auto kind = in.value_up_to<uint8_t>(2);
    auto time = in.value<int64_t>();
    auto id = in.value<uint64_t>();
    Buffer& buffer = buffers[id];
    buffer.id = id;
    auto size = in.value<uint64_t>();
    buffer.stream = in.value<int32_t>();
    std::string_view op = in.text(), label = in.text();
    if (kind == 2) {
      buffer.retired = time;
      continue;
    }
    buffer.size = size;
    buffer.has_size = true;
    buffer.op = op;
    buffer.label = label;
    if (kind == 0) buffer.created = time;
  }
  if (!in.ok()) fail("memory row " + std::to_string(row), "it is damaged");
}

const Buffer* Capture::used_buffer(uint64_t id, int64_t end) {
  auto found = buffers.find(id);
  if (found != buffers.end() && found->second.has_size) return &found->second;
  if (is_complete()) return nullptr;
  Buffer& buffer = buffers[id];
  buffer.id = id;
  buffer.size = std::max(buffer.size, static_cast<uint64_t>(std::max<int64_t>(end, 0)));
  return &buffer;
}

void Capture::read_lists() {
  query("select id,sequence,stream,serial,commands,times from lists order by sequence", "lists",
        [&](sqlite3_stmt* s, int64_t row) {
          List& list = lists.emplace_back();
          list.id = sqlite3_column_int64(s, 0);
          list.sequence = sqlite3_column_int64(s, 1);
          list.stream = sqlite3_column_int(s, 2);
          list.serial = sqlite3_column_int64(s, 3);
          bool known = std::any_of(queues.begin(), queues.end(),
                                   [&](const Queue& q) { return q.stream == list.stream; });
          if (!known) {
            fail("lists row " + std::to_string(row),
                 "there is no queue " + std::to_string(list.stream));
          }
          list.first_number = commands;
          read_list(row, list, blob(sqlite3_column_int64(s, 4)), blob(sqlite3_column_int64(s, 5)));
          commands += static_cast<int64_t>(list.commands.size());
        });
}

void Capture::read_list(int64_t row, List& list, const std::string& text,
                        const std::string& times) {
  std::string where = "lists row " + std::to_string(row);
  const bool has_errors = number("format") >= 3;
  ByteReader in(text);
  list.committed = in.value<int64_t>();
  for (size_t i = in.count(12); i > 0 && in.ok(); --i) {
    List::Wait wait{};
    wait.stream = in.value<int32_t>();
    wait.serial = in.value<uint64_t>();
    list.waits.push_back(wait);
  }
  for (size_t i = in.count(17); i > 0 && in.ok(); --i) {
    Op& op = list.ops.emplace_back();
    op.first_command = in.value<uint32_t>();
    op.command_count = in.value<uint32_t>();
    op.replay = static_cast<exec::NotedOp::Replay>(in.value_up_to<uint8_t>(2));
    op.text = in.text();
  }
  size_t count = in.count(50);
  for (size_t i = 0; i < count && in.ok(); ++i) {
    std::string place = where + ", command " + std::to_string(i);
    Command& command = list.commands.emplace_back();
    auto kind = in.value<uint8_t>();
    if (kind > static_cast<uint8_t>(Command::Kind::dispatch)) {
      // What other tools record: a queue's state among its commands, to be done again with each
      // pass until the limit of sets is exceeded.
      fail(place, kind == 4
                      ? "it attaches a residency set: residency is state of a queue, recorded "
                        "once, and never a command"
                      : "there is no kind of command " + std::to_string(kind));
    }
    command.kind = static_cast<Command::Kind>(kind);
    command.op = in.text();
    command.detail = in.text();
    command.label = in.text();
    command.work = in.value<int64_t>();
    command.tasks = in.value<int64_t>();
    for (size_t k = in.count(25); k > 0 && in.ok(); --k) {
      Binding& binding = command.bindings.emplace_back();
      binding.buffer = in.value<uint64_t>();
      binding.begin = in.value<int64_t>();
      binding.end = in.value<int64_t>();
      binding.writes = in.boolean();
      if (!in.ok()) break;
      const Buffer* known = used_buffer(binding.buffer, binding.end);
      if (!known) fail(place, "there is no buffer " + std::to_string(binding.buffer));
      if (binding.begin < 0 || binding.end < binding.begin ||
          static_cast<uint64_t>(binding.end) > known->size) {
        fail(place, "it binds bytes " + std::to_string(binding.begin) + " to " +
                        std::to_string(binding.end) + " of buffer " +
                        std::to_string(binding.buffer) + ", which has " +
                        std::to_string(known->size));
      }
    }
    for (size_t k = in.count(5); k > 0 && in.ok(); --k) {
      exec::Edge edge{};
      edge.predecessor = in.value<uint32_t>();
      edge.kind = static_cast<exec::Edge::Kind>(in.value_up_to<uint8_t>(1));
      if (in.ok() && edge.predecessor >= i) {
        fail(place, "it comes after command " + std::to_string(edge.predecessor));
      }
      command.edges.push_back(edge);
    }
    auto find_binding = [&](Place& at, uint64_t bytes, auto&& may_be) {
      for (uint32_t index = 0; index < command.bindings.size(); ++index) {
        const Binding& binding = command.bindings[index];
        if (binding.buffer != at.buffer || !may_be(binding) || at.offset < binding.begin ||
            at.offset > binding.end || bytes > static_cast<uint64_t>(binding.end - at.offset)) {
          continue;
        }
        at.binding = index;
        return true;
      }
      return false;
    };
    // What a command touches beside its bindings' ranges is not its own.
    auto check = [&](bool is_bound) {
      if (in.ok() && !is_bound) fail(place, "it touches bytes that it does not bind");
    };
    auto is_read = [](const Binding& binding) { return !binding.writes; };
    auto is_written = [](const Binding& binding) { return binding.writes; };
    auto is_any = [](const Binding&) { return true; };
    switch (command.kind) {
      case Command::Kind::native:
        break;
      case Command::Kind::copy:
        command.source = read_place(in);
        command.target = read_place(in);
        command.bytes = in.value<uint64_t>();
        check(find_binding(command.source, command.bytes, is_read));
        check(find_binding(command.target, command.bytes, is_written));
        break;
      case Command::Kind::fill:
        command.pattern = in.text();
        command.target = read_place(in);
        command.bytes = in.value<uint64_t>();
        check(find_binding(command.target, command.bytes, is_written));
        if (in.ok() && (command.pattern.empty() || command.pattern.size() > 16 ||
                        (command.pattern.size() & (command.pattern.size() - 1)) != 0)) {
          fail(place, "its pattern has " + std::to_string(command.pattern.size()) + " bytes");
        }
        break;
      case Command::Kind::dispatch:
        command.pipeline = in.value<uint64_t>();
        for (uint32_t& size : command.grid) size = in.value<uint32_t>();
        for (uint32_t& size : command.threadgroup) size = in.value<uint32_t>();
        for (size_t k = in.count(28); k > 0 && in.ok(); --k) {
          Argument& argument = command.arguments.emplace_back();
          argument.bytes = in.value<uint32_t>();
          argument.value = in.text();
          argument.place = read_place(in);
          if (has_errors) argument.errors = in.text();
          if (argument.place.buffer == 0) continue;
          // One may end where another begins; without elements it may be at the end of all.
          check(find_binding(argument.place, 1, is_any) || find_binding(argument.place, 0, is_any));
        }
        if (in.ok() && !pipelines.contains(command.pipeline)) {
          fail(place, "there is no pipeline " + std::to_string(command.pipeline));
        }
        break;
    }
  }
  if (!in.is_done()) fail(where, "it is damaged");
  size_t next = 0;
  // Without contents nothing is run again, and there may be no ops.
  if (list.ops.empty() && number("contents") == 0) next = count;
  for (const Op& op : list.ops) {
    if (op.first_command != next || op.command_count > count - next) {
      fail(where, "its ops do not follow each other");
    }
    next += op.command_count;
  }
  if (next != count) fail(where, "its ops do not follow each other");
  ByteReader clock(times);
  for (Command& command : list.commands) {
    command.start = clock.value<int64_t>();
    command.end = clock.value<int64_t>();
    command.thread = clock.value<int32_t>();
    command.failed = clock.boolean();
    if (command.start < 0 || command.end < command.start) {
      fail(where, "a command ends before it starts");
    }
  }
  if (!clock.is_done()) fail(where, "its times are damaged");
}

}  // namespace holdfast::capture
