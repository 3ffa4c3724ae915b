#include "graph/op_note.h"

#include <optional>
#include <stdexcept>

#include "devices/memory.h"

namespace holdfast {
namespace {

template <class T>
constexpr bool is_list = requires(T t) { t.push_back(t[0]); } && !std::is_same_v<T, std::string>;

void write(ByteWriter& out, const Dtype& dtype) { out.value(static_cast<uint8_t>(dtype.val())); }
void write(ByteWriter& out, const std::string& text) { out.text(text); }
template <class T>
  requires std::is_arithmetic_v<T>
void write(ByteWriter& out, T value) {
  out.value(value);
}
void write(ByteWriter& out, const std::tuple<bool, bool, bool>& flags) {
  auto [a, b, c] = flags;
  out.value(static_cast<uint8_t>(a | b << 1 | c << 2));
}
void write(ByteWriter& out, const std::optional<float>& value) {
  out.value(value.has_value());
  out.value(value.value_or(0.0f));
}
template <class... T>
void write(ByteWriter& out, const std::variant<T...>& value);
template <class T>
  requires is_list<T>
void write(ByteWriter& out, const T& list) {
  out.value(static_cast<uint64_t>(list.size()));
  for (const auto& element : list) {
    write(out, static_cast<const typename T::value_type&>(element));
  }
}
template <class... T>
void write(ByteWriter& out, const std::variant<T...>& value) {
  out.value(static_cast<uint8_t>(value.index()));
  std::visit([&](const auto& v) { write(out, v); }, value);
}

void read(ByteReader& in, bool& value) { value = in.boolean(); }
template <class T>
  requires std::is_arithmetic_v<T>
void read(ByteReader& in, T& value) {
  value = in.value<T>();
}
void read(ByteReader& in, Dtype& dtype) {
  auto value = in.value_up_to<uint8_t>(static_cast<uint8_t>(Dtype::Val::complex64));
  for (Dtype known : {bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16,
                      float32, float64, bfloat16, complex64}) {
    if (static_cast<uint8_t>(known.val()) == value) dtype = known;
  }
}
void read(ByteReader& in, std::string& text) { text = in.text(); }
void read(ByteReader& in, std::tuple<bool, bool, bool>& flags) {
  auto bits = in.value_up_to<uint8_t>(7);
  flags = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
}
void read(ByteReader& in, std::optional<float>& value) {
  bool is_there = in.boolean();
  auto number = in.value<float>();
  if (is_there) value = number;
}
template <class... T>
void read(ByteReader& in, std::variant<T...>& value);
template <class T>
  requires is_list<T>
void read(ByteReader& in, T& list) {
  size_t count = in.count(1);
  for (size_t i = 0; i < count && in.ok(); ++i) {
    typename T::value_type element{};
    read(in, element);
    list.push_back(std::move(element));
  }
}
template <class Alternative, class Variant>
void read_alternative(ByteReader& in, Variant& value) {
  if constexpr (std::is_same_v<Alternative, Dtype>) {
    Dtype dtype = bool_;
    read(in, dtype);
    value = dtype;
  } else {
    Alternative alternative{};
    read(in, alternative);
    value.template emplace<Alternative>(std::move(alternative));
  }
}
template <class... T>
void read(ByteReader& in, std::variant<T...>& value) {
  auto index = in.value_up_to<uint8_t>(sizeof...(T) - 1);
  uint8_t at = 0;
  ((at++ == index ? read_alternative<T>(in, value) : void()), ...);
}

void read(ByteReader& in, OpView& view) {
  view.buffer = in.value<uint64_t>();
  view.offset = in.value<int64_t>();
  read(in, view.dtype);
  read(in, view.shape);
  read(in, view.strides);
}

}  // namespace

OpNoteWriter::OpNoteWriter(std::span<const array> inputs)
    : inputs_(static_cast<uint32_t>(inputs.size())) {
  text_.value(static_cast<uint64_t>(inputs.size()));
  for (const array& input : inputs) view(input);
}

void OpNoteWriter::view(const array& a) {
  bool has_data = a.data_shared_ptr() != nullptr && a.buffer().ptr() != nullptr;
  text_.value(has_data ? exec::buffer_of(a.buffer())->identity() : uint64_t{0});
  text_.value(static_cast<int64_t>(has_data ? a.offset() : 0));
  write(text_, a.dtype());
  write(text_, a.shape());
  write(text_, a.strides());
}

void OpNoteWriter::call(const Record& record, std::span<const uint32_t> operands,
                        std::span<const array> results) {
  text_.text(record.kind);
  text_.value(static_cast<uint64_t>(record.state.size()));
  for (const RecordedValue& value : record.state) write(text_, value);
  text_.value(static_cast<uint64_t>(operands.size()));
  for (uint32_t operand : operands) text_.value(operand);
  text_.value(static_cast<uint64_t>(results.size()));
  for (const array& result : results) {
    write(text_, result.dtype());
    write(text_, result.shape());
  }
}

std::pair<int64_t, int64_t> byte_interval(int64_t offset, size_t item, const Shape& shape,
                                          const Strides& strides) {
  int64_t begin = offset, end = offset + static_cast<int64_t>(item);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return {offset, offset};
    int64_t reach = (shape[i] - 1) * strides[i] * static_cast<int64_t>(item);
    (reach < 0 ? begin : end) += reach;
  }
  return {begin, end};
}

void OpNoteWriter::output(int64_t result, const array& a) {
  text_.value(result);
  view(a);
  if (a.size() == 0 || !a.data_shared_ptr()) return;
  auto [begin, end] = byte_interval(a.offset(), a.itemsize(), a.shape(), a.strides());
  noted_.outputs.push_back({exec::buffer_of(a.buffer())->identity(), begin, end});
}

exec::NotedOp OpNoteWriter::single(Primitive& primitive, std::span<const array> outputs,
                                   bool is_native) {
  std::optional<Record> record;
  if (is_native) {
    if (auto* op = dynamic_cast<Op*>(&primitive)) record = op->record();
  }
  text_.value(static_cast<uint64_t>(record ? 1 : 0));
  if (record) {
    std::vector<uint32_t> operands(inputs_);
    for (uint32_t i = 0; i < inputs_; ++i) operands[i] = i;
    call(*record, operands, outputs);
  }
  text_.value(static_cast<uint64_t>(outputs.size()));
  for (size_t i = 0; i < outputs.size(); ++i) {
    output(record ? static_cast<int64_t>(i) : int64_t{-1}, outputs[i]);
  }
  using Replay = exec::NotedOp::Replay;
  noted_.replay = !is_native ? Replay::commands : record ? Replay::call : Replay::none;
  noted_.text = text_.take();
  return std::move(noted_);
}

exec::NotedOp OpNoteWriter::group(std::span<const array> nodes, std::span<const FusedStep> steps) {
  text_.value(static_cast<uint64_t>(steps.size()));
  uint64_t outputs = 0;
  for (size_t k = 0; k < steps.size(); ++k) {
    const FusedStep& step = steps[k];
    std::optional<Record> record = static_cast<Op&>(nodes[k].primitive()).record();
    std::vector<uint32_t> operands;
    for (int i = 0; i < step.arity; ++i) {
      uint32_t value = step.values[i];
      operands.push_back(value >= FusedStep::result ? inputs_ + value - FusedStep::result : value);
    }
    call(record.value_or(Record{}), operands, nodes.subspan(k, 1));
    if (step.output) ++outputs;
  }
  text_.value(outputs);
  for (size_t k = 0; k < steps.size(); ++k) {
    if (!steps[k].output) continue;
    output(static_cast<int64_t>(k), *steps[k].output);
  }
  noted_.replay = exec::NotedOp::Replay::call;
  noted_.text = text_.take();
  return std::move(noted_);
}

OpNote read_op_note(std::string_view text) {
  ByteReader in(text);
  OpNote note;
  for (size_t i = in.count(1); i > 0 && in.ok(); --i) read(in, note.inputs.emplace_back());
  size_t results = 0;
  for (size_t i = in.count(1); i > 0 && in.ok(); --i) {
    OpNote::Call& call = note.calls.emplace_back();
    call.record.kind = in.text();
    for (size_t k = in.count(1); k > 0 && in.ok(); --k) read(in, call.record.state.emplace_back());
    for (size_t k = in.count(4); k > 0 && in.ok(); --k) {
      call.operands.push_back(in.value<uint32_t>());
      if (call.operands.back() >= note.inputs.size() + results) {
        throw std::invalid_argument("an op refers to a value that is not there");
      }
    }
    for (size_t k = in.count(1); k > 0 && in.ok(); --k) {
      OpNote::Result& result = call.results.emplace_back();
      read(in, result.dtype);
      read(in, result.shape);
      ++results;
    }
  }
  for (size_t i = in.count(1); i > 0 && in.ok(); --i) {
    OpNote::Output& output = note.outputs.emplace_back();
    output.result = in.value<int64_t>();
    read(in, output.view);
    if (output.result < -1 || output.result >= static_cast<int64_t>(results)) {
      throw std::invalid_argument("an output refers to a result that is not there");
    }
  }
  if (!in.is_done()) throw std::invalid_argument("the description of an op is damaged");
  return note;
}

}  // namespace holdfast
