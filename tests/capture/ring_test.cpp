// The ring of the last command lists: written when a command fails. A process writes its first
// failures only, so the tests of this file are all the failures of this suite.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <holdfast/holdfast.h>

#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// What `work` prints to stderr.
template <class Work>
std::string errors_of(Work&& work) {
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("holdfast-errors-" + std::to_string(::getpid()) + ".txt");
  int to = ::open(path.c_str(), O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0600);
  int kept = ::dup(STDERR_FILENO);
  REQUIRE(to >= 0);
  ::dup2(to, STDERR_FILENO);
  work();
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
  ::close(to);
  std::string text = contents(path);
  std::filesystem::remove(path);
  return text;
}

}  // namespace

TEST_CASE("ring: a failing command writes what ran before it to a file, and says where it is") {
  Stream s = new_stream(Device::cpu);
  size_t before = get_active_memory();
  for (int i = 0; i < 40; ++i) eval(sum(full({1000}, 1.0f, s), s));
  CHECK(get_active_memory() == before);  // it retains nothing
  array x = exp(full({10}, 1.0f, s), s);
  std::string said = errors_of([&] {
    CHECK_THROWS_AS(eval(failing_on_device(x, s, "no such luck")), ExecutionError);
    CHECK_THROWS_AS(eval(failing_on_device(x, s, "again")), ExecutionError);
  });
  const std::string start = "[holdfast] a command failed; what ran before it is in ";
  REQUIRE(said.starts_with(start));
  CHECK(said.find('\n') == said.size() - 1);  // once
  std::filesystem::path path = said.substr(start.size(), said.size() - start.size() - 1);
  std::string written = contents(path);
  CHECK(std::filesystem::remove(path));
  CHECK(written.starts_with("[FailingOnDevice] no such luck\nlist "));
  auto count = [&](const std::string& part) {
    int found = 0;
    for (size_t at = 0; (at = written.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  CHECK(count("[FailingOnDevice] again\nlist ") == 1);
  CHECK(count(", failed\n") == 2);
  CHECK(count("\n>") == 2);
  CHECK(count("native   FailingOnDevice") == 3);  // the second time with the first in the ring
  CHECK(count("native   Sum") >= 10);
  CHECK(count("\nlist ") == 2 + 2 * 16);
}
