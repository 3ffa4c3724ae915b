#include "exec/layers/capture/capture_file.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "base/replaced_file.h"

namespace holdfast::exec::capture {
namespace {

constexpr const char* schema = R"(
create table meta(key text primary key, value text not null) without rowid;
create table blobs(id integer primary key, digest text not null, size integer not null, data blob);
create table queues(stream integer primary key, device text not null, created integer not null);
create table pipelines(id integer primary key, name text not null, key text not null, description integer not null);
create table lists(id integer primary key, sequence integer not null, stream integer not null, serial integer not null,
                   commands integer not null, times integer not null);
create table contents(moment integer not null, list integer not null, command integer not null,
                      buffer integer not null, first integer not null, bytes integer not null);
create table digests(list integer not null, command integer not null, buffer integer not null,
                     first integer not null, last integer not null, digest text not null);
create table memory(id integer primary key, events integer not null);
)";

}  // namespace

CaptureFile::CaptureFile(const std::string& path, uint64_t max_bytes)
    : path_(path), compressor_(ZSTD_createCCtx()) {
  const bool is_new = make_empty();
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  try {
    if (sqlite3_open_v2(path.c_str(), &database_, flags, nullptr) != SQLITE_OK) fail("open");
    run("pragma page_size=16384");
    // A process that dies leaves a journal, and the file as it was at the last commit. A machine
    // that dies may leave a damaged one: it is only a capture.
    run("pragma journal_mode=truncate");
    run("pragma synchronous=off");
    if (max_bytes > 0) {
      run(("pragma max_page_count=" + std::to_string(std::max<uint64_t>(max_bytes / 16384, 1)))
              .c_str());
    }
    // What the file is, and that it is not complete, is in it before anything else or with it.
    begin();
    run(schema);
    meta_ = prepare("insert or replace into meta values(?,?)");
    blob_ = prepare("insert into blobs(digest,size,data) values(?,?,?)");
    list_ = prepare("insert into lists values(?,?,?,?,?,?)");
    contents_ = prepare("insert into contents values(?,?,?,?,?,?)");
    digest_ = prepare("insert into digests values(?,?,?,?,?,?)");
    pipeline_ = prepare("insert into pipelines values(?,?,?,?)");
    queue_ = prepare("insert or ignore into queues values(?,?,?)");
    memory_ = prepare("insert into memory(events) values(?)");
    meta("format", std::to_string(format_version));
    meta("state", "recording");
    commit();
  } catch (...) {
    close();
    if (is_new) ::unlink(base::followed_links(path).value_or(path).c_str());  // nothing is in it
    throw;
  }
}

// What is there may be no database, which SQLite would not touch. A file is emptied and not made
// anew: its links, mode and owner stay. Is there none?
bool CaptureFile::make_empty() {
  struct stat state;
  if (path_.empty() || ::stat(path_.c_str(), &state) != 0) return !path_.empty();
  const char* reason = nullptr;
  if (!S_ISREG(state.st_mode))
    reason = "expected a regular file, got a folder, a pipe or a device";
  else if (::truncate(path_.c_str(), 0) != 0)
    reason = std::strerror(errno);
  if (!reason) return false;
  std::string problem = "[capture] cannot write \"" + path_ + "\": " + reason;
  ZSTD_freeCCtx(compressor_);
  throw std::runtime_error(problem);
}

CaptureFile::~CaptureFile() { close(); }

void CaptureFile::close() {
  for (sqlite3_stmt* s :
       {meta_, blob_, list_, contents_, digest_, pipeline_, queue_, memory_, file_}) {
    sqlite3_finalize(s);
  }
  // Takes the journal away; where it cannot, the file is no worse for it.
  for (const char* sql : {"rollback", "pragma journal_mode=delete"}) {
    sqlite3_exec(database_, sql, nullptr, nullptr, nullptr);
  }
  sqlite3_close(database_);
  ZSTD_freeCCtx(compressor_);
}

void CaptureFile::fail(const char* doing) {
  throw std::runtime_error(std::string("[capture] cannot ") + doing + " \"" + path_ +
                           "\": " + (database_ ? sqlite3_errmsg(database_) : "no memory"));
}

void CaptureFile::run(const char* sql) {
  if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail("write");
}

sqlite3_stmt* CaptureFile::prepare(const char* sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr) != SQLITE_OK) fail("write");
  return statement;
}

namespace {

void bind(sqlite3_stmt* s, int place, int64_t value) { sqlite3_bind_int64(s, place, value); }
void bind(sqlite3_stmt* s, int place, const std::string& text) {
  sqlite3_bind_text(s, place, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
}
struct Bytes {
  const void* data;
  size_t size;
};
void bind(sqlite3_stmt* s, int place, const Bytes& bytes) {
  sqlite3_bind_blob64(s, place, bytes.data, bytes.size, SQLITE_STATIC);
}

void bind(sqlite3_stmt* s, int place, std::nullptr_t) { sqlite3_bind_null(s, place); }

// Smaller ones are not worth a file that must be there.
constexpr size_t worth_referring = 4096;

// Are the bytes in the file, from there on?
bool has_bytes(const FileRange& range, std::string_view bytes) {
  std::ifstream file(range.path, std::ios::binary);
  file.seekg(range.first);
  std::vector<char> block(std::min(bytes.size(), size_t{1} << 20));
  for (size_t at = 0; at < bytes.size(); at += block.size()) {
    size_t size = std::min(block.size(), bytes.size() - at);
    if (!file.read(block.data(), static_cast<std::streamsize>(size))) return false;
    if (std::memcmp(block.data(), bytes.data() + at, size) != 0) return false;
  }
  return true;
}

std::string key_of(const std::string& digest, std::string_view bytes) {
  return digest + " " + std::to_string(bytes.size());
}

}  // namespace

template <class... Values>
void CaptureFile::insert(sqlite3_stmt* statement, const Values&... values) {
  int place = 0;
  (bind(statement, ++place, values), ...);
  int result = sqlite3_step(statement);
  sqlite3_reset(statement);
  if (result != SQLITE_DONE) fail("write");
}

void CaptureFile::begin() { run("begin"); }
void CaptureFile::commit() { run("commit"); }

void CaptureFile::meta(const std::string& key, const std::string& value) {
  insert(meta_, key, value);
}

std::optional<int64_t> CaptureFile::reference(std::string_view bytes, const FileRange& range) {
  if (bytes.size() < worth_referring) return std::nullopt;
  std::string digest = to_hex(hash_bytes(bytes)), key = key_of(digest, bytes);
  if (auto known = references_.find(key); known != references_.end()) return known->second;
  if (!has_bytes(range, bytes)) return std::nullopt;
  if (!file_) {
    // Only where there is a row for it: an empty table is a page of the file.
    run("create table files(blob integer primary key, path text not null, first integer not "
        "null)");
    file_ = prepare("insert into files values(?,?,?)");
  }
  insert(blob_, digest, static_cast<int64_t>(bytes.size()), nullptr);
  int64_t row = sqlite3_last_insert_rowid(database_);
  insert(file_, row, range.path, range.first);
  return references_[key] = row;
}

int64_t CaptureFile::blob(std::string_view bytes) {
  std::string digest = to_hex(hash_bytes(bytes));
  auto [place, is_new] = blobs_.try_emplace(key_of(digest, bytes), 0);
  if (!is_new) return place->second;
  packed_.resize(std::max(packed_.size(), ZSTD_compressBound(bytes.size())));
  size_t size =
      ZSTD_compressCCtx(compressor_, packed_.data(), packed_.size(), bytes.data(), bytes.size(), 1);
  if (ZSTD_isError(size)) {
    throw std::runtime_error(std::string("[capture] cannot compress: ") + ZSTD_getErrorName(size));
  }
  insert(blob_, digest, static_cast<int64_t>(bytes.size()), Bytes{packed_.data(), size});
  return place->second = sqlite3_last_insert_rowid(database_);
}

void CaptureFile::list(int64_t id, int64_t sequence, int stream, int64_t serial,
                       std::string_view commands, std::string_view times) {
  insert(list_, id, sequence, int64_t{stream}, serial, blob(commands), blob(times));
}

void CaptureFile::contents(Moment moment, int64_t list, int64_t command, int64_t buffer,
                           int64_t begin, std::string_view bytes,
                           const std::optional<FileRange>& from) {
  std::optional<int64_t> row;
  if (from) row = reference(bytes, *from);
  if (!row) row = blob(bytes);
  insert(contents_, static_cast<int64_t>(moment), list, command, buffer, begin, *row);
}

void CaptureFile::digest(int64_t list, int64_t command, int64_t buffer, int64_t begin, int64_t end,
                         const Hash128& hash) {
  insert(digest_, list, command, buffer, begin, end, to_hex(hash));
}

void CaptureFile::pipeline(int64_t id, const std::string& name, const std::string& key_hash,
                           std::string_view description) {
  insert(pipeline_, id, name, key_hash, blob(description));
}

void CaptureFile::queue(int stream, const std::string& device, bool created_while_capturing) {
  insert(queue_, int64_t{stream}, device, int64_t{created_while_capturing});
}

void CaptureFile::memory(std::string_view events) { insert(memory_, blob(events)); }

}  // namespace holdfast::exec::capture
