// Runs the table of cases.h: each planted bug is reported, with the right kind and names, every
// time; each clean twin is not.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "exec/layers/validation/checks.h"
#include "validation/cases.h"

using namespace holdfast;
using namespace holdfast::testing;
using validation::Report;

namespace holdfast::testing {

std::vector<ValidationCase> all_cases() {
  std::vector<ValidationCase> all;
  for (auto rows :
       {lifetime_cases(), hazard_cases(), binding_cases(), cache_cases(), resource_cases(),
        kernel_cases(), limit_cases(), origin_cases(), device_memory_cases()}) {
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

}  // namespace holdfast::testing

namespace {

std::vector<Report> reports_of(const ValidationCase& c, const char* checks,
                               const std::function<void()>& run) {
  exec::Runtime::get().drain();
  validation::Scope scope({.checks = checks});
  try {
    run();
  } catch (const std::exception&) {
    // Builds with internal checks stop some of these bugs themselves.
  }
  if (std::string_view(c.id).starts_with("resources.leaked")) {
    scope.check_left_over();
    metal::stop_capture();
  }
  exec::Runtime::get().drain();
  return scope.reports();
}

std::string text_of(const std::vector<Report>& reports) {
  std::string text;
  for (const Report& report : reports) text += report.text();
  return text;
}

bool has_fields(const Report& report, const std::map<std::string, std::string>& fields) {
  for (const auto& [name, value] : fields) {
    if (report.field(name) != value) return false;
  }
  return true;
}

void check_planted(const ValidationCase& c) {
  std::vector<Report> reports = reports_of(c, c.checks, c.planted);
  bool is_found = false;
  for (const Report& report : reports) {
    is_found |= report.id == c.id && has_fields(report, c.fields);
    CHECK_MESSAGE(report.id == c.id, report.text());
    CHECK(!report.sentence.empty());
    CHECK(!report.advice.empty());
  }
  CHECK_MESSAGE(is_found, text_of(reports));
}

}  // namespace

TEST_CASE("every planted bug is reported by kind and name") {
  for (const ValidationCase& c : all_cases()) {
    if (!can_run(c)) continue;
    INFO(std::string(c.id), ": ", std::string(c.name));
    controlled::for_each_schedule(4, [&](const controlled::Schedule&) {
      INFO(controlled::describe());
      check_planted(c);
    });
  }
}

TEST_CASE("no clean twin is reported, by any check but `ownership`") {
  for (const ValidationCase& c : all_cases()) {
    if (!can_run(c)) continue;
    INFO(std::string(c.id), ": ", std::string(c.name));
    controlled::for_each_schedule(4, [&](const controlled::Schedule&) {
      INFO(controlled::describe());
      std::vector<Report> reports = reports_of(c, "1", c.clean);
      CHECK_MESSAGE(reports.empty(), text_of(reports));
    });
    std::vector<Report> reports = reports_of(c, c.checks, c.clean);
    CHECK_MESSAGE(reports.empty(), text_of(reports));
  }
}

TEST_CASE("each kind has at least three planted bugs") {
  for (const validation::KindRow& row : validation::kinds()) {
    INFO(std::string(row.id));
    int planted = 0;
    for (const ValidationCase& c : all_cases()) planted += std::string(c.id) == row.id;
    CHECK(planted >= 3);
  }
}

TEST_CASE(
    "the histories are reported in each of a hundred runs, and not where they are prevented") {
  int histories = 0;
  for (const ValidationCase& c : all_cases()) {
    std::string name = c.name;
    bool is_history = name == "a primitive does not register its temporary" ||
                      name == "the kernel library evicts a kernel that is in flight" ||
                      name == "a 33rd residency set" ||
                      name == "a same-named kernel uses the first call's weights" ||
                      name == "a cache by name: the same name, other weights in the source";
    if (!is_history) continue;
    INFO(name);
    ++histories;
    for (int run = 0; run < 100; ++run) {
      check_planted(c);
      std::vector<Report> reports = reports_of(c, "1", c.clean);
      CHECK_MESSAGE(reports.empty(), text_of(reports));
    }
  }
  CHECK(histories == 5);
}
