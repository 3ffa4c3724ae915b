#include "exec/layers/validation/messages.h"

#include <algorithm>

namespace holdfast::validation::messages {
namespace {

std::string number(auto value) { return std::to_string(value); }
std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string plural(uint64_t count, const char* what) {
  return number(count) + " " + what + (count == 1 ? "" : "s");
}

// "dispatch of kernel "axpy" by Scale (label model/layer0)".
std::string name_of(const Side& side) {
  std::string text = side.kernel ? "the dispatch of kernel " + quoted(*side.kernel)
                                 : "command " + quoted(side.detail);
  text += std::string(" of op ") + side.op;
  if (side.label) text += " (label " + *side.label + ")";
  return text;
}

std::string name_of(const BufferRecord& buffer) {
  std::string text = "buffer #" + number(buffer.identity) + " (" + plural(buffer.size, "byte") +
                     ", made by " + buffer.op;
  if (buffer.label) text += ", label " + *buffer.label;
  return text + ")";
}

std::string name_of(const Argument& argument) {
  return "argument " + quoted(argument.name) + " (slot " + number(argument.slot) + ")";
}

struct Builder {
  Report report;
  explicit Builder(const char* id) {
    const KindRow& row = kind(id);
    report.id = row.id;
    report.severity = row.severity;
    report.advice = row.advice;
    add("id", row.id);
    add("severity", name_of(row.severity));
  }
  Builder& add(const std::string& key, std::string value) {
    report.fields.emplace_back(key, std::move(value));
    return *this;
  }
  Builder& add(const Side& side, const std::string& prefix = "") {
    add(prefix + "op", side.op);
    add(prefix + "command", side.detail);
    if (side.label) add(prefix + "label", *side.label);
    if (side.kernel) add(prefix + "kernel", *side.kernel);
    add(prefix + "list", number(side.serial));
    return add(prefix + "index", number(side.command));
  }
  Builder& add(const BufferRecord& buffer) {
    add("buffer", number(buffer.identity));
    add("buffer_bytes", number(buffer.size));
    add("buffer_op", buffer.op);
    if (buffer.label) add("buffer_label", *buffer.label);
    return *this;
  }
  Builder& add(const Argument& argument, const std::string& prefix = "") {
    add(prefix + "argument", argument.name);
    return add(prefix + "slot", number(argument.slot));
  }
  Report say(std::string sentence) {
    report.sentence = std::move(sentence);
    return std::move(report);
  }
};

std::string state_of(bool is_open) {
  return is_open ? "in a list that is still open" : "in flight";
}

std::string range(uint64_t begin, uint64_t end) { return number(begin) + "-" + number(end); }

}  // namespace

Report buffer_released(const BufferRecord& buffer, const Side& user, bool is_bound, bool is_open) {
  Builder builder(is_bound ? "lifetime.buffer-released" : "lifetime.temporary-not-bound");
  builder.add(user).add(buffer).add("state", is_open ? "open" : "in-flight");
  return builder.say(name_of(buffer) + " was released while " + name_of(user) +
                     (is_bound ? ", which is bound to it, was "
                               : ", which holds its address without being bound to it, was ") +
                     state_of(is_open));
}

Report pipeline_released(const std::string& name, const Side& user, bool is_open) {
  Builder builder("lifetime.pipeline-released");
  builder.add(user).add("pipeline", name).add("state", is_open ? "open" : "in-flight");
  return builder.say("the pipeline of kernel " + quoted(name) + " was released while " +
                     name_of(user) + " was " + state_of(is_open));
}

Report hazard(const char* id, const BufferRecord& buffer, const Access& earlier,
              const Access& later) {
  bool is_read = std::string_view(id) == "hazards.read-after-write";
  bool was_read = std::string_view(id) == "hazards.write-after-read";
  uint64_t begin = std::max(earlier.begin, later.begin) - buffer.address;
  uint64_t end = std::min(earlier.end, later.end) - buffer.address;
  std::string where = earlier.side.queue != later.side.queue     ? "queues"
                      : earlier.side.serial != later.side.serial ? "lists"
                                                                 : "list";
  Builder builder(id);
  builder.add(later.side).add(earlier.side, "other_").add(buffer);
  builder.add("bytes", range(begin, end)).add("across", where);
  return builder.say(name_of(later.side) + (is_read ? " reads" : " writes") + " bytes " +
                     number(begin) + " to " + number(end) + " of " + name_of(buffer) + ", which " +
                     name_of(earlier.side) + (was_read ? " reads" : " writes") +
                     (where == "list" ? " in the same list" : " on another stream") +
                     ", and nothing orders the two");
}

Report host_read(const BufferRecord& buffer, const Access& write, uintptr_t begin, uintptr_t end) {
  begin = std::max(begin, write.begin) - buffer.address;
  end = std::min(end, write.end) - buffer.address;
  Builder builder("hazards.host-read");
  builder.add("op", "host").add(write.side, "other_").add(buffer).add("bytes", range(begin, end));
  return builder.say("the host asked for bytes " + number(begin) + " to " + number(end) + " of " +
                     name_of(buffer) + ", and nobody has waited for " + name_of(write.side) +
                     ", which writes them");
}

Report input_changed(const BufferRecord& buffer, const Access& read) {
  uint64_t begin = read.begin - buffer.address, end = read.end - buffer.address;
  Builder builder("host-writes.input-changed");
  builder.add("op", "host").add(read.side, "other_").add(buffer).add("bytes", range(begin, end));
  return builder.say("the host changed bytes between " + number(begin) + " and " + number(end) +
                     " of " + name_of(buffer) + " while " + name_of(read.side) +
                     ", which reads them, had been encoded and had not completed");
}

Report pointer_kept(const BufferRecord& buffer, const Side& write, const char* device) {
  Builder builder("host-writes.pointer-kept");
  builder.add("op", "host").add(write, "other_").add(buffer).add("device", device);
  return builder.say("the host asked for the address of " + name_of(buffer) + ", which " +
                     name_of(write) + " writes on the " + device +
                     ": what is at that address is no longer the array");
}

Report out_of_range(const BufferRecord& buffer, const Side& side, int64_t begin, int64_t end,
                    bool writes) {
  Builder builder("bindings.out-of-range");
  builder.add(side).add(buffer).add("bytes", number(begin) + "-" + number(end));
  builder.add("access", writes ? "write" : "read");
  return builder.say(name_of(side) + (writes ? " writes" : " reads") + " bytes " + number(begin) +
                     " to " + number(end) + " of " + name_of(buffer));
}

Report too_small(const Side& side, const Argument& argument, int64_t bound, uint32_t wanted) {
  Builder builder("bindings.too-small");
  builder.add(side).add(argument).add("bound_bytes", number(bound));
  builder.add("element_bytes", number(wanted));
  return builder.say(name_of(side) + " binds " + plural(static_cast<uint64_t>(bound), "byte") +
                     " to " + name_of(argument) + ", of which one element has " + number(wanted));
}

Report misaligned(const Side& side, const Argument& argument, const BufferRecord& buffer,
                  int64_t offset, uint64_t alignment, uint32_t item_size) {
  Builder builder("bindings.misaligned");
  builder.add(side).add(argument).add(buffer).add("offset", number(offset));
  builder.add("alignment", number(alignment)).add("item_bytes", number(item_size));
  return builder.say(name_of(side) + " binds " + name_of(argument) + " to byte " + number(offset) +
                     " of " + name_of(buffer) + ", and needs an address that is a multiple of " +
                     number(alignment));
}

Report kept(const Side& side, const Argument& argument, const std::string& bound_for) {
  Builder builder("bindings.kept");
  builder.add(side).add(argument).add("other_kernel", bound_for);
  return builder.say(name_of(side) + " finds in " + name_of(argument) +
                     " what was bound for a dispatch of kernel " + quoted(bound_for));
}

Report input_written(const Side& side, const Argument& argument, const BufferRecord& buffer) {
  Builder builder("bindings.input-written");
  builder.add(side).add(argument).add(buffer);
  return builder.say(name_of(side) + " writes " + name_of(argument) + ", to which " +
                     name_of(buffer) + " was bound as an input");
}

Report same_memory(const Side& side, const Argument& written, const Argument& other,
                   const BufferRecord& buffer) {
  Builder builder("bindings.same-memory");
  builder.add(side).add(written).add(other, "other_").add(buffer);
  return builder.say(name_of(side) + " writes " + name_of(written) + ", which shares memory of " +
                     name_of(buffer) + " with " + name_of(other));
}

Report left_over(const Side& side, const Argument& argument, const BufferRecord* buffer,
                 int64_t offset) {
  Builder builder("bindings.left-over");
  builder.add(side).add(argument).add("offset", number(offset));
  if (buffer) builder.add(*buffer);
  return builder.say(name_of(side) + " uses byte " + number(offset) + " of " +
                     (buffer ? name_of(*buffer) : std::string("a binding that it does not have")) +
                     " for " + name_of(argument) + " without being bound to it");
}

Report other_source(const std::string& name, const std::string& made_for, uint64_t line,
                    const std::string& was, const std::string& wanted) {
  Builder builder("cache.other-source");
  builder.add("kernel", name).add("other_kernel", made_for).add("line", number(line));
  builder.add("source", wanted).add("other_source", was);
  return builder.say("kernel " + quoted(name) + " got the pipeline of kernel " + quoted(made_for) +
                     ", whose source differs in line " + number(line) + ": " + quoted(wanted) +
                     " was asked for, it was made from " + quoted(was));
}

Report other_signature(const std::string& name, const std::string& made_for, const std::string& was,
                       const std::string& wanted) {
  Builder builder("cache.other-signature");
  builder.add("kernel", name).add("other_kernel", made_for);
  builder.add("signature", wanted).add("other_signature", was);
  return builder.say("kernel " + quoted(name) + " got the pipeline of kernel " + quoted(made_for) +
                     ", which has other arguments: " + quoted(wanted) +
                     " was asked for, it was made for " + quoted(was));
}

Report buffer_slots(const Side& side, uint32_t slots, uint32_t limit) {
  Builder builder("resources.buffer-slots");
  builder.add(side).add("slots", number(slots)).add("limit", number(limit));
  return builder.say(name_of(side) + " binds " + plural(slots, "slot") + ", Metal has " +
                     number(limit));
}

Report threadgroup_memory(const Side& side, uint64_t bytes, uint64_t limit) {
  Builder builder("resources.threadgroup-memory");
  builder.add(side).add("bytes", number(bytes)).add("limit", number(limit));
  return builder.say(name_of(side) + " wants " + plural(bytes, "byte") +
                     " of threadgroup memory, Metal has " + number(limit));
}

Report live_buffers(const BufferRecord& newest, size_t count, size_t limit) {
  Builder builder("resources.live-buffers");
  builder.add(newest).add("live", number(count)).add("limit", number(limit));
  return builder.say("with " + name_of(newest) + " there are " + plural(count, "buffer") +
                     ", Metal allows " + number(limit));
}

Report limit_reached(const exec::LimitReached& limit) {
  using Kind = exec::LimitReached::Kind;
  struct Row {
    const char *id, *what;
  };
  constexpr Row rows[] = {{"resources.memory-limit", " beyond the memory limit"},
                          {"resources.wired-limit", " that the wired limit has no room for"},
                          {"resources.wired-refused", " that the system refuses to lock"},
                          {"resources.residency-sets", " in a residency set too many"}};
  static_assert(static_cast<size_t>(Kind::residency_sets) + 1 == std::size(rows));
  const Row& row = rows[static_cast<size_t>(limit.kind)];
  bool counts_sets = limit.kind == Kind::residency_sets;
  Builder builder(row.id);
  builder.add("op", limit.op).add("bytes", number(limit.bytes));
  builder.add("used", number(limit.used)).add("limit", number(limit.limit));
  return builder.say(std::string(*limit.op ? limit.op : "an allocation") + " wants " +
                     plural(limit.bytes, "byte") + row.what + ": " + number(limit.used) + " of " +
                     plural(limit.limit, counts_sets ? "set" : "byte") +
                     (counts_sets ? " of a queue" : " are in use"));
}

Report leaked_capture(const std::string& path) {
  Builder builder("resources.leaked-capture");
  builder.add("path", path);
  return builder.say("the capture into " + quoted(path) + " was started and never stopped");
}

Report leaked_stream(int stream, const Side& last) {
  Builder builder("resources.leaked-stream");
  builder.add(last).add("stream", number(stream));
  return builder.say("nobody has waited for the work of stream " + number(stream) +
                     ", of which the last is " + name_of(last));
}

Report leaked_event(int stream, int other_stream, uint64_t serial) {
  Builder builder("resources.leaked-event");
  builder.add("stream", number(stream)).add("other_stream", number(other_stream));
  builder.add("list", number(serial));
  return builder.say("stream " + number(stream) + " was told to wait for list " + number(serial) +
                     " of stream " + number(other_stream) +
                     ", and nothing was submitted to it afterwards");
}

// What instrumented kernels find.
namespace {

using exec::KernelFinding;

std::string identifier_of(const KernelFinding& finding) {
  std::string kind = finding.kind;
  if (kind == "race") {
    const bool is_threadgroup = finding.space == KernelFinding::Space::threadgroup;
    if (finding.writes_same_value) {
      kind = "same-value-race";
    } else if (is_threadgroup && !(finding.writes && finding.other_writes)) {
      kind = "missing-barrier";
    }
  }
  return "kernels." + kind;
}

std::string triple(const uint32_t (&thread)[3]) {
  return number(thread[0]) + "," + number(thread[1]) + "," + number(thread[2]);
}

// " (body:3:7, `out[i] = x;`)"; nothing when it is not known.
std::string place(const std::string& part, uint32_t line, uint32_t column,
                  const std::string& source) {
  if (line == 0) return "";
  std::string text =
      " (" + (part.empty() ? "line " : part + ":") + number(line) + ":" + number(column);
  return text + (source.empty() ? ")" : ", `" + source + "`)");
}

std::string object_of(const KernelFinding& finding, uint32_t slot) {
  if (finding.buffer != KernelFinding::no_buffer) return name_of(Argument{finding.object, slot});
  if (finding.object.empty()) return "memory that no argument has";
  switch (finding.space) {
    case KernelFinding::Space::threadgroup:
      return "threadgroup variable " + quoted(finding.object);
    case KernelFinding::Space::thread:
      return "variable " + quoted(finding.object) + " of the thread";
    default:
      return "constant " + quoted(finding.object);
  }
}

const char* access_of(bool writes) { return writes ? "write" : "read"; }

}  // namespace

Report kernel_finding(const Side& side, const KernelPlaces& places, const KernelFinding& finding) {
  static constexpr const char* spaces[] = {"device", "constant", "threadgroup", "thread"};
  const std::string kind = finding.kind;
  const bool is_access = finding.bytes != 0;
  Builder builder(identifier_of(finding).c_str());
  builder.add(side);
  if (is_access) {
    if (finding.buffer != KernelFinding::no_buffer) {
      builder.add(Argument{finding.object, places.slot});
    } else {
      builder.add("array", finding.object);
    }
    builder.add("space", spaces[static_cast<int>(finding.space)]);
    if (finding.size != KernelFinding::unknown_size) builder.add("size", number(finding.size));
    builder.add("byte", number(finding.byte)).add("bytes", number(finding.bytes));
    builder.add("access", access_of(finding.writes));
  }
  builder.add("thread", triple(finding.thread)).add("part", finding.part);
  builder.add("line", number(finding.line)).add("column", number(finding.column));
  builder.add("source", places.source);
  if (finding.has_other_thread) {
    if (is_access) builder.add("other_access", access_of(finding.other_writes));
    builder.add("other_thread", triple(finding.other_thread)).add("other_part", finding.other_part);
    builder.add("other_line", number(finding.other_line));
    builder.add("other_column", number(finding.other_column));
    builder.add("other_source", places.other_source);
  }
  builder.add("times", number(finding.count));

  const std::string here = place(finding.part, finding.line, finding.column, places.source);
  const std::string there =
      place(finding.other_part, finding.other_line, finding.other_column, places.other_source);
  const std::string one = "thread " + triple(finding.thread),
                    other = "thread " + triple(finding.other_thread);
  std::string sentence = name_of(side) + ": ";
  if (kind == "endless-loop") {
    return builder.say(sentence + "the watchdog stopped it while " + one + " was in a loop" + here);
  }
  if (!is_access) {
    sentence += one + " waits at a barrier" + here + " that " + other;
    if (kind == "barrier-after-return") {
      return builder.say(sentence + ", which has returned, never comes to");
    }
    return builder.say(sentence + " does not come to: it waits at another place" + there);
  }
  sentence += one + (finding.writes ? " writes " : " reads ") + plural(finding.bytes, "byte") +
              " at byte " + number(finding.byte) + " of " + object_of(finding, places.slot);
  if (kind == "out-of-bounds") {
    if (finding.size != KernelFinding::unknown_size) {
      sentence += ", which has " + plural(finding.size, "byte");
    }
    return builder.say(sentence + here);
  }
  sentence += here;
  if (kind == "misaligned") {
    return builder.say(sentence + ": the address is no multiple of the type's alignment");
  }
  if (kind == "uninitialised-read") return builder.say(sentence + ", which nobody has written");
  return builder.say(sentence + ", and " + other + (finding.other_writes ? " writes" : " reads") +
                     " the same" + there + ", with nothing between them that orders the two");
}

Report origin(const Side& side, const BufferRecord& buffer, bool is_nan, const MadeNumbers& made,
              size_t numbers) {
  Builder builder(is_nan ? "nan.made" : "nan.infinity");
  const std::string value = is_nan ? "nan" : made.is_negative ? "-inf" : "inf";
  builder.add(side).add(buffer);
  builder.add("value", value).add("byte", number(made.first_byte));
  builder.add("count", number(made.count)).add("numbers", number(numbers));
  return builder.say(name_of(side) + ", whose inputs are all finite, wrote " + value + " at byte " +
                     number(made.first_byte) + " of " + name_of(buffer) + ": " +
                     number(made.count) + " of " + plural(numbers, "number"));
}

Report host_fallback(const exec::HostFallback& fallback) {
  Builder builder("performance.host-fallback");
  builder.add("op", fallback.op);
  if (*fallback.label) builder.add("label", **fallback.label);
  builder.add("stream", number(fallback.stream)).add("device", fallback.device);
  builder.add("bytes_to_host", number(fallback.bytes_to_host));
  builder.add("bytes_to_device", number(fallback.bytes_to_device));
  return builder.say(std::string("op ") + fallback.op +
                     (*fallback.label ? " (label " + **fallback.label + ")" : "") + " of stream " +
                     number(fallback.stream) + " ran on the host, since the " + fallback.device +
                     " has no kernel for it: " + plural(fallback.bytes_to_host, "byte") +
                     " were copied to the host and " + plural(fallback.bytes_to_device, "byte") +
                     " to the device");
}

Report only_binding(const BufferRecord& buffer, const Side& side) {
  Builder builder("ownership.only-binding");
  builder.add(side).add(buffer);
  return builder.say(name_of(buffer) + ", a temporary of the op, is kept alive by nothing but " +
                     name_of(side));
}

}  // namespace holdfast::validation::messages
