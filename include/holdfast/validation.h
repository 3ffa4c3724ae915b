// Validation: finds what a program does wrong with buffers, kernels and streams, in the first run
// that contains it. On for a whole program with HOLDFAST_VALIDATE=1, or for a stretch of it with a
// Scope. docs/validation.md lists the checks.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::validation {

// A note is of something that may be as it should be: it is never thrown.
enum class Severity : uint8_t { warning, error, note };

// Something that was found. Sentences may change from version to version; `id` and the names of
// `fields` do not, so that programs read only those.
struct Report {
  std::string id;  // "check.kind", for example "lifetime.buffer-released"
  Severity severity = Severity::error;
  std::string sentence;  // what happened, between whom
  std::string advice;    // what to do about it
  std::vector<std::pair<std::string, std::string>> fields;
  uint64_t count = 1;  // how often it was found: the same kind between the same ops, once reported

  // The value of a field; empty when there is none.
  std::string field(const std::string& name) const;
  // Sentence, advice, and the fields as "key=value" on a line.
  std::string text() const;
  // One line.
  std::string json() const;
};

enum class Mode : uint8_t {
  report,       // kept, and printed where Options::print says so
  throw_error,  // also thrown as ValidationError: by the call that does it, where there is one;
                // what a kernel does, by whoever waits for its outputs; the rest by the next
                // `synchronize` of the stream. Warnings are not thrown
  abort,        // printed, and the process ends with SIGABRT. Warnings are only printed
};

class ValidationError : public std::runtime_error {
 public:
  explicit ValidationError(Report report);
  const Report& report() const { return *report_; }

 private:
  std::shared_ptr<const Report> report_;
};

struct Options {
  // Names of checks with commas, or "1" for all but those that must be asked for by name.
  std::string checks = "1";
  Mode mode = Mode::report;
  // Identifiers of reports that are not wanted, with commas.
  std::string ignore = {};
  bool print = false;     // to stderr, when it is found
  std::string json = {};  // a file that gets a line for each report; empty: none
};

// While it lives, the whole process is validated, all its threads. Buffers and commands that are
// older than the scope are not known to it and never reported. One at a time: a second scope throws
// std::logic_error. Unknown names of checks and identifiers throw std::invalid_argument.
class Scope {
 public:
  explicit Scope(Options options = {});
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // Reports what would be left over if the program ended now, as at its end: a capture that was not
  // stopped, streams with work that nobody waited for, waits for events with nothing behind them.
  void check_left_over();

  // What was found so far, in order, each kind between the same ops once.
  std::vector<Report> reports() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::validation
