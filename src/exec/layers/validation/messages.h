// The text of reports: every sentence of the validator, and the names of its fields.
#pragma once

#include "devices/kernel_finding.h"
#include "exec/layers/layer.h"
#include "exec/layers/validation/records.h"

namespace holdfast::validation::messages {

// `is_open`: the list was not submitted yet.
Report buffer_released(const BufferRecord& buffer, const Side& user, bool is_bound, bool is_open);
Report pipeline_released(const std::string& name, const Side& user, bool is_open);
// `earlier` and `later` overlap in [begin, end) of `buffer`, counted from its start.
Report hazard(const char* id, const BufferRecord& buffer, const Access& earlier,
              const Access& later);
Report host_read(const BufferRecord& buffer, const Access& write, uintptr_t begin, uintptr_t end);
Report input_changed(const BufferRecord& buffer, const Access& read);
Report pointer_kept(const BufferRecord& buffer, const Side& write, const char* device);
Report out_of_range(const BufferRecord& buffer, const Side& side, int64_t begin, int64_t end,
                    bool writes);
// What concerns one argument of a dispatch, or two.
struct Argument {
  std::string name;
  uint32_t slot;
};
Report too_small(const Side& side, const Argument& argument, int64_t bound, uint32_t wanted);
Report misaligned(const Side& side, const Argument& argument, const BufferRecord& buffer,
                  int64_t offset, uint64_t alignment, uint32_t item_size);
Report kept(const Side& side, const Argument& argument, const std::string& bound_for);
Report input_written(const Side& side, const Argument& argument, const BufferRecord& buffer);
Report same_memory(const Side& side, const Argument& written, const Argument& other,
                   const BufferRecord& buffer);
Report left_over(const Side& side, const Argument& argument, const BufferRecord* buffer,
                 int64_t offset);
Report other_source(const std::string& name, const std::string& made_for, uint64_t line,
                    const std::string& was, const std::string& wanted);
Report other_signature(const std::string& name, const std::string& made_for, const std::string& was,
                       const std::string& wanted);
Report buffer_slots(const Side& side, uint32_t slots, uint32_t limit);
Report threadgroup_memory(const Side& side, uint64_t bytes, uint64_t limit);
Report live_buffers(const BufferRecord& newest, size_t count, size_t limit);
Report limit_reached(const exec::LimitReached& limit);
Report leaked_capture(const std::string& path);
Report leaked_stream(int stream, const Side& last);
Report leaked_event(int stream, int other_stream, uint64_t serial);
// The lines of the user's text where it was found, and the slot of the argument.
struct KernelPlaces {
  std::string source, other_source;
  uint32_t slot = 0;
};
Report kernel_finding(const Side& side, const KernelPlaces& places,
                      const exec::KernelFinding& finding);
// Numbers that a command has made: NaNs, or infinities.
struct MadeNumbers {
  size_t count = 0;
  int64_t first_byte = 0;  // of the buffer
  bool is_negative = false;
};
// `numbers`: how many it has written to the buffer, at most.
Report origin(const Side& side, const BufferRecord& buffer, bool is_nan, const MadeNumbers& made,
              size_t numbers);
Report host_fallback(const exec::HostFallback& fallback);
Report only_binding(const BufferRecord& buffer, const Side& side);

}  // namespace holdfast::validation::messages
