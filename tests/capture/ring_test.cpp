// The ring of the last command lists: written where a command fails and nothing handles the error.
#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <holdfast/holdfast.h>

#include "support/child.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

const std::string announced = "[holdfast] a command failed; what ran before it is in ";

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

// A folder for the files of children.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("holdfast-rings-" + std::to_string(::getpid()));
  Folder() { std::filesystem::remove_all(path); }
  ~Folder() { std::filesystem::remove_all(path); }

  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(path, none)) {
      found.push_back(entry.path());
    }
    return found;
  }
  ChildResult run(const std::string& name) const {
    return run_child(name, {"HOLDFAST_RING_DIR=" + path.string()});
  }
};

array failing(const Stream& s, const std::string& what) {
  return failing_on_device(exp(full({10}, 1.0f, s), s), s, what);
}

}  // namespace

TEST_CASE("ring child: errors that are caught") {
  if (!is_child("ring child: errors that are caught")) return;
  Stream s = new_stream(Device::cpu);
  CHECK_THROWS_AS(eval(failing(s, "no such luck")), ExecutionError);
  array later = failing(s, "later");
  async_eval(later);
  CHECK_THROWS_AS(synchronize(s), ExecutionError);
  report("caught");
}

TEST_CASE("ring: an error that the program catches leaves no file and no line") {
  Folder folder;
  ChildResult child = folder.run("ring child: errors that are caught");
  CHECK(child.exit_code == 0);
  CHECK(reported(child) == "caught\n");
  CHECK(count(child.output, announced) == 0);
  CHECK(folder.files().empty());
}

TEST_CASE("ring child: an uncaught error") {
  if (!is_child("ring child: an uncaught error")) return;
  Stream s = new_stream(Device::cpu);
  size_t before = get_active_memory();
  for (int i = 0; i < 40; ++i) eval(sum(full({1000}, 1.0f, s), s));
  if (get_active_memory() == before) report("retains nothing");
  CHECK_THROWS_AS(eval(failing(s, "handled")), ExecutionError);
  [&]() noexcept { eval(failing(s, "no such luck")); }();
}

TEST_CASE("ring: an error that ends the process writes what ran before it, and names the file") {
  Folder folder;
  ChildResult child = folder.run("ring child: an uncaught error");
  CHECK(child.exit_code != 0);
  CHECK(reported(child) == "retains nothing\n");
  REQUIRE(count(child.output, announced) == 1);
  REQUIRE(folder.files().size() == 1);
  CHECK(child.output.find(announced + folder.files()[0].string() + "\n") != std::string::npos);
  std::string written = contents(folder.files()[0]);
  CHECK(written.starts_with("[FailingOnDevice] no such luck\nlist "));
  CHECK(count(written, "[FailingOnDevice] handled") == 0);
  CHECK(count(written, ", failed\n") == 1);
  CHECK(count(written, "\n>") == 1);
  CHECK(count(written, "native   FailingOnDevice") == 2);  // the handled one ran before
  CHECK(count(written, "native   Sum") >= 10);
  CHECK(count(written, "\nlist ") == 1 + 16);
}

TEST_CASE("ring child: an error that no caller waits for") {
  if (!is_child("ring child: an error that no caller waits for")) return;
  Stream s = new_stream(Device::cpu);
  async_eval(failing(s, "into the void"));
}

TEST_CASE(
    "ring: an error that was thrown to no caller is written at exit; the last files are kept") {
  Folder folder;
  std::filesystem::create_directories(folder.path);
  std::ofstream(folder.path / "other.txt") << "stays";
  std::set<std::filesystem::path> seen;
  for (int i = 0; i < 10; ++i) {
    ChildResult child = folder.run("ring child: an error that no caller waits for");
    CHECK(child.exit_code == 0);
    CHECK(count(child.output, announced) == 1);
    for (const auto& file : folder.files()) seen.insert(file);
  }
  CHECK(seen.size() == 10 + 1);
  CHECK(folder.files().size() == 8 + 1);
  CHECK(std::filesystem::exists(folder.path / "other.txt"));
}
