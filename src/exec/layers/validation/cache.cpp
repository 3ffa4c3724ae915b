// cache: the kernel library answered with a pipeline that was made for something else. The first
// request that a pipeline answers says what it was made for.
#include <string_view>

#include "exec/kernel_request.h"
#include "exec/layers/validation/messages.h"
#include "exec/layers/validation/validator.h"

namespace holdfast::validation {
namespace {

// The generated parameters, or the entry of a source that was written whole.
std::string signature_of(const msl::KernelSource& source) {
  for (const msl::SourcePart& part : source.parts) {
    if (part.name == "signature") return source.text.substr(part.begin, part.end - part.begin);
  }
  return source.entry;
}

struct Difference {
  uint64_t line;
  std::string was, wanted;
};

Difference first_difference(std::string_view was, std::string_view wanted) {
  auto next_line = [](std::string_view& rest) {
    size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return line;
  };
  for (uint64_t line = 1; !was.empty() || !wanted.empty(); ++line) {
    std::string_view old_line = next_line(was), new_line = next_line(wanted);
    if (old_line != new_line) return {line, std::string(old_line), std::string(new_line)};
  }
  return {0, "other constants or options", "the same source"};
}

}  // namespace

void Validator::on_pipeline(const KernelRequest& request, const Pipeline& pipeline) {
  if (checks_.has(Check::kernels)) make_checked_twin(request, pipeline);
  if (!checks_.has(Check::cache)) return;
  Reports reports;
  {
    std::lock_guard guard(mutex_);
    const msl::KernelSource& source = request.source();
    PipelineRecord& record = pipelines_[pipeline.identity()];
    if (!record.name) record.name = &*names_.insert(pipeline.name()).first;
    std::string signature = signature_of(source);
    if (record.key.empty()) {
      record.key = request.key();
      record.text = source.text;
      record.signature = std::move(signature);
    } else if (record.key != request.key() && record.signature != signature) {
      reports.push_back(
          messages::other_signature(source.kernel, *record.name, record.signature, signature));
    } else if (record.key != request.key()) {
      Difference found = first_difference(record.text, source.text);
      reports.push_back(
          messages::other_source(source.kernel, *record.name, found.line, found.was, found.wanted));
    }
  }
  deliver(reports);
}

}  // namespace holdfast::validation
