#include "exec/layers/validation/reporter.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

namespace holdfast::validation {
namespace {

// Fields that say what is wrong with the program; the others (identities, serials, places) change
// from one time that it happens to the next.
bool tells_apart(const std::string& field) {
  static constexpr const char* names[] = {
      "id",           "op",           "label",         "command",        "kernel",
      "other_op",     "other_label",  "other_command", "argument",       "other_kernel",
      "buffer_op",    "buffer_label", "pipeline",      "other_argument", "source",
      "signature",    "array",        "line",          "column",         "other_line",
      "other_column", "path",         "stream",        "other_stream"};
  return std::any_of(std::begin(names), std::end(names), [&](auto name) { return field == name; });
}

std::string key_of(const Report& report) {
  std::string key;
  for (const auto& [name, value] : report.fields) {
    if (tells_apart(name)) key += name + "=" + value + "\n";
  }
  return key;
}

std::string json_string(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
      result += escape;
    } else {
      result += c;
    }
  }
  return result + "\"";
}

// A value with blanks is quoted, so that the line can be taken apart.
std::string block_value(const std::string& text) {
  bool is_plain = !text.empty() && text.find_first_of(" \t\n\"=") == std::string::npos;
  return is_plain ? text : json_string(text);
}

}  // namespace

std::string Report::field(const std::string& name) const {
  for (const auto& [key, value] : fields) {
    if (key == name) return value;
  }
  return "";
}

std::string Report::text() const {
  std::string result = std::string("[validation] ") + name_of(severity) + ": " + sentence +
                       "\n  what to do: " + advice + "\n ";
  for (const auto& [key, value] : fields) result += " " + key + "=" + block_value(value);
  return result + "\n";
}

std::string Report::json() const {
  std::string result = "{";
  for (const auto& [key, value] : fields) {
    result += json_string(key) + ":" + json_string(value) + ",";
  }
  return result + "\"sentence\":" + json_string(sentence) + ",\"advice\":" + json_string(advice) +
         "}";
}

ValidationError::ValidationError(Report report)
    : std::runtime_error(report.text()),
      report_(std::make_shared<const Report>(std::move(report))) {}

Reporter::Reporter(const Options& options, const std::string& ignore_name)
    : mode_(options.mode),
      print_(options.print || options.mode == Mode::abort),
      ignored_(parse_identifiers(options.ignore, ignore_name)),
      json_path_(options.json) {
  if (options.json.empty()) return;
  json_ = std::fopen(options.json.c_str(), "a");
  if (!json_) throw std::runtime_error("[validation] cannot write \"" + options.json + "\"");
}

Reporter::~Reporter() {
  if (json_) std::fclose(json_);
}

bool Reporter::take(const Report& report) {
  if (std::find(ignored_.begin(), ignored_.end(), report.id) != ignored_.end()) return false;
  bool is_error = report.severity == Severity::error;
  {
    std::lock_guard guard(mutex_);
    auto [place, is_new] = known_.emplace(key_of(report), reports_.size());
    if (is_new) {
      reports_.push_back(report);
      if (print_) std::fputs(report.text().c_str(), stderr);
      if (json_ && (std::fprintf(json_, "%s\n", report.json().c_str()) < 0 || std::fflush(json_))) {
        std::fprintf(stderr, "[validation] \"%s\" is not complete: it cannot be written\n",
                     json_path_.c_str());
        std::fclose(std::exchange(json_, nullptr));
      }
    } else {
      ++reports_[place->second].count;
    }
  }
  if (is_error && mode_ == Mode::abort) std::abort();
  return is_error && mode_ == Mode::throw_error;
}

std::vector<Report> Reporter::reports() const {
  std::lock_guard guard(mutex_);
  return reports_;
}

std::string Reporter::summary() const {
  std::lock_guard guard(mutex_);
  if (reports_.empty()) return "";
  std::map<std::string, std::pair<uint64_t, uint64_t>> kinds;  // reports, times
  uint64_t times = 0;
  for (const Report& report : reports_) {
    ++kinds[report.id].first;
    kinds[report.id].second += report.count;
    times += report.count;
  }
  std::string text = "[validation] " + std::to_string(reports_.size()) + " reports, " +
                     std::to_string(times) + " times in all:\n";
  for (const auto& [id, counts] : kinds) {
    text += "  " + id + ": " + std::to_string(counts.first) + " (" + std::to_string(counts.second) +
            " times)\n";
  }
  return text;
}

}  // namespace holdfast::validation
