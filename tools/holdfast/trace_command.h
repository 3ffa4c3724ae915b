// The subcommands of `holdfast trace`, each on captures that were read.
#pragma once

#include <string>
#include <vector>

#include "capture/capture.h"

namespace holdfast::tool {

void print_capture_info(const capture::Capture& capture);
void print_capture_list(const capture::Capture& capture);
// Throws std::runtime_error when there is no such command.
void print_capture_command(const capture::Capture& capture, int64_t number);
// 0 when there is no difference in what was run and written, 1 when there is.
int print_capture_difference(const capture::Capture& a, const capture::Capture& b);

// What a kernel of a capture is compiled to here. Compiles it, and runs nothing; where that does
// not work, the summary says why.
struct LoweredKernel {
  std::string summary, assembly;
};
LoweredKernel lower_again(const capture::Pipeline& pipeline);

// Chrome's trace format, which Perfetto reads.
std::string perfetto_json(const capture::Capture& capture);
// One page of HTML with everything in it.
std::string report_html(const capture::Capture& capture);
extern const char* const report_page_head;
extern const char* const report_page_tail;

// Throws std::runtime_error when it cannot be written.
void write_text_file(const std::string& path, const std::string& text);

}  // namespace holdfast::tool
