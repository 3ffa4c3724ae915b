// `holdfast trace`: looks at captures, and runs them again.
#include "tools/holdfast/trace_command.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>

#include <holdfast/validation.h>

#include "capture/replay.h"
#include "tools/holdfast/commands.h"

namespace holdfast::tool {
namespace {

using capture::Capture;

int64_t integer(const std::string& text, const char* what) {
  char* end = nullptr;
  long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 0) {
    throw UsageError(std::string(what) + " must be a number from 0, got \"" + text + "\"");
  }
  return value;
}

// Takes `--name VALUE` out of the words.
std::optional<std::string> take_option(std::vector<std::string>& words, const std::string& name) {
  auto found = std::find(words.begin(), words.end(), name);
  if (found == words.end()) return std::nullopt;
  if (found + 1 == words.end()) throw UsageError(name + " needs a value");
  std::string value = *(found + 1);
  words.erase(found, found + 2);
  return value;
}

bool take_flag(std::vector<std::string>& words, const std::string& name) {
  return std::erase(words, name) > 0;
}

void expect(const std::vector<std::string>& words, size_t count) {
  for (const std::string& word : words) {
    if (word.starts_with("--")) throw UsageError("unknown argument \"" + word + "\"");
  }
  if (words.size() != count) {
    throw UsageError("expected " + std::to_string(count) + " arguments, got " +
                     std::to_string(words.size()));
  }
}

int run_replay(std::vector<std::string> words) {
  capture::ReplayOptions options;
  if (auto device = take_option(words, "--device"); device && *device != "cpu") {
    throw UsageError("--device must be cpu, got \"" + *device + "\"");
  }
  if (auto passes = take_option(words, "--passes")) options.passes = integer(*passes, "--passes");
  if (auto only = take_option(words, "--only")) {
    size_t dots = only->find("..");
    if (dots == std::string::npos) throw UsageError("--only must be A..B, got \"" + *only + "\"");
    options.first = integer(only->substr(0, dots), "--only");
    options.last = integer(only->substr(dots + 2), "--only");
  }
  bool bench = take_flag(words, "--bench");
  bool validate = take_flag(words, "--validate");
  expect(words, 1);
  Capture capture(words[0]);
  std::optional<validation::Scope> validator;
  if (validate) validator.emplace();
  capture::ReplayResult result = capture::replay(capture, options);
  std::vector<validation::Report> reports;
  if (validator) reports = validator->reports();
  validator.reset();
  std::printf("%lld passes of %lld commands, %lld digests compared\n",
              static_cast<long long>(result.passes), static_cast<long long>(result.commands),
              static_cast<long long>(result.checked));
  if (capture.digests.empty()) std::printf("the capture has no digests: nothing was checked\n");
  for (const std::string& name : capture.recorded_ops()) {
    std::printf("not run, its results are as recorded: %s\n", name.c_str());
  }
  if (result.most_wired > 0) {
    std::printf("wired: up to %zu bytes in %zu sets\n", result.most_wired, result.most_sets);
  }
  if (bench && !result.seconds.empty()) {
    std::vector<double> sorted = result.seconds;
    std::sort(sorted.begin(), sorted.end());
    std::printf("a pass: best %.3f ms, median %.3f ms\n", sorted.front() * 1e3,
                sorted[sorted.size() / 2] * 1e3);
    std::vector<std::pair<double, std::string>> by_op;
    for (const auto& [op, seconds] : result.seconds_by_op) by_op.emplace_back(seconds, op);
    std::sort(by_op.rbegin(), by_op.rend());
    for (const auto& [seconds, op] : by_op) {
      std::printf("  %-28s %10.3f ms a pass\n", op.c_str(),
                  seconds * 1e3 / static_cast<double>(result.passes));
    }
  }
  bool is_invalid = false;
  for (const validation::Report& report : reports) {
    std::printf("%s\n", report.text().c_str());
    is_invalid = is_invalid || report.severity == validation::Severity::error;
  }
  if (validate && reports.empty()) std::printf("validated: nothing was found\n");
  if (result.differences.empty()) {
    if (result.checked > 0) std::printf("bit for bit the same\n");
    return is_invalid ? 1 : 0;
  }
  const capture::Difference& first = result.differences.front();
  std::printf(
      "DIFFERS: %zu of %lld passes; first in pass %lld, command %lld (%s%s%s), buffer %llu\n",
      result.differences.size(), static_cast<long long>(result.passes),
      static_cast<long long>(first.pass), static_cast<long long>(first.number), first.op.c_str(),
      first.label.empty() ? "" : ", ", first.label.c_str(),
      static_cast<unsigned long long>(first.buffer));
  return 1;
}

}  // namespace

void write_text_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("[trace] cannot write \"" + path + "\"");
}

int run_trace(Arguments arguments) {
  if (arguments.empty()) throw UsageError("expected a subcommand");
  const std::string& what = arguments[0];
  std::vector<std::string> words(arguments.begin() + 1, arguments.end());
  if (what == "replay") return run_replay(std::move(words));
  if (what == "info") {
    expect(words, 1);
    print_capture_info(Capture(words[0]));
  } else if (what == "list") {
    expect(words, 1);
    print_capture_list(Capture(words[0]));
  } else if (what == "show") {
    expect(words, 2);
    print_capture_command(Capture(words[0]), integer(words[1], "the command"));
  } else if (what == "diff") {
    expect(words, 2);
    return print_capture_difference(Capture(words[0]), Capture(words[1]));
  } else if (what == "export") {
    std::optional<std::string> out = take_option(words, "--perfetto");
    if (!out) throw UsageError("export needs --perfetto OUT.json");
    expect(words, 1);
    write_text_file(*out, perfetto_json(Capture(words[0])));
    std::printf("wrote %s; open it in ui.perfetto.dev\n", out->c_str());
  } else if (what == "report") {
    std::string out = take_option(words, "-o").value_or("report.html");
    expect(words, 1);
    write_text_file(out, report_html(Capture(words[0])));
    std::printf("wrote %s\n", out.c_str());
  } else {
    throw UsageError("there is no subcommand \"" + what + "\"");
  }
  return 0;
}

}  // namespace holdfast::tool
