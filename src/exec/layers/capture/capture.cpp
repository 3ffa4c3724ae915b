#include "exec/layers/capture/capture.h"

#include <cstdio>
#include <stdexcept>

#include "base/environment.h"
#include "exec/layers/capture/capture_layer.h"
#include "exec/layers/capture/recording.h"
#include "exec/runtime.h"

namespace holdfast::exec::capture {
namespace {

struct Current {
  sync::Mutex mutex{sync::Rank::capture_control};
  // Guarded by mutex.
  std::shared_ptr<CaptureLayer> layer;
  std::string started_path;  // of a capture that a call began
};

Current& current() {
  static auto* kept = new Current;
  return *kept;
}

void start_layer(const std::string& path, const CaptureOptions& options, std::set<int> old_queues) {
  std::lock_guard guard(current().mutex);
  if (current().layer) {
    throw std::runtime_error(
        "[start_capture] a capture is being recorded already; call stop_capture first");
  }
  current().layer = std::make_shared<CaptureLayer>(path, options, std::move(old_queues));
  layers::add(current().layer);
  current().layer->begin();
  notes_wanted.store(options.contents || options.digests);
}

std::string stop_layer(bool drain) {
  std::shared_ptr<CaptureLayer> layer;
  {
    std::lock_guard guard(current().mutex);
    layer = std::move(current().layer);
    current().layer = nullptr;
    current().started_path.clear();
  }
  if (!layer) return "";
  if (drain) Runtime::get().drain();
  notes_wanted.store(false);
  layers::remove(layer.get());
  return layer->finish();
}

}  // namespace

void start(const std::string& path, const CaptureOptions& options) {
  if (path.empty()) throw std::invalid_argument("[start_capture] expected the path of a file");
  Runtime::get().drain();
  std::set<int> old_queues;
  for (const Stream& stream : Runtime::get().streams()) old_queues.insert(stream.index);
  start_layer(path, options, std::move(old_queues));
  std::lock_guard guard(current().mutex);
  if (current().layer) current().started_path = path;
}

std::string started_path() {
  std::lock_guard guard(current().mutex);
  return current().started_path;
}

void stop() {
  std::string problem = stop_layer(true);
  if (!problem.empty()) {
    throw std::runtime_error("[stop_capture] the capture is not complete: " + problem);
  }
}

void start_from_environment() {
  const environment::Settings& settings = environment::settings();
  if (settings.capture.empty()) return;
  CaptureOptions options;
  options.contents = settings.capture_contents;
  options.digests = settings.capture_digests;
  options.reference_files = settings.capture_references;
  options.skip_lists = settings.capture_skip;
  options.count_lists = settings.capture_count;
  try {
    start_layer(settings.capture, options, {});  // the runtime starts: there are no queues
  } catch (const std::exception& error) {
    // The program has not asked for it, and goes on.
    std::fprintf(stderr, "[holdfast] nothing is captured: %s\n", error.what());
  }
}

void stop_at_exit() noexcept {
  std::string problem = stop_layer(false);
  if (!problem.empty()) {
    std::fprintf(stderr, "[holdfast] the capture is not complete: %s\n", problem.c_str());
  }
}

}  // namespace holdfast::exec::capture
