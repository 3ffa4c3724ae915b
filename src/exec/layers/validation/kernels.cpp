// kernels: what the threads of a dispatch do wrong, found by a checked pipeline that runs in place
// of the kernel (devices/cpu/jit/kernel_checker.h): the same source, each of its accesses looked
// at.
//
// A kernel that has no source (a function of this program) is not looked at. Memory counts as
// written by nobody when it was made for an op's output and no command has written to it yet: what
// the host has made or may have written is never reported.
#include <cstdio>
#include <cstring>
#include <string_view>

#include "exec/kernel_library.h"
#include "exec/layers/validation/messages.h"
#include "exec/layers/validation/validator.h"

namespace holdfast::validation {
namespace {

const Ref<const KernelRequest>& request_of(const Pipeline& pipeline) {
  return *static_cast<const Ref<const KernelRequest>*>(pipeline.origin.get());
}

bool has_same_arguments(const Pipeline& a, const Pipeline& b) {
  const auto &left = a.interface().arguments, &right = b.interface().arguments;
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const msl::KernelArgument& one, const msl::KernelArgument& other) {
                      return one.kind == other.kind && one.slot == other.slot;
                    });
}

bool has_checked_twin(const KernelRequest& request) {
  const uint64_t checked = request.target().checked_variant();
  return checked != 0 && request.options().variant != checked;
}

// Null when the kernel cannot be looked at; says why.
Ref<const Pipeline> make_checked(const Pipeline& pipeline) {
  try {
    const KernelRequest& request = *request_of(pipeline);
    exec::KernelOptions options = request.options();
    options.variant = request.target().checked_variant();
    options.guarded = false;
    Ref<const Pipeline> checked = exec::KernelLibrary::get().get(
        make_ref<KernelRequest>(request.source(), options, request.target()));
    if (!has_same_arguments(pipeline, *checked)) throw std::runtime_error("its arguments differ");
    return checked;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "holdfast: kernel \"%s\" runs unchecked: %s\n", pipeline.name().c_str(),
                 error.what());
    return nullptr;
  }
}

// A line of the user's text, without the blanks around it; empty when it is not known.
std::string line_of(const msl::KernelSource& source, const std::string& part, uint32_t line) {
  if (line == 0) return "";
  std::string_view rest = source.text;
  for (const msl::SourcePart& one : source.parts) {
    if (one.name == part) rest = rest.substr(one.begin, one.end - one.begin);
  }
  for (; line > 1 && !rest.empty(); --line) {
    rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  }
  rest = rest.substr(0, rest.find('\n'));
  const size_t first = rest.find_first_not_of(" \t"), last = rest.find_last_not_of(" \t\r");
  return first == rest.npos ? "" : std::string(rest.substr(first, last - first + 1));
}

messages::KernelPlaces places_of(const Pipeline& pipeline, const exec::KernelFinding& finding) {
  messages::KernelPlaces places;
  if (pipeline.origin) {
    const msl::KernelSource& source = request_of(pipeline)->source();
    places.source = line_of(source, finding.part, finding.line);
    places.other_source = line_of(source, finding.other_part, finding.other_line);
  }
  const auto& arguments = pipeline.interface().arguments;
  if (finding.buffer < arguments.size()) places.slot = arguments[finding.buffer].slot;
  return places;
}

}  // namespace

Ref<const Pipeline> Validator::on_dispatch(const Pipeline& pipeline,
                                           std::span<exec::BoundSlot> slots) {
  if (!checks_.has(Check::kernels) || !pipeline.origin) return nullptr;
  if (request_of(pipeline)->target().checked_variant() == 0) return nullptr;
  Ref<const Pipeline> checked;
  bool is_known = false;
  {
    std::lock_guard guard(mutex_);
    for (exec::BoundSlot& slot : slots) {
      BufferRecord* buffer = slot.buffer ? find(slot.buffer->identity(), guard) : nullptr;
      slot.has_contents = !buffer || slot.is_input || buffer->is_written;
    }
    auto found = checked_.find(pipeline.identity());
    is_known = found != checked_.end();
    if (is_known) checked = found->second;
  }
  return is_known ? checked : check_kernel(pipeline);
}

Ref<const Pipeline> Validator::check_kernel(const Pipeline& pipeline) {
  // With a queue locked: the library is asked for the kernel again without.
  const Ref<const KernelRequest>& request = request_of(pipeline);
  if (exec::KernelLibrary::only_finds && has_checked_twin(*request)) throw exec::NotReady{request};
  Ref<const Pipeline> checked = make_checked(pipeline);
  std::lock_guard guard(mutex_);
  checked_.emplace(pipeline.identity(), checked);
  return checked;
}

void Validator::make_checked_twin(const KernelRequest& request, const Pipeline& pipeline) {
  if (!has_checked_twin(request)) return;
  {
    std::lock_guard guard(mutex_);
    if (checked_.contains(pipeline.identity())) return;
  }
  check_kernel(pipeline);
}

void Validator::note_writes(const Seen& seen, sync::Held held) {
  for (const exec::Binding& binding : seen.bindings) {
    BufferRecord* buffer = binding.writes ? find(binding.identity, held) : nullptr;
    if (buffer) buffer->is_written = true;
  }
}

Ref<exec::Failure> Validator::on_kernel_findings(const CommandList& list, const Command& command,
                                                 std::span<const exec::KernelFinding> findings) {
  if (!checks_.has(Check::kernels)) return nullptr;
  Reports reports;
  for (const exec::KernelFinding& finding : findings) {
    const messages::KernelPlaces places = places_of(*command.pipeline, finding);
    std::lock_guard guard(mutex_);
    reports.push_back(messages::kernel_finding(side_of(list, command, guard), places, finding));
  }
  return deliver_to_command(reports);
}

}  // namespace holdfast::validation
