// The frame of validation: settings, modes, filters, counting, JSON, scopes.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "exec/layers/validation/checks.h"
#include "kernel_library/temporary_folder.h"
#include "support/child.h"
#include "validation/cases.h"

using namespace holdfast;
using namespace holdfast::testing;
using validation::Mode;
using validation::Report;
using validation::Scope;

namespace {

// Binds beyond the end of a buffer: `times` ops of one name.
void plant(Stream s, int times = 1, const char* name = "Raw") {
  RawBuffer raw(64);
  for (int i = 0; i < times; ++i) {
    eval(lone_op(name, s, [&](Encoder& encoder, array& out) {
      encoder.raw_input(raw.buffer, 0, 65);
      encoder.output(out);
      hold(encoder, "touch", raw.buffer.raw_ptr());
    }));
  }
}

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// What a child wrote to both of its outputs when it ran `plant` under these variables.
ChildResult child(std::vector<std::string> variables) {
  return run_child("child: plants a bug", variables);
}

}  // namespace

TEST_CASE("validation: the same finding is reported once, and counted") {
  OwnStream s;
  Scope scope;
  plant(s, 5);
  plant(s, 1, "Other");
  std::vector<Report> reports = scope.reports();
  REQUIRE(reports.size() == 2);
  CHECK(reports[0].count == 5);
  CHECK(reports[1].count == 1);
  CHECK(reports[1].field("op") == "Other");
}

TEST_CASE("validation: a report has a sentence, advice and a block of fields") {
  OwnStream s;
  Scope scope;
  {
    label::Scope label("model/layer 1");
    plant(s);
  }
  REQUIRE(scope.reports().size() == 1);
  Report report = scope.reports()[0];
  CHECK(report.id == "bindings.out-of-range");
  CHECK(report.severity == validation::Severity::error);
  CHECK(
      report.sentence.find("command \"touch\" of op Raw (label model/layer 1) reads bytes 0 to 65 "
                           "of buffer #") == 0);
  std::string text = report.text();
  CHECK(text.starts_with("[validation] error: command"));
  CHECK(text.find("\n  what to do: ") != std::string::npos);
  CHECK(text.find("\n  id=bindings.out-of-range severity=error op=Raw command=touch "
                  "label=\"model/layer 1\" list=") != std::string::npos);
  nlohmann::json json = nlohmann::json::parse(report.json());
  CHECK(json["id"] == "bindings.out-of-range");
  CHECK(json["label"] == "model/layer 1");
  CHECK(json["buffer_bytes"] == "64");
  CHECK(json["sentence"] == report.sentence);
}

TEST_CASE("validation: only the named checks run, and ignored reports are not kept") {
  OwnStream s;
  {
    Scope scope({.checks = "lifetime,hazards"});
    plant(s);
    CHECK(scope.reports().empty());
  }
  {
    Scope scope({.checks = "1", .ignore = "bindings.out-of-range,cache.other-source"});
    plant(s);
    CHECK(scope.reports().empty());
  }
  Scope scope({.checks = "bindings", .ignore = "bindings.too-small"});
  plant(s);
  CHECK(scope.reports().size() == 1);
}

TEST_CASE("validation: unknown names are refused, by name") {
  auto message = [](validation::Options options) -> std::string {
    try {
      Scope scope(options);
      return "";
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
  };
  CHECK(message({.checks = "lifetimes"})
            .starts_with("[validation] Options::checks must be 1 or "
                         "names of checks (lifetime, hazards, "));
  CHECK(message({.checks = "lifetimes"}).ends_with("got \"lifetimes\""));
  CHECK(message({.checks = "lifetime,"}).ends_with("got \"\""));
  CHECK(message({.checks = ""}).ends_with("got \"\""));
  CHECK(message({.ignore = "lifetime"}).ends_with("got \"lifetime\""));
  CHECK(message({.ignore = "lifetime.buffer-released"}) == "");
  CHECK_THROWS_WITH(Scope({.json = "/nonexistent/file"}),
                    "[validation] cannot write \"/nonexistent/file\"");
  CHECK(message({}) == "");  // none of them left a scope behind
}

TEST_CASE("validation: one scope at a time") {
  OwnStream s;
  {
    Scope scope;
    CHECK_THROWS_AS(Scope(), std::logic_error);
    plant(s);
    CHECK(scope.reports().size() == 1);
  }
  Scope scope;
  CHECK(scope.reports().empty());
}

TEST_CASE("validation: in mode throw the op that is wrong throws, each time, and others go on") {
  OwnStream s;
  Scope scope({.mode = Mode::throw_error});
  for (int i = 0; i < 2; ++i) {
    try {
      plant(s);
      CHECK(false);
    } catch (const validation::ValidationError& error) {
      CHECK(error.report().id == "bindings.out-of-range");
      CHECK(std::string(error.what()).find("of op Raw reads bytes") != std::string::npos);
    }
  }
  CHECK(values(affine(counting(3), 2, 1, s)) == std::vector<int32_t>{1, 3, 5});
  synchronize(s);
}

TEST_CASE("validation: in mode throw all that is wrong with an op is kept, and the first thrown") {
  OwnStream s;
  Scope scope({.mode = Mode::throw_error});
  RawBuffer one(64), other(64);
  array y = lone_op("Twice", s, [&](Encoder& encoder, array& out) {
    encoder.raw_input(one.buffer, 0, 65);
    encoder.raw_output(other.buffer, -1, 64);
    encoder.output(out);
    hold(encoder, "touch", one.buffer.raw_ptr());
  });
  CHECK_THROWS_AS(y.eval(), validation::ValidationError);
  REQUIRE(scope.reports().size() == 1);
  CHECK(scope.reports()[0].count == 2);
}

TEST_CASE("validation: in mode throw the host's read throws") {
  OwnStream s;
  Scope scope({.mode = Mode::throw_error});
  array y = affine(counting(3), 2, 1, s);
  async_eval(y);
  CHECK_THROWS_AS((void)y.data<int32_t>(), validation::ValidationError);
  y.wait();
  CHECK(y.data<int32_t>()[2] == 5);
}

TEST_CASE("validation: in mode throw what nobody does is thrown by synchronize") {
  OwnStream s;
  Scope scope({.checks = "lifetime", .mode = Mode::throw_error});
  Gate gate(s);
  std::optional<array> x = counting(16);
  array y = make_op("Forgetful", s, {}, {16},
                    [&](Encoder& encoder, const auto&, std::vector<array>& out) {
                      encoder.allocate(out[0]);
                      encoder.output(out[0]);
                      hold(encoder, "reads x", x->data<int32_t>());  // not an input
                    });
  async_eval(y);
  x.reset();
  gate.open();
  std::string id;
  try {
    synchronize(s);
  } catch (const validation::ValidationError& error) {
    id = error.report().id;
  }
  CHECK(id == "lifetime.temporary-not-bound");
  synchronize(s);
}

TEST_CASE("validation: what is older than the scope is not known, and never reported") {
  OwnStream s;
  WithoutRetaining ablation(s);
  Gate gate(s);
  std::optional<array> x = counting(48);
  std::optional<array> y = affine(*x, 3, 1, s);
  async_eval(*y);
  Scope scope;
  x.reset();                      // an old buffer in an old list
  (void)y->data<int32_t>();       // an old write
  array z = affine(*y, 1, 1, s);  // an old buffer in a new list
  async_eval(z);
  y.reset();
  CHECK(scope.reports().empty());
  give_up_work(s, gate);
}

TEST_CASE("validation: what an op that threw would have used is nobody's") {
  OwnStream s;
  Scope scope;
  Gate gate(s);
  std::optional<RawBuffer> raw(64);
  array y = lone_op("Throws", s, [&](Encoder& encoder, array& out) {
    encoder.output(out);
    hold(encoder, "holds raw", raw->buffer.raw_ptr());
    throw std::runtime_error("half-way");
  });
  CHECK_THROWS_AS(y.eval(), std::runtime_error);
  raw.reset();  // the list that had the command is in flight
  CHECK(scope.reports().empty());
  gate.open();
}

TEST_CASE("child: plants a bug") {
  if (!is_child("child: plants a bug")) return;
  OwnStream s;
  try {
    plant(s, 3);
  } catch (const std::exception& error) {
    report(error.what());
  }
}

TEST_CASE("HOLDFAST_VALIDATE: reports on stderr, and a summary at exit") {
  ChildResult result = child({"HOLDFAST_VALIDATE=1"});
  CHECK(result.exit_code == 0);
  size_t first = result.output.find("[validation] error: command \"touch\" of op Raw");
  REQUIRE(first != std::string::npos);
  CHECK(result.output.find("[validation] error", first + 1) == std::string::npos);
  CHECK(result.output.find("[validation] 1 reports, 3 times in all:\n  bindings.out-of-range: 1 (3 "
                           "times)\n") != std::string::npos);
  for (const char* off : {"HOLDFAST_VALIDATE=0", "HOLDFAST_VALIDATE=", "HOLDFAST_VALIDATE=lifetime",
                          "HOLDFAST_VALIDATE_IGNORE=bindings.out-of-range"}) {
    CAPTURE(off);
    ChildResult quiet = child({off});
    CHECK(quiet.exit_code == 0);
    CHECK(quiet.output.find("[validation]") == std::string::npos);
  }
}

TEST_CASE("child: leaves things over") {
  if (!is_child("child: leaves things over")) return;
  const bool leaves_over = std::getenv("HOLDFAST_TEST_LEAVES_OVER") != nullptr;
  metal::start_capture(std::getenv("HOLDFAST_TEST_CAPTURE"));
  Stream first = new_stream(Device::cpu), second = new_stream(Device::cpu),
         third = new_stream(Device::cpu);
  array waited_for = affine(counting(16), 1, 0, first);
  {
    Gate gate(first);
    async_eval(waited_for);
    waited_for.event().wait(second);
    gate.open();
    waited_for.wait();
  }
  static array forgotten = affine(counting(16), 1, 0, third);
  async_eval(forgotten);
  if (leaves_over) return;
  eval(affine(counting(16), 1, 0, second));
  forgotten.wait();
  metal::stop_capture();
}

TEST_CASE("HOLDFAST_VALIDATE: what is left over is told at exit") {
  TemporaryFolder folder;
  std::vector<std::string> variables = {"HOLDFAST_VALIDATE=resources",
                                        "HOLDFAST_TEST_CAPTURE=" + folder.path() + "/left.hfcap"};
  ChildResult clean = run_child("child: leaves things over", variables);
  CHECK(clean.exit_code == 0);
  CHECK_MESSAGE(clean.output.find("[validation]") == std::string::npos, clean.output);
  std::filesystem::remove(folder.path() + "/left.hfcap");
  variables.push_back("HOLDFAST_TEST_LEAVES_OVER=1");
  ChildResult result = run_child("child: leaves things over", variables);
  CHECK(result.exit_code == 0);
  for (const char* id :
       {"resources.leaked-capture", "resources.leaked-stream", "resources.leaked-event"}) {
    CAPTURE(id);
    CHECK_MESSAGE(result.output.find(std::string("id=") + id + " ") != std::string::npos,
                  result.output);
  }
}

TEST_CASE("HOLDFAST_VALIDATE: modes, filters and JSON lines") {
  ChildResult aborted = child({"HOLDFAST_VALIDATE=bindings", "HOLDFAST_VALIDATE_MODE=abort"});
  CHECK(aborted.exit_code != 0);
  CHECK(aborted.output.find("[validation] error: command") != std::string::npos);
  CHECK(aborted.output.find("times in all") == std::string::npos);  // not by way of exit
  CHECK(
      reported(child({"HOLDFAST_VALIDATE=1", "HOLDFAST_VALIDATE_MODE=throw"})).find("what to do") !=
      std::string::npos);
  ChildResult ignored =
      child({"HOLDFAST_VALIDATE=1", "HOLDFAST_VALIDATE_IGNORE=bindings.out-of-range"});
  CHECK(ignored.output.find("[validation]") == std::string::npos);

  TemporaryFolder folder;
  std::string path = folder.path() + "/reports.jsonl";
  CHECK(child({"HOLDFAST_VALIDATE=1", "HOLDFAST_VALIDATE_JSON=" + path}).exit_code == 0);
  std::string lines = contents(path);
  REQUIRE(!lines.empty());
  CHECK(lines.find('\n') == lines.size() - 1);
  CHECK(nlohmann::json::parse(lines)["op"] == "Raw");
  CHECK(child({"HOLDFAST_VALIDATE=1", "HOLDFAST_VALIDATE_JSON=/dev/full"})
            .output.find("[validation] \"/dev/full\" is not complete") != std::string::npos);
}

TEST_CASE("child: goes on after an error of the settings") {
  if (!is_child("child: goes on after an error of the settings")) return;
  for (int i = 0; i < 2; ++i) {
    try {
      eval(arange(0, 8, 1));  // begins with a stream, and ends with memory
      report("nothing is wrong");
    } catch (const std::exception& error) {
      report(error.what());
    }
  }
}

TEST_CASE("wrong values of settings are exceptions, and no end of the process") {
  for (const char* setting :
       {"HOLDFAST_VALIDATE=all", "HOLDFAST_VALIDATE_MODE=shout", "HOLDFAST_VALIDATE_IGNORE=hazards",
        "HOLDFAST_CHAOS=7:shuffle", "HOLDFAST_FAULT=alloc:1,alloc:2"}) {
    CAPTURE(setting);
    ChildResult result = run_child("child: goes on after an error of the settings", {setting});
    CHECK_MESSAGE(result.exit_code == 0, result.output);
    const std::string name = std::string(setting).substr(0, std::string(setting).find('='));
    CHECK_MESSAGE(reported(result).find(name + " must be ") != std::string::npos, result.output);
  }
}

TEST_CASE("HOLDFAST_VALIDATE: wrong values are errors that name the variable") {
  auto says = [](std::vector<std::string> variables, const std::string& text) {
    ChildResult result = child(variables);
    CHECK_MESSAGE(result.output.find(text) != std::string::npos, result.output);
    CHECK(result.exit_code != 0);
  };
  says({"HOLDFAST_VALIDATE=lifetime,hazard"}, "[validation] HOLDFAST_VALIDATE must be 1 or names");
  says({"HOLDFAST_VALIDATE=lifetime,hazard"}, "got \"hazard\"");
  says({"HOLDFAST_VALIDATE=1", "HOLDFAST_VALIDATE_MODE=shout"},
       "[validation] HOLDFAST_VALIDATE_MODE must be report, throw or abort, got \"shout\"");
  says({"HOLDFAST_VALIDATE=1", "HOLDFAST_VALIDATE_IGNORE=hazards"},
       "[validation] HOLDFAST_VALIDATE_IGNORE must be identifiers of reports");
  says({"HOLDFAST_VALIDATE=1", "HOLDFAST_VALIDATE_JSON=/nonexistent/file"},
       "[validation] cannot write \"/nonexistent/file\"");
}
