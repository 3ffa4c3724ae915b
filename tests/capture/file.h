// Files of captures, for tests.
#pragma once

#include <doctest/doctest.h>

#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <holdfast/holdfast.h>

#include "capture/replay.h"

namespace holdfast::testing {

using capture::Capture;

class File {
 public:
  explicit File(const std::string& name)
      : path((std::filesystem::temp_directory_path() /
              ("holdfast-" + std::to_string(::getpid()) + "-" + name + ".hfcap"))
                 .string()) {}
  ~File() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  const std::string path;

  void change(const std::string& sql) const {
    sqlite3* database = nullptr;
    REQUIRE(sqlite3_open(path.c_str(), &database) == SQLITE_OK);
    CHECK(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(database);
  }
  // What a query gives: one number.
  int64_t number(const std::string& sql) const {
    sqlite3* database = nullptr;
    REQUIRE(sqlite3_open(path.c_str(), &database) == SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    REQUIRE(sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK);
    REQUIRE(sqlite3_step(statement) == SQLITE_ROW);
    const int64_t result = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return result;
  }
  std::string error() const {
    try {
      capture::replay(Capture(path));
      return "";
    } catch (const std::exception& e) {
      return e.what();
    }
  }
};

// Captures what `work` does.
template <class Work>
void record(const File& file, Work&& work, metal::CaptureOptions options = {}) {
  metal::start_capture(file.path, options);
  work();
  metal::stop_capture();
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace holdfast::testing
