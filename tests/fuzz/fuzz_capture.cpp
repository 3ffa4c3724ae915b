// Captures: the bytes are a whole file, or the commands of a list in a file that is sound
// otherwise, which is then replayed. Exceptions are the answer; anything else is a bug.
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include <holdfast/holdfast.h>

#include "capture/replay.h"
#include "exec/byte_stream.h"

using namespace holdfast;

namespace {

void read_whole(std::string_view bytes) { capture::Capture read(bytes, "fuzzed"); }

void replay_list(std::string_view bytes) {
  static const std::string path = (std::filesystem::temp_directory_path() /
                                   ("holdfast-fuzz-" + std::to_string(::getpid()) + ".hfcap"))
                                      .string();
  {
    exec::capture::CaptureFile file(path, 0);
    exec::ByteWriter events;
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
    exec::ByteWriter times;
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
