// Saves through links, to what is no regular file, over files with modes and owners of their own;
// and saves that fail. Every writer of files of arrays, functions and captures.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <holdfast/export.h>
#include <holdfast/io.h>
#include <holdfast/metal.h>

#include "base/fault.h"
#include "base/replaced_file.h"
#include "base/sync.h"
#include "exec/layers/capture/capture.h"
#include "io/files.h"
#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;
namespace fs = std::filesystem;

namespace {

struct Writer {
  const char* ending;
  std::function<void(const std::string&)> save;
};

std::vector<Writer> writers() {
  const array a = arange(6);
  return {
      {".npy", [=](const std::string& path) { save(path, a); }},
      {".npz", [=](const std::string& path) { save_npz(path, {{"a", a}}); }},
      {".safetensors", [=](const std::string& path) { save_safetensors(path, {{"a", a}}); }},
      {".gguf", [=](const std::string& path) { save_gguf(path, {{"a", a}}); }},
      {".mlxfn",
       [=](const std::string& path) {
         export_function(
             path, [](const std::vector<array>& x) { return std::vector<array>{x[0] + x[0]}; },
             {a});
       }},
  };
}

mode_t mode_of(const std::string& path) {
  struct stat state;
  REQUIRE(stat(path.c_str(), &state) == 0);
  return state.st_mode & 07777;
}

ino_t inode_of(const std::string& path) {
  struct stat state;
  REQUIRE(lstat(path.c_str(), &state) == 0);
  return state.st_ino;
}

size_t entries(const TemporaryFolder& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a save keeps links, and the mode and owner of the file") {
  for (const Writer& writer : writers()) {
    CAPTURE(writer.ending);
    TemporaryFolder folder;
    fs::create_directory(folder / "far");
    std::string target = folder / (std::string("far/target") + writer.ending);
    std::string link = folder / (std::string("link") + writer.ending);
    std::string second = folder / (std::string("second") + writer.ending);
    fs::create_symlink(std::string("far/target") + writer.ending, link);
    fs::create_symlink(link, second);
    // What the link leads to is made, as open(2) would.
    writer.save(second);
    CHECK(fs::is_symlink(link));
    CHECK(fs::is_symlink(second));
    REQUIRE(fs::is_regular_file(fs::symlink_status(target)));
    const std::string contents = read_file(target);
    CHECK(contents.size() > 6);
    // Replaced, with its mode and owner.
    write_file(target, "old");
    chmod(target.c_str(), 0640);
    bool may_give_away = chown(target.c_str(), 12, 34) == 0;
    writer.save(link);
    CHECK(fs::is_symlink(link));
    CHECK(read_file(target) == contents);
    CHECK(mode_of(target) == 0640);
    if (may_give_away) {
      struct stat state;
      REQUIRE(stat(target.c_str(), &state) == 0);
      CHECK(state.st_uid == 12);
      CHECK(state.st_gid == 34);
    }
    CHECK(entries(folder) == 3);
    CHECK(std::distance(fs::directory_iterator(folder / "far"), fs::directory_iterator()) == 1);
  }
}

TEST_CASE("a new file has the mode that the umask leaves, an old one keeps its own") {
  const mode_t before = umask(027);
  for (const Writer& writer : writers()) {
    CAPTURE(writer.ending);
    TemporaryFolder folder;
    std::string path = folder / (std::string("a") + writer.ending);
    writer.save(path);
    CHECK(mode_of(path) == 0640);
    for (mode_t mode : {0600u, 0604u, 0666u}) {
      chmod(path.c_str(), mode);
      writer.save(path);
      CHECK(mode_of(path) == mode);
    }
  }
  umask(before);
}

TEST_CASE("another hard link keeps the old contents") {
  TemporaryFolder folder;
  save(folder / "a.npy", arange(3));
  fs::create_hard_link(folder / "a.npy", folder / "b.npy");
  save(folder / "a.npy", arange(4));
  CHECK(load(folder / "a.npy").size() == 4);
  CHECK(load(folder / "b.npy").size() == 3);
}

TEST_CASE("what is no regular file is written as it is") {
  for (const Writer& writer : writers()) {
    CAPTURE(writer.ending);
    TemporaryFolder folder;
    std::string file = folder / (std::string("a") + writer.ending);
    writer.save(file);
    const std::string contents = read_file(file);

    std::string pipe = folder / (std::string("pipe") + writer.ending);
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    std::string got;
    sync::Thread reader("reader", [&] { got = read_file(pipe); });
    writer.save(pipe);
    reader.join();
    CHECK(got == contents);
    CHECK(fs::is_fifo(pipe));

    std::string null = folder / (std::string("null") + writer.ending);
    fs::create_symlink("/dev/null", null);
    CHECK_NOTHROW(writer.save(null));
    std::string full = folder / (std::string("full") + writer.ending);
    fs::create_symlink("/dev/full", full);
    CHECK_THROWS_WITH_AS(writer.save(full), doctest::Contains("No space left on device"),
                         std::runtime_error);
    CHECK(fs::is_character_file("/dev/null"));
    CHECK(fs::is_character_file("/dev/full"));
    CHECK(fs::is_symlink(null));
    CHECK(fs::is_symlink(full));
    fs::create_directory(folder / (std::string("folder") + writer.ending));
    CHECK_THROWS_WITH_AS(writer.save(folder / (std::string("folder") + writer.ending)),
                         doctest::Contains("Is a directory"), std::runtime_error);
    CHECK(entries(folder) == 5);
  }
}

TEST_CASE("an open descriptor, as /dev/stdout is one, is written where it stands") {
  TemporaryFolder folder;
  std::string path = folder / "out";
  int descriptor = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  REQUIRE(write(descriptor, "before", 6) == 6);
  fs::create_symlink("/proc/self/fd/" + std::to_string(descriptor), folder / "out.npy");
  save(folder / "out.npy", arange(3));
  REQUIRE(write(descriptor, "after", 5) == 5);
  close(descriptor);
  std::string contents = read_file(path);
  CHECK(contents.starts_with("before\x93NUMPY"));
  CHECK(contents.ends_with("after"));
}

TEST_CASE("a save that fails leaves the old file and nothing else") {
  for (const Writer& writer : writers()) {
    CAPTURE(writer.ending);
    TemporaryFolder folder;
    std::string path = folder / (std::string("a") + writer.ending);
    write_file(path, "old");
    chmod(path.c_str(), 0600);
    const ino_t inode = inode_of(path);
    for (uint64_t k = 1; k < 4; ++k) {
      fault::arm(fault::Point::file, k);
      bool has_failed = false;
      try {
        writer.save(path);
      } catch (const std::runtime_error&) {
        has_failed = true;
      }
      fault::disarm();
      if (!has_failed) break;
      CHECK(read_file(path) == "old");
      CHECK(inode_of(path) == inode);
      CHECK(entries(folder) == 1);
    }
  }
  TemporaryFolder folder;
  fs::create_symlink("loop.npy", folder / "loop.npy");
  CHECK_THROWS_WITH(save(folder / "loop.npy", arange(3)), doctest::Contains("symbolic links"));
  CHECK_THROWS_WITH(save(folder / "none/a.npy", arange(3)), doctest::Contains("No such file"));
  fs::create_symlink("none/b.npy", folder / "dangling.npy");
  CHECK_THROWS_WITH(save(folder / "dangling.npy", arange(3)), doctest::Contains("No such file"));
  CHECK(entries(folder) == 2);
}

TEST_CASE("a file without the permission to write is not replaced") {
  if (geteuid() == 0) return;  // root may write everything
  TemporaryFolder folder;
  write_file(folder / "a.npy", "old");
  chmod((folder / "a.npy").c_str(), 0400);
  CHECK_THROWS_WITH(save(folder / "a.npy", arange(3)), doctest::Contains("Permission denied"));
  CHECK(read_file(folder / "a.npy") == "old");
}

TEST_CASE("a capture goes through links, keeps the mode, and is refused where no file is") {
  TemporaryFolder folder;
  auto capture = [&](const std::string& path) {
    exec::capture::start(path, {});
    eval(arange(3) + array(1));
    exec::capture::stop();
  };
  write_file(folder / "target", "old");
  chmod((folder / "target").c_str(), 0600);
  fs::create_symlink("target", folder / "link");
  capture(folder / "link");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(mode_of(folder / "target") == 0600);
  CHECK(read_file(folder / "target").starts_with("SQLite format 3"));
  fs::create_symlink("new", folder / "dangling");
  capture(folder / "dangling");
  CHECK(read_file(folder / "new").starts_with("SQLite format 3"));
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  fs::create_symlink("/dev/null", folder / "null");
  for (const char* name : {"pipe", "null"}) {
    CHECK_THROWS_WITH_AS(exec::capture::start(folder / name, {}),
                         doctest::Contains("expected a regular file"), std::runtime_error);
  }
  CHECK(fs::is_fifo(folder / "pipe"));
  CHECK(fs::is_symlink(folder / "null"));
  CHECK(fs::is_character_file("/dev/null"));
  CHECK(entries(folder) == 6);
}
