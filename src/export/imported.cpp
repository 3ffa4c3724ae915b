// Calls of imported functions: the trace is found, and its calls are made again by the functions
// that the user would call. compile keeps what came of it.
#include "export/imported.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include <holdfast/compile.h>
#include <holdfast/transforms_impl.h>

#include "export/function_file.h"
#include "ops/recorded_calls.h"
#include "ops/support.h"
#include "transforms/differentiate.h"

namespace holdfast {

namespace {

// More streams than this are not made for a file.
constexpr size_t most_new_streams = 64;

struct Trace {
  SavedTrace saved;
  std::vector<std::optional<Stream>> streams;  // of the calls; none: the thread's default one
  std::function<Args(const Args&)> call;
};

bool fits(const SavedValue& expected, const array& given, bool shapeless) {
  return given.dtype() == expected.dtype &&
         (shapeless ? given.ndim() == expected.shape.size() : given.shape() == expected.shape);
}

std::string described(const SavedTrace& trace, bool shapeless) {
  std::string result = "(";
  for (size_t i = 0; i < trace.inputs.size(); ++i) {
    const SavedValue& input = trace.inputs[i];
    if (i > 0) result += ", ";
    if (i >= trace.positional_count()) result += trace.keywords[i - trace.positional_count()] + "=";
    result += shapeless ? text(input.dtype, " of ", input.shape.size(), " dimensions")
                        : text(input.dtype, " ", input.shape);
  }
  return result + ")";
}

}  // namespace

struct ImportedFunction::State {
  bool shapeless;
  std::string metadata;
  std::vector<array> constants;
  std::vector<Trace> traces;

  // The values of a trace, given its inputs. What the file says of shapes and dtypes must come of
  // it; std::invalid_argument and others where an op refuses its arguments.
  Args build(const Trace& trace, const Args& inputs) const {
    Args values = inputs;
    for (uint32_t constant : trace.saved.constants) values.push_back(constants[constant]);
    for (size_t i = 0; i < trace.saved.calls.size(); ++i) {
      const SavedCall& saved = trace.saved.calls[i];
      RecordedCall call{{}, {}, {}, trace.streams[i].value_or(default_stream(saved.device))};
      for (uint32_t input : saved.inputs) call.inputs.push_back(values[input]);
      for (const SavedValue& output : saved.outputs) {
        call.shapes.push_back(output.shape);
        call.dtypes.push_back(output.dtype);
      }
      try {
        Args outputs = call_again(saved.record, call);
        check(saved, outputs);
        values.insert(values.end(), outputs.begin(), outputs.end());
      } catch (const std::logic_error& error) {
        throw std::invalid_argument(text("[import_function] call ", i, " of ", saved.record.kind,
                                         " in the trace for ", described(trace.saved, shapeless),
                                         ": ", error.what()));
      }
    }
    Args outputs;
    for (uint32_t output : trace.saved.outputs) outputs.push_back(values[output]);
    return outputs;
  }

  void check(const SavedCall& saved, const Args& outputs) const {
    if (outputs.size() != saved.outputs.size()) {
      throw std::invalid_argument(
          text("expected ", saved.outputs.size(), " outputs, got ", outputs.size()));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!fits(saved.outputs[i], outputs[i], shapeless)) {
        throw std::invalid_argument(text("output ", i, " should be ", saved.outputs[i].dtype,
                                         " of shape ", saved.outputs[i].shape, ", got ",
                                         outputs[i].dtype(), " of shape ", outputs[i].shape()));
      }
    }
  }

  const Trace& find(const Args& args, const std::map<std::string, array>& kwargs) const {
    for (const Trace& trace : traces) {
      const SavedTrace& saved = trace.saved;
      size_t positional = saved.positional_count(), i = 0;
      if (args.size() != positional || kwargs.size() != saved.keywords.size()) continue;
      bool is_it = true;
      for (const array& given : args) {
        is_it = is_it && fits(saved.inputs[i++], given, shapeless);
      }
      for (const auto& [keyword, given] : kwargs) {
        is_it = is_it && keyword == saved.keywords[i - positional] &&
                fits(saved.inputs[i], given, shapeless);
        ++i;
      }
      if (is_it) return trace;
    }
    std::string message = "[import_function] no trace was saved for (";
    const char* comma = "";
    for (const array& given : args) {
      message += text(comma, given.dtype(), " ", given.shape());
      comma = ", ";
    }
    for (const auto& [keyword, given] : kwargs) {
      message += text(comma, keyword, "=", given.dtype(), " ", given.shape());
      comma = ", ";
    }
    message += "); the file has";
    for (const Trace& trace : traces) message += "\n  " + described(trace.saved, shapeless);
    if (traces.empty()) message += " none";
    throw std::invalid_argument(message);
  }
};

namespace {

// Streams of the file by their number: those that this process has, and new ones for others.
class StreamTable {
 public:
  Stream find(const SavedCall& call) {
    auto known = streams_.find({*call.stream, call.device});
    if (known != streams_.end()) return known->second;
    for (const Stream& stream : get_streams()) {
      if (stream == Stream(*call.stream, call.device)) return add(call, stream);
    }
    if (made_++ == most_new_streams) {
      throw std::runtime_error(
          text("[import_function] the file names more than ", most_new_streams, " new streams"));
    }
    return add(call, new_stream(call.device));
  }

 private:
  struct Key {
    int index;
    Device device;
    bool operator<(const Key& other) const {
      return index != other.index ? index < other.index : device < other.device;
    }
  };
  Stream add(const SavedCall& call, Stream stream) {
    streams_.emplace(Key{*call.stream, call.device}, stream);
    return stream;
  }
  std::map<Key, Stream> streams_;
  size_t made_ = 0;
};

}  // namespace

ImportedFunction import_function(std::shared_ptr<io::Reader> reader) {
  SavedFunction saved = read_function(reader);
  auto state = std::make_shared<ImportedFunction::State>();
  state->shapeless = saved.shapeless;
  state->metadata = std::move(saved.metadata);
  state->constants = std::move(saved.constants);
  StreamTable streams;
  for (SavedTrace& trace : saved.traces) {
    Trace& added = state->traces.emplace_back();
    added.saved = std::move(trace);
    for (const SavedCall& call : added.saved.calls) {
      if (!is_available(call.device)) {
        throw std::runtime_error(
            text("[import_function] ", reader->label(), " needs a device that is not here"));
      }
      added.streams.push_back(call.stream ? std::optional(streams.find(call)) : std::nullopt);
    }
  }
  // Once, without values: what cannot be called is said now.
  for (const Trace& trace : state->traces) {
    detail::InTracing tracing;
    Args inputs;
    for (const SavedValue& input : trace.saved.inputs) {
      inputs.push_back(detail::placeholder(input.shape, input.dtype));
    }
    try {
      state->build(trace, inputs);
    } catch (const std::logic_error& error) {
      throw std::runtime_error(text(error.what(), ", in ", reader->label()));
    }
  }
  // The compiled functions belong to the state: they must not own it.
  for (Trace& trace : state->traces) {
    trace.call = compile(std::function<Args(const Args&)>(
        [state = state.get(), &trace](const Args& inputs) { return state->build(trace, inputs); }));
  }
  return ImportedFunction(std::move(state));
}

ImportedFunction import_function(const std::string& file) {
  return import_function(std::make_shared<io::ParallelFileReader>(file));
}

ImportedFunction::ImportedFunction(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Args ImportedFunction::operator()(const Args& args) const { return (*this)(args, Kwargs{}); }
Args ImportedFunction::operator()(const Kwargs& kwargs) const { return (*this)(Args{}, kwargs); }

Args ImportedFunction::operator()(const Args& args, const Kwargs& kwargs) const {
  std::map<std::string, array> sorted(kwargs.begin(), kwargs.end());
  const Trace& trace = state_->find(args, sorted);
  Args inputs = args;
  for (const auto& [keyword, given] : sorted) inputs.push_back(given);
  return trace.call(inputs);
}

const std::string& ImportedFunction::metadata() const { return state_->metadata; }

}  // namespace holdfast
