// Replay: runs a capture again, in this process, on queues of its own.
//
// Commands that are plain data (dispatch, copy, fill) are encoded as they were. Native commands are
// code, which no file holds: their op is called again with what it was made of, and its results go
// where they went. Ops of the user's own that are native have their results written as recorded.
// Residency is state: the wired limit of the capture holds while it is replayed, and nothing is
// ever attached by a command.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "capture/capture.h"

namespace holdfast::capture {

struct ReplayOptions {
  int64_t passes = 1;
  // Commands, by number, that are checked and timed; what comes before runs, since its results are
  // needed, and what comes behind does not.
  int64_t first = 0, last = INT64_MAX;
  // Called with what a command wrote, where the capture has a digest of it.
  std::function<void(const Digest&, std::string_view)> on_output = {};
};

struct Difference {
  int64_t pass = 0, number = 0;  // of the command
  std::string op, label;
  uint64_t buffer = 0;
};

struct ReplayResult {
  int64_t passes = 0;
  int64_t commands = 0;                 // of a pass, that were run
  int64_t checked = 0;                  // digests compared, in all passes
  std::vector<Difference> differences;  // the first one of each pass that has one
  std::vector<double> seconds;          // of each pass, without the time of preparing its memory
  size_t most_sets = 0;                 // residency sets in use at the same time
  size_t most_wired = 0;                // bytes
  std::map<std::string, double> seconds_by_op;
};

// Throws std::runtime_error when the capture cannot be replayed, and what running it throws.
ReplayResult replay(const Capture& capture, const ReplayOptions& options = {});

}  // namespace holdfast::capture
