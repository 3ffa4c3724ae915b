// Reporter: what happens to a report. It is filtered, counted once for each kind between the same
// ops, kept, printed, written as JSON, thrown.
#pragma once

#include <cstdio>
#include <string>
#include <unordered_map>
#include <vector>

#include <holdfast/validation.h>

#include "base/sync.h"
#include "exec/layers/validation/checks.h"

namespace holdfast::validation {

class Reporter {
 public:
  // Throws std::invalid_argument for unknown identifiers, std::runtime_error when the JSON file
  // cannot be written.
  Reporter(const Options& options, const std::string& ignore_name);
  ~Reporter();

  // Takes a report, from any thread; true when it has to be thrown: an error in mode throw_error.
  bool take(const Report& report);

  std::vector<Report> reports() const;
  // A line that counts the reports, and a line for each kind; empty when there are none.
  std::string summary() const;

 private:
  const Mode mode_;
  const bool print_;
  const std::vector<std::string> ignored_;
  const std::string json_path_;
  mutable sync::Mutex mutex_;
  // Guarded by mutex_.
  std::vector<Report> reports_;
  std::unordered_map<std::string, size_t> known_;  // to the place in reports_
  std::FILE* json_ = nullptr;                      // null as well once it could not be written
};

}  // namespace holdfast::validation
