// Functions are traced as compile traces them, and their calls recorded.
#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <type_traits>
#include <unordered_map>

#include <holdfast/export.h>
#include <holdfast/transforms.h>
#include <holdfast/transforms_impl.h>

#include "base/hash.h"
#include "export/function_file.h"
#include "io/support.h"
#include "ops/support.h"
#include "transforms/differentiate.h"
#include "transforms/program.h"

namespace holdfast {

static_assert(std::is_same_v<StateT, RecordedValue>);

namespace {

using Function = std::function<Args(const Args&, const Kwargs&)>;

// Values that were seen before have one number, whichever array holds them.
class Constants {
 public:
  explicit Constants(std::vector<array>& constants) : constants_(constants) {}

  uint32_t add(const array& a) {
    array ready = io::ready_to_write(a);
    std::string_view bytes(ready.data<char>(), ready.nbytes());
    auto [first, last] = by_hash_.equal_range(hash_bytes(bytes).low);
    for (auto at = first; at != last; ++at) {
      const array& known = constants_[at->second];
      if (known.dtype() == ready.dtype() && known.shape() == ready.shape() &&
          bytes == std::string_view(known.data<char>(), known.nbytes())) {
        return at->second;
      }
    }
    auto added = static_cast<uint32_t>(constants_.size());
    by_hash_.emplace(hash_bytes(bytes).low, added);
    constants_.push_back(ready);
    return added;
  }

 private:
  std::vector<array>& constants_;
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
};

Record recorded(const Primitive& primitive) {
  const auto* op = dynamic_cast<const Op*>(&primitive);
  std::optional<Record> record;
  if (op != nullptr) record = op->record();
  if (!record) {
    throw std::invalid_argument(
        text("[export_function] ", primitive.name(),
             " cannot be saved: a file holds the ops of Holdfast and custom kernels; write the "
             "function with those, or compute this part outside of it and pass it as an argument"));
  }
  return *record;
}

SavedCall saved_call(const detail::Call& call) {
  const Stream& stream = call.primitive->stream();
  SavedCall result{recorded(*call.primitive), stream.device, stream.index, {}, {}};
  if (stream == default_stream(stream.device)) result.stream.reset();
  for (size_t i = 0; i < call.shapes.size(); ++i) {
    result.outputs.push_back({call.shapes[i], call.dtypes[i]});
  }
  return result;
}

// The calls of a program; those that only hand values on are left out.
SavedTrace saved_trace(const detail::Program& program, SavedTrace trace, Constants& constants) {
  eval(program.constants());
  for (const array& constant : program.constants())
    trace.constants.push_back(constants.add(constant));
  // Numbers in the file, by those of the program.
  std::vector<uint32_t> numbers(trace.inputs.size() + trace.constants.size());
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint32_t>(i);
  auto next = static_cast<uint32_t>(numbers.size());
  auto renumbered = [&](const std::vector<int>& values) {
    std::vector<uint32_t> result;
    for (int value : values) result.push_back(numbers[static_cast<size_t>(value)]);
    return result;
  };
  for (const detail::Call& call : program.calls()) {
    const auto* op = dynamic_cast<const Op*>(call.primitive.get());
    std::vector<uint32_t> inputs = renumbered(call.inputs);
    if (op != nullptr && op->handed_on(0) >= 0) {
      for (size_t i = 0; i < call.outputs.size(); ++i) {
        numbers.push_back(inputs[static_cast<size_t>(op->handed_on(static_cast<int>(i)))]);
      }
      continue;
    }
    SavedCall& saved = trace.calls.emplace_back(saved_call(call));
    saved.inputs = std::move(inputs);
    for (size_t i = 0; i < call.outputs.size(); ++i) numbers.push_back(next++);
  }
  trace.outputs = renumbered(program.outputs());
  return trace;
}

// --- callbacks ---

// A, B, … Z, AA, AB, … in the order in which values are met.
class Names {
 public:
  const std::string& of(uint32_t value) {
    std::string& name = names_[value];
    if (!name.empty()) return name;
    for (size_t rest = ++count_; rest > 0; rest = (rest - 1) / 26) {
      name.insert(name.begin(), static_cast<char>('A' + (rest - 1) % 26));
    }
    return name;
  }

 private:
  std::unordered_map<uint32_t, std::string> names_;
  size_t count_ = 0;
};

using Described = std::vector<std::tuple<std::string, Shape, Dtype>>;

void tell(const ExportCallback& callback, const SavedTrace& trace,
          const std::vector<array>& constants) {
  std::vector<SavedValue> values = trace.inputs;
  for (uint32_t i : trace.constants) values.push_back({constants[i].shape(), constants[i].dtype()});
  for (const SavedCall& call : trace.calls) {
    values.insert(values.end(), call.outputs.begin(), call.outputs.end());
  }
  Names names;
  auto described = [&](const std::vector<uint32_t>& list) {
    Described result;
    for (uint32_t value : list) {
      result.emplace_back(names.of(value), values[value].shape, values[value].dtype);
    }
    return result;
  };
  auto sequence = [](size_t first, size_t count) {
    std::vector<uint32_t> result;
    for (size_t i = 0; i < count; ++i) result.push_back(static_cast<uint32_t>(first + i));
    return result;
  };
  size_t inputs = trace.inputs.size();
  callback({{"type", "inputs"}, {"inputs", described(sequence(0, inputs))}});
  std::vector<std::pair<std::string, std::string>> keywords;
  for (size_t i = 0; i < trace.keywords.size(); ++i) {
    keywords.emplace_back(trace.keywords[i],
                          names.of(static_cast<uint32_t>(trace.positional_count() + i)));
  }
  callback({{"type", "keyword_inputs"}, {"keywords", keywords}});
  callback({{"type", "outputs"}, {"outputs", described(trace.outputs)}});
  std::vector<std::pair<std::string, array>> named;
  for (size_t i = 0; i < trace.constants.size(); ++i) {
    named.emplace_back(names.of(static_cast<uint32_t>(inputs + i)), constants[trace.constants[i]]);
  }
  callback({{"type", "constants"}, {"constants", named}});
  size_t next = inputs + trace.constants.size();
  for (const SavedCall& call : trace.calls) {
    callback({{"type", "primitive"},
              {"name", call.record.kind},
              {"inputs", described(call.inputs)},
              {"outputs", described(sequence(next, call.outputs.size()))},
              {"arguments", call.record.state}});
    next += call.outputs.size();
  }
}

bool is_same_input(const SavedValue& a, const SavedValue& b, bool shapeless) {
  return a.dtype == b.dtype && (shapeless ? a.shape.size() == b.shape.size() : a.shape == b.shape);
}

}  // namespace

// --- FunctionExporter ---

struct FunctionExporter::State {
  Function fun;
  std::string path;         // empty: `callback` gets the traces
  ExportCallback callback;  // empty: they go to the file
  SavedFunction saved;
  Constants constants{saved.constants};
  bool is_closed = false;

  State(Function function, std::string file, ExportCallback told, bool shapeless,
        std::string metadata)
      : fun(std::move(function)), path(std::move(file)), callback(std::move(told)) {
    saved.shapeless = shapeless;
    saved.metadata = std::move(metadata);
  }

  void check_new(const SavedTrace& trace) const {
    for (const SavedTrace& known : saved.traces) {
      if (known.keywords != trace.keywords || known.inputs.size() != trace.inputs.size()) continue;
      if (std::equal(known.inputs.begin(), known.inputs.end(), trace.inputs.begin(),
                     [&](const SavedValue& a, const SavedValue& b) {
                       return is_same_input(a, b, saved.shapeless);
                     })) {
        throw std::invalid_argument(
            "[export_function] a trace for inputs of these shapes and dtypes is in the file");
      }
    }
  }

  void add(const Args& args, const Kwargs& kwargs) {
    if (is_closed) throw std::runtime_error("[export_function] the exporter is closed");
    std::map<std::string, array> sorted(kwargs.begin(), kwargs.end());
    SavedTrace trace;
    for (const array& a : args) trace.inputs.push_back({a.shape(), a.dtype()});
    for (const auto& [keyword, a] : sorted) {
      trace.inputs.push_back({a.shape(), a.dtype()});
      trace.keywords.push_back(keyword);
    }
    check_new(trace);
    std::optional<detail::Program> program;
    {
      detail::InExportTracing tracing(saved.shapeless);
      Args inputs, positional;
      Kwargs named;
      for (const SavedValue& input : trace.inputs) {
        inputs.push_back(detail::placeholder(input.shape, input.dtype));
      }
      positional.assign(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(args.size()));
      for (size_t i = 0; i < trace.keywords.size(); ++i) {
        named.emplace(trace.keywords[i], inputs[args.size() + i]);
      }
      // As it is: gradients stop where they did, and who imports simplifies.
      program.emplace(
          inputs, fun(positional, named),
          detail::ProgramOptions{.simplify = false, .fuse = false, .shapeless = saved.shapeless});
    }
    trace = saved_trace(*program, std::move(trace), constants);
    if (callback) tell(callback, trace, saved.constants);
    saved.traces.push_back(std::move(trace));
  }

  void close() {
    if (is_closed) return;
    is_closed = true;
    if (callback) return;
    io::write_whole_file("export_function", path,
                         [&](io::Writer& writer) { write_function(writer, saved); });
  }
};

FunctionExporter::FunctionExporter(std::unique_ptr<State> state) : state_(std::move(state)) {}
FunctionExporter::FunctionExporter(FunctionExporter&&) noexcept = default;

FunctionExporter::~FunctionExporter() {
  if (!state_ || state_->saved.traces.empty()) return;
  try {
    state_->close();
  } catch (...) {  // close() is there for who wants to know
  }
}

void FunctionExporter::operator()(const Args& args) { state_->add(args, {}); }
void FunctionExporter::operator()(const Kwargs& kwargs) { state_->add({}, kwargs); }
void FunctionExporter::operator()(const Args& args, const Kwargs& kwargs) {
  state_->add(args, kwargs);
}
void FunctionExporter::close() { state_->close(); }

// --- the forms of a function ---

namespace {

Function general(const std::function<Args(const Args&)>& fun) {
  return [fun](const Args& args, const Kwargs& kwargs) {
    if (!kwargs.empty()) {
      throw std::invalid_argument("[export_function] the function takes no arguments by keyword");
    }
    return fun(args);
  };
}
Function general(const std::function<Args(const Kwargs&)>& fun) {
  return [fun](const Args& args, const Kwargs& kwargs) {
    if (!args.empty()) {
      throw std::invalid_argument("[export_function] the function takes arguments by keyword only");
    }
    return fun(kwargs);
  };
}
Function general(const Function& fun) { return fun; }

template <typename F>
FunctionExporter make_exporter(const F& fun, const std::string& file,
                               const ExportCallback& callback, bool shapeless,
                               const std::string& metadata) {
  if (!fun) throw std::invalid_argument("[exporter] expected a function, got none");
  return FunctionExporter(
      std::make_unique<FunctionExporter::State>(general(fun), file, callback, shapeless, metadata));
}

}  // namespace

#define HOLDFAST_EXPORTER(F)                                                                \
  FunctionExporter exporter(const std::string& file, const F& fun, bool shapeless,          \
                            const std::string& metadata) {                                  \
    return make_exporter(fun, file, {}, shapeless, metadata);                               \
  }                                                                                         \
  FunctionExporter exporter(const ExportCallback& callback, const F& fun, bool shapeless) { \
    if (!callback) throw std::invalid_argument("[exporter] expected a callback, got none"); \
    return make_exporter(fun, "", callback, shapeless, "");                                 \
  }
HOLDFAST_EXPORTER(std::function<Args(const Args&)>)
HOLDFAST_EXPORTER(std::function<Args(const Kwargs&)>)
HOLDFAST_EXPORTER(Function)
#undef HOLDFAST_EXPORTER

namespace {
template <typename... Arguments>
void export_once(FunctionExporter made, const Arguments&... arguments) {
  made(arguments...);
  made.close();
}
}  // namespace

void export_function(const std::string& file, const std::function<Args(const Args&)>& fun,
                     const Args& args, bool shapeless, const std::string& metadata) {
  export_once(exporter(file, fun, shapeless, metadata), args);
}
void export_function(const std::string& file, const std::function<Args(const Kwargs&)>& fun,
                     const Kwargs& kwargs, bool shapeless, const std::string& metadata) {
  export_once(exporter(file, fun, shapeless, metadata), kwargs);
}
void export_function(const std::string& file, const Function& fun, const Args& args,
                     const Kwargs& kwargs, bool shapeless, const std::string& metadata) {
  export_once(exporter(file, fun, shapeless, metadata), args, kwargs);
}
void export_function(const ExportCallback& callback, const std::function<Args(const Args&)>& fun,
                     const Args& args, bool shapeless) {
  export_once(exporter(callback, fun, shapeless), args);
}
void export_function(const ExportCallback& callback, const std::function<Args(const Kwargs&)>& fun,
                     const Kwargs& kwargs, bool shapeless) {
  export_once(exporter(callback, fun, shapeless), kwargs);
}
void export_function(const ExportCallback& callback, const Function& fun, const Args& args,
                     const Kwargs& kwargs, bool shapeless) {
  export_once(exporter(callback, fun, shapeless), args, kwargs);
}

}  // namespace holdfast
