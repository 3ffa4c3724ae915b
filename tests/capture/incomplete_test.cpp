// Captures that end early: a full disk, or a process that was stopped. Whatever SQLite can open
// says what it is, and that it is not complete.
#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include <holdfast/holdfast.h>

#include "capture/file.h"
#include "capture/programs.h"
#include "exec/layers/capture/capture_file.h"

using namespace holdfast;
using namespace holdfast::testing;
using exec::capture::CaptureFile;

namespace {

constexpr uint64_t page = 16384;

void add_event(ByteWriter& out, uint8_t kind, uint64_t buffer, uint64_t size) {
  out.value(kind);
  out.value(int64_t{5});
  out.value(buffer);
  out.value(size);
  out.value(int32_t{0});
  out.text("Add");
  out.text("");
}

// A list of one native command that writes the first 64 bytes of a buffer.
void add_list(CaptureFile& file, int64_t id, uint64_t buffer) {
  ByteWriter out = list_of_one(2, 0), times;
  for (const char* text : {"Add", "", ""}) out.text(text);
  out.value(int64_t{64});
  out.value(int64_t{1});
  out.value(uint64_t{1});  // bindings
  out.value(buffer);
  out.value(int64_t{0});
  out.value(int64_t{64});
  out.value(uint8_t{1});
  out.value(uint64_t{0});  // edges
  times.value(int64_t{1});
  times.value(int64_t{2});
  times.value(int32_t{1});
  times.value(uint8_t{0});
  file.list(id, id, 0, id, out.take(), times.take());
}

std::string error_of(const std::string& path) {
  try {
    Capture read(path);
    CHECK(!read.is_complete());
    CHECK(contains(read.why_not(), "it is not complete (recording)"));
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

// Writes a capture in a process that the system stops when a file would become larger than `bytes`.
// Is that what happened?
bool is_stopped_at(const std::string& path, uint64_t bytes) {
  pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // Only the writer of files runs here: a process that was forked has no runtime.
    std::signal(SIGXFSZ, SIG_DFL);
    rlimit limit{bytes, bytes}, none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::setrlimit(RLIMIT_FSIZE, &limit);
    {
      CaptureFile file(path, 0);
      file.queue(0, "cpu", false);
      uint32_t random = 1;
      for (int batch = 0; batch < 3; ++batch) {
        file.begin();
        std::string text(60000, ' ');
        for (char& c : text)
          c = static_cast<char>((random = random * 1664525u + 1013904223u) >> 24);
        file.blob(text);
        add_list(file, batch, 1);
        file.commit();
      }
    }
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ;
}

}  // namespace

TEST_CASE("capture: a file without room for what it is is not left behind") {
  File file("no-room");
  uint64_t most = 1;
  for (;; ++most) {
    CAPTURE(most);
    try {
      CaptureFile writer(file.path, most * page);
      break;
    } catch (const std::runtime_error& error) {
      CHECK(contains(error.what(), "full"));
    }
    CHECK(!std::filesystem::exists(file.path));
    CHECK(!std::filesystem::exists(file.path + "-journal"));
  }
  CHECK(most > 4);
  CHECK(error_of(file.path) == "");
}

TEST_CASE("capture: a process that is stopped at any byte leaves a file that says so") {
  File file("stopped");
  size_t stopped = 0, readable = 0;
  for (uint64_t bytes = 0; is_stopped_at(file.path, bytes); bytes += page / 2) {
    CAPTURE(bytes);
    ++stopped;
    std::string error = error_of(file.path);
    readable += error.empty();
    // Empty until the first commit, and never again.
    if (!error.empty()) {
      CHECK(contains(error, "file: it is empty: what made it was stopped"));
      CHECK(readable == 0);
    }
    std::filesystem::remove(file.path + "-journal");
  }
  CHECK(stopped > 30);
  CHECK(readable > 10);
  CHECK(error_of(file.path) == "");
  CHECK(Capture(file.path).lists.size() == 3);
}

TEST_CASE("capture: a journal that names other files is not rolled back") {
  File file("journal"), other("other");
  REQUIRE(is_stopped_at(file.path, 16 * page));
  const std::string journal = file.path + "-journal";
  REQUIRE(std::filesystem::file_size(journal) > 0);
  std::ofstream(other.path) << "somebody's";
  {
    // Number of a page, name, its length and sum of bytes, and what journals begin with.
    uint32_t sum = 0;
    for (char c : other.path) sum += static_cast<uint32_t>(c);
    auto big_endian = [](uint32_t value) {
      std::string bytes;
      for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
      return bytes;
    };
    std::ofstream end(journal, std::ios::binary | std::ios::app);
    end << big_endian(0x40000000 / page + 1) << other.path
        << big_endian(static_cast<uint32_t>(other.path.size())) << big_endian(sum)
        << "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";
  }
  CHECK(contains(error_of(file.path), "its journal cannot be rolled back: it names other files"));
  CHECK(std::filesystem::exists(other.path));
  std::filesystem::remove(journal);
}

TEST_CASE("capture: a file that ends early may have the end of a buffer's life alone, or nothing") {
  File file("buffers");
  {
    CaptureFile writer(file.path, 0);
    ByteWriter events;
    add_event(events, 2, 7, 4096);  // ended
    add_event(events, 0, 8, 128);   // created
    writer.memory(events.take());
    writer.queue(0, "cpu", false);
    add_list(writer, 1, 7);
    add_list(writer, 2, 8);
    add_list(writer, 3, 9);
    writer.digest(1, 0, 7, 0, 48, {});
  }
  {
    Capture read(file.path);
    CHECK(read.lists.size() == 3);
    CHECK(read.digests.size() == 1);
    CHECK(read.buffers.at(7).retired == 5);
    CHECK(read.buffers.at(7).created == -1);
    for (auto [id, size] : {std::pair<uint64_t, uint64_t>{7, 64}, {8, 128}, {9, 64}}) {
      CHECK(read.buffers.at(id).size == size);
    }
  }
  // Where it says that it is complete, the same is a damaged file.
  file.change("update meta set value='complete' where key='state'");
  CHECK(contains(file.error(), "lists row 1, command 0: there is no buffer 7"));
}
