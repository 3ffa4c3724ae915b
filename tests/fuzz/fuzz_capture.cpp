// Captures: the bytes are a whole file, or the commands of a list in a file that is sound
// otherwise, which is then replayed. Exceptions are the answer; anything else is a bug.
//
// Whole files may refer to "weights" beside them: 4096 bytes of which the i-th is 7 i.
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <holdfast/holdfast.h>

#include "base/byte_stream.h"
#include "capture/replay.h"

using namespace holdfast;

namespace {

// Of this process; goes with it.
struct Folder {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("holdfast-fuzz-" + std::to_string(::getpid()));
  Folder() {
    std::filesystem::create_directories(path);
    std::ofstream weights(path / "weights", std::ios::binary);
    for (int i = 0; i < 4096; ++i) weights.put(static_cast<char>(7 * i));
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

const std::string& capture_path() {
  static const Folder folder;
  static const std::string path = (folder.path / "fuzzed.hfcap").string();
  return path;
}

void read_whole(std::string_view bytes) {
  capture::Capture read(bytes, capture_path());
  for (const capture::Contents& contents : read.contents) read.bytes(contents);
}

void replay_list(std::string_view bytes) {
  const std::string& path = capture_path();
  {
    exec::capture::CaptureFile file(path, 0);
    ByteWriter events;
    for (uint64_t buffer = 1; buffer <= 4; ++buffer) {
      events.value(uint8_t{1});
      events.value(int64_t{0});
      events.value(buffer);
      events.value(uint64_t{1024});
      events.value(int32_t{-1});
      events.text("array");
      events.text("");
    }
    file.begin();
    file.memory(events.take());
    file.queue(0, "cpu", false);
    // As many times as the list may have commands.
    ByteWriter times;
    size_t commands = bytes.empty() ? 0 : static_cast<uint8_t>(bytes[0]) % 4;
    for (size_t i = 0; i < commands; ++i) {
      times.value(int64_t{1});
      times.value(int64_t{2});
      times.value(int32_t{1});
      times.value(uint8_t{0});
    }
    file.list(1, 1, 0, 1, bytes.substr(std::min<size_t>(bytes.size(), 1)), times.take());
    file.meta("state", "complete");
    file.commit();
  }
  capture::replay(capture::Capture(path));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const size_t limit = set_memory_limit(size_t{256} << 20);
  (void)limit;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    if (bytes.starts_with("SQLite format 3")) {
      read_whole(bytes);
    } else {
      replay_list(bytes);
    }
  } catch (const std::exception&) {
  }
  return 0;
}
