// HOLDFAST_FAULT: the faults of the fault loops as a setting of every program.
#include <doctest/doctest.h>

#include <filesystem>

#include <holdfast/holdfast.h>

#include "base/fault.h"
#include "kernel_library/fake_compiler.h"
#include "support/child.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// What the action throws; "ok" when it does not.
template <class Action>
std::string outcome(Action action) {
  try {
    action();
    return "ok";
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string run_with(const std::string& setting) {
  std::string text =
      reported(run_child("child: uses everything that can fail", {"HOLDFAST_FAULT=" + setting}));
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

TEST_CASE("child: uses everything that can fail") {
  if (!is_child("child: uses everything that can fail")) return;
  std::string text;
  Stream s = new_stream(Device::cpu);
  text += outcome([&] { counting(4); }) + "|";
  text += outcome([&] { values(affine(counting(4), 2, 1, s)); }) + "|";
  FakeCompiler compiler;
  exec::KernelLibrary library(compiler.parts(8));
  text += outcome([&] { library.get(request_for("1 2", "axpy")); }) + "|";
  std::string path = (std::filesystem::temp_directory_path() /
                      ("holdfast-fault-" + std::to_string(getpid()) + ".npy"))
                         .string();
  text += outcome([&] { save(path, counting(4)); }) + "|";
  text += outcome([&] { values(load(path)); });
  std::filesystem::remove(path);
  report(text);
}

TEST_CASE("HOLDFAST_FAULT: what is named fails at its visit, everything else goes on") {
  CHECK(run_with("dispatch:100") == "ok|ok|ok|ok|ok");
  CHECK(run_with("alloc:1").starts_with("[array] cannot allocate 16 bytes"));
  std::string second = run_with("alloc:2");
  CHECK_MESSAGE(second.starts_with("ok|["), second);
  CHECK(run_with("dispatch:1") == "ok|[Affine] injected failure of a dispatch|ok|ok|ok");
  CHECK(run_with("compile:1") == "ok|ok|[axpy] injected failure of a compilation|ok|ok");
  std::string file = run_with("file:1");
  CHECK_MESSAGE(file.find("injected failure of a file") != std::string::npos, file);
  std::string several = run_with("dispatch:1,compile:1");
  CHECK(
      several ==
      "ok|[Affine] injected failure of a dispatch|[axpy] injected failure of a compilation|ok|ok");
}

TEST_CASE("HOLDFAST_FAULT: wrong settings are errors that name it") {
  for (const char* wrong : {"alloc", "alloc:", "alloc:0", "alloc:x", "memory:1", "alloc:1,",
                            "alloc:-1", "alloc:1++", "alloc:99999999999999999999", ","}) {
    CAPTURE(wrong);
    ChildResult result =
        run_child("child: uses everything that can fail", {std::string("HOLDFAST_FAULT=") + wrong});
    CHECK(result.output.find("[environment] HOLDFAST_FAULT must be points with the visit that "
                             "fails") != std::string::npos);
  }
}

TEST_CASE("fault settings are parsed") {
  std::vector<fault::Setting> settings;
  REQUIRE(fault::parse("alloc:3,dispatch:1+,thread:2", settings));
  REQUIRE(settings.size() == 3);
  CHECK(settings[0].point == fault::Point::allocation);
  CHECK(settings[0].k == 3);
  CHECK(!settings[0].persistent);
  CHECK(settings[1].persistent);
  CHECK(settings[2].point == fault::Point::thread_start);
}
