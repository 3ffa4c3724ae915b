// resources: limits that leave no room, and what is left over at the end: a capture that nobody
// stopped, work that nobody waited for, waits for events with nothing behind them. None of it is
// known before the end, so that nothing is reported before.
#include "exec/layers/capture/capture.h"
#include "exec/layers/validation/messages.h"
#include "exec/layers/validation/validator.h"
#include "exec/runtime.h"

namespace holdfast::validation {

void Validator::on_limit(const exec::LimitReached& limit) {
  if (!checks_.has(Check::resources)) return;
  deliver_later({messages::limit_reached(limit)});
}

void Validator::on_exit() {
  if (!checks_.has(Check::resources)) return;
  Reports reports;
  if (std::string path = exec::capture::started_path(); !path.empty()) {
    reports.push_back(messages::leaked_capture(path));
  }
  exec::Runtime& runtime = exec::Runtime::get();
  for (const Stream& stream : runtime.streams()) {
    for (const exec::Stamp& wait : runtime.queue(stream).unused_waits()) {
      reports.push_back(
          messages::leaked_event(stream.index, exec::stream_of(wait.queue), wait.serial));
    }
  }
  {
    std::lock_guard guard(mutex_);
    for (const auto& [queue, record] : queues_) {
      if (record.last.serial <= record.observed) continue;
      reports.push_back(
          messages::leaked_stream(exec::stream_of(const_cast<DeviceQueue*>(queue)), record.last));
    }
  }
  deliver_later(reports);
}

}  // namespace holdfast::validation
