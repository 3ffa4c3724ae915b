// CaptureFile: a .hfcap file being written. The schema is in docs/capture.md. One thread writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/hash.h"
#include "exec/file_origins.h"

struct sqlite3;
struct ZSTD_CCtx_s;
struct sqlite3_stmt;

namespace holdfast::exec::capture {

// Of the file; a reader refuses a newer one.
//   1  function constants have one word of value, and no contents are in other files
//   2  four words; a table `files`, where there are some
//   3  arguments of dispatches have texts of errors
constexpr int format_version = 3;

// When bytes of a buffer have to be written by a replay.
enum class Moment : int {
  start = 0,   // before everything: what was there before the capture
  before = 1,  // before the command: the host wrote
  after = 2,   // after the last command of an op that cannot be run again: what it wrote
};

// Every function throws std::runtime_error, with SQLite's reason, when it cannot write.
class CaptureFile {
 public:
  // Makes the file, with its format and the state "recording"; one that is there is emptied.
  // `max_bytes`: 0, or when to say that it is full.
  CaptureFile(const std::string& path, uint64_t max_bytes);
  ~CaptureFile();
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  void begin();
  void commit();
  void meta(const std::string& key, const std::string& value);
  // The row of the bytes, compressed; equal bytes are one row.
  int64_t blob(std::string_view bytes);
  void list(int64_t id, int64_t sequence, int stream, int64_t serial, std::string_view commands,
            std::string_view times);
  // Where the range of a file has the same bytes, it is named instead.
  void contents(Moment moment, int64_t list, int64_t command, int64_t buffer, int64_t begin,
                std::string_view bytes, const std::optional<FileRange>& from = {});
  void digest(int64_t list, int64_t command, int64_t buffer, int64_t begin, int64_t end,
              const Hash128& hash);
  void pipeline(int64_t id, const std::string& name, const std::string& key_hash,
                std::string_view description);
  void queue(int stream, const std::string& device, bool created_while_capturing);
  void memory(std::string_view events);

 private:
  // The row that names the range in place of the bytes; none where the range has others.
  std::optional<int64_t> reference(std::string_view bytes, const FileRange& range);
  void run(const char* sql);
  sqlite3_stmt* prepare(const char* sql);
  [[noreturn]] void fail(const char* doing);
  void close();
  bool make_empty();
  template <class... Values>
  void insert(sqlite3_stmt* statement, const Values&... values);

  std::string path_;
  sqlite3* database_ = nullptr;
  sqlite3_stmt *meta_ = nullptr, *blob_ = nullptr, *list_ = nullptr, *contents_ = nullptr,
               *digest_ = nullptr, *pipeline_ = nullptr, *queue_ = nullptr, *memory_ = nullptr,
               *file_ = nullptr;
  // By digest and size: rows with bytes, and those that name a file, which only contents may.
  std::unordered_map<std::string, int64_t> blobs_, references_;
  ZSTD_CCtx_s* compressor_;
  std::string packed_;
};

}  // namespace holdfast::exec::capture
