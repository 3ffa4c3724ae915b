#include "export/function_file.h"

#include <cstring>

#include <holdfast/transforms.h>

#include "base/byte_stream.h"
#include "base/hash.h"
#include "io/memory_reader.h"
#include "io/support.h"
#include "ops/support.h"

namespace holdfast {

namespace {

constexpr char magic[8] = {'H', 'O', 'L', 'D', 'F', 'U', 'N', 'C'};
constexpr uint32_t version = 1;
constexpr uint64_t constants_alignment = 64;

// Before everything else. The checksum covers the fields before it and the description.
struct Header {
  char magic[8];
  uint32_t version;
  uint32_t is_shapeless;
  uint64_t description_bytes;
  uint64_t constants_bytes;
  Hash128 checksum;
};
static_assert(sizeof(Header) == 48);
constexpr size_t checksum_offset = offsetof(Header, checksum);

Hash128 checksum_of(const Header& header, std::string_view description) {
  std::string covered(reinterpret_cast<const char*>(&header), checksum_offset);
  covered += description;
  return hash_bytes(covered);
}

uint64_t aligned(uint64_t position) {
  return (position + constants_alignment - 1) / constants_alignment * constants_alignment;
}

Hash128 checksum_of(const array& a) { return hash_bytes({a.data<char>(), a.nbytes()}); }

// --- writing ---

template <typename T>
void write_list(ByteWriter& out, const T& values) {
  out.value(static_cast<uint64_t>(values.size()));
  for (const auto& value : values) out.value(value);
}

void write_value(ByteWriter& out, const RecordedValue& value) {
  out.value(static_cast<uint8_t>(value.index()));
  std::visit(
      [&](const auto& v) {
        using T = std::remove_cvref_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>) {
          out.value(static_cast<uint8_t>(v));
        } else if constexpr (std::is_same_v<T, size_t>) {
          out.value(static_cast<uint64_t>(v));
        } else if constexpr (std::is_arithmetic_v<T>) {
          out.value(v);
        } else if constexpr (std::is_same_v<T, Dtype>) {
          out.value(v.val());
        } else if constexpr (std::is_same_v<T, std::string>) {
          out.text(v);
        } else if constexpr (std::is_same_v<T, std::optional<float>>) {
          out.value(static_cast<uint8_t>(v.has_value()));
          out.value(v.value_or(0.0f));
        } else if constexpr (requires { out.value(v[0]); }) {
          write_list(out, v);
        } else {
          // Lists of tuples and of variants: no op has them.
          throw std::invalid_argument("[export_function] a list of this kind cannot be saved");
        }
      },
      value);
}

void write_value(ByteWriter& out, const SavedValue& value) {
  write_list(out, value.shape);
  out.value(value.dtype.val());
}

void write_values(ByteWriter& out, const std::vector<SavedValue>& values) {
  out.value(static_cast<uint64_t>(values.size()));
  for (const SavedValue& value : values) write_value(out, value);
}

void write_trace(ByteWriter& out, const SavedTrace& trace) {
  write_values(out, trace.inputs);
  out.value(static_cast<uint64_t>(trace.keywords.size()));
  for (const std::string& keyword : trace.keywords) out.text(keyword);
  write_list(out, trace.constants);
  out.value(static_cast<uint64_t>(trace.calls.size()));
  for (const SavedCall& call : trace.calls) {
    out.text(call.record.kind);
    out.value(static_cast<uint64_t>(call.record.state.size()));
    for (const RecordedValue& value : call.record.state) write_value(out, value);
    out.value(static_cast<uint8_t>(call.device.type));
    out.value(static_cast<int32_t>(call.device.index));
    out.value(static_cast<int32_t>(call.stream.value_or(-1)));
    write_list(out, call.inputs);
    write_values(out, call.outputs);
  }
  write_list(out, trace.outputs);
}

// --- reading ---

// The description, read front to back; every length is checked against what is left.
class Parser {
 public:
  explicit Parser(io::HeaderReader& from) : from_(from) {}

  template <typename T>
  T number(const char* what) {
    return from_.read_little_endian<T>(what);
  }
  size_t count(size_t least_bytes, const char* what) {
    auto n = number<uint64_t>(what);
    from_.expect(n, least_bytes, what);
    return static_cast<size_t>(n);
  }
  std::string text(const char* what) { return from_.read_text(number<uint64_t>(what), what); }
  template <typename List>
  List list(const char* what) {
    using Element = typename List::value_type;
    List result;
    size_t n = count(sizeof(Element), what);
    for (size_t i = 0; i < n; ++i) result.push_back(number<Element>(what));
    return result;
  }
  bool boolean(const char* what) {
    auto value = number<uint8_t>(what);
    if (value > 1) from_.fail(holdfast::text(what, " is neither 0 nor 1"));
    return value != 0;
  }
  Dtype dtype() {
    auto value = number<uint8_t>("a dtype");
    if (value >= dtype_count) from_.fail(holdfast::text("there is no dtype ", int{value}));
    return dtype_of(static_cast<Dtype::Val>(value));
  }
  SavedValue value(const char* what) {
    Shape shape = list<Shape>(what);
    Dtype type = dtype();
    try {
      checked_size("import_function", shape, type);
    } catch (const std::exception& error) {
      from_.fail(error.what());
    }
    return {std::move(shape), type};
  }
  std::vector<SavedValue> values(const char* what) {
    std::vector<SavedValue> result;
    size_t n = count(9, what);
    for (size_t i = 0; i < n; ++i) result.push_back(value(what));
    return result;
  }
  // Numbers below `limit`.
  std::vector<uint32_t> numbers(uint64_t limit, const char* what) {
    auto result = list<std::vector<uint32_t>>(what);
    for (uint32_t n : result) {
      if (n >= limit) from_.fail(holdfast::text(what, " names value ", n, " of ", limit));
    }
    return result;
  }

  RecordedValue recorded() {
    constexpr const char* what = "a value of a call's state";
    switch (number<uint8_t>(what)) {
      case 0:
        return boolean(what);
      case 1:
        return number<int>(what);
      case 2:
        return static_cast<size_t>(number<uint64_t>(what));
      case 3:
        return number<float>(what);
      case 4:
        return number<double>(what);
      case 5:
        return dtype();
      case 6:
        return list<Shape>(what);
      case 7:
        return list<Strides>(what);
      case 8:
        return list<std::vector<int>>(what);
      case 9:
        return list<std::vector<size_t>>(what);
      case 12: {
        bool is_there = boolean(what);
        auto given = number<float>(what);
        return is_there ? std::optional<float>(given) : std::nullopt;
      }
      case 13:
        return text(what);
      default:
        from_.fail(holdfast::text(what, " has an unknown type"));
    }
  }

  SavedCall call(uint64_t known) {
    SavedCall result{{text("the kind of a call"), {}}, Device::cpu, std::nullopt, {}, {}};
    size_t states = count(2, "the state of a call");
    for (size_t i = 0; i < states; ++i) result.record.state.push_back(recorded());
    auto type = number<uint8_t>("the device of a call");
    auto index = number<int32_t>("the device of a call");
    if (type > 1 || index < 0) from_.fail("there is no such device");
    result.device = Device(type == 0 ? Device::cpu : Device::gpu, index);
    auto stream = number<int32_t>("the stream of a call");
    if (stream < -1) from_.fail(holdfast::text("there is no stream ", stream));
    if (stream >= 0) result.stream = stream;
    result.inputs = numbers(known, "an input of a call");
    result.outputs = values("an output of a call");
    if (result.outputs.empty()) from_.fail("a call has no outputs");
    return result;
  }

  SavedTrace trace(uint64_t constants) {
    SavedTrace result;
    result.inputs = values("an input");
    size_t keywords = count(8, "the keywords");
    if (keywords > result.inputs.size()) from_.fail("there are more keywords than inputs");
    for (size_t i = 0; i < keywords; ++i) {
      result.keywords.push_back(text("a keyword"));
      if (i > 0 && result.keywords[i - 1] >= result.keywords[i]) {
        from_.fail("the keywords are not in order");
      }
    }
    result.constants = numbers(constants, "a constant of a trace");
    uint64_t known = result.inputs.size() + result.constants.size();
    size_t calls = count(30, "the calls");
    for (size_t i = 0; i < calls; ++i) {
      result.calls.push_back(call(known));
      known += result.calls.back().outputs.size();
    }
    result.outputs = numbers(known, "an output");
    return result;
  }

 private:
  io::HeaderReader& from_;
};

Header read_header(io::HeaderReader& from) {
  Header header;
  from.read(&header, sizeof(header), "the header");
  if (std::memcmp(header.magic, magic, sizeof(magic)) != 0) {
    from.fail("this is not a file of functions");
  }
  if (header.version != version) {
    from.fail(text("expected version ", version, ", got ", header.version,
                   header.version > version ? ": a newer Holdfast has written it" : ""));
  }
  if (header.is_shapeless > 1) from.fail("the flag for shapeless traces is neither 0 nor 1");
  from.expect(header.description_bytes, 1, "the description");
  uint64_t start = aligned(sizeof(Header) + header.description_bytes);
  uint64_t expected = header.constants_bytes == 0 ? sizeof(Header) + header.description_bytes
                                                  : start + header.constants_bytes;
  if (header.constants_bytes > from.length() || expected != from.length()) {
    from.fail(text("the header says that there are ", header.description_bytes, " and ",
                   header.constants_bytes, " bytes"));
  }
  return header;
}

struct Place {
  SavedValue value;
  uint64_t offset, bytes;
  Hash128 checksum;
};

}  // namespace

void write_function(io::Writer& writer, const SavedFunction& function) {
  ByteWriter out;
  out.text(function.metadata);
  out.value(static_cast<uint64_t>(function.constants.size()));
  uint64_t end = 0;
  for (const array& constant : function.constants) {
    write_value(out, SavedValue{constant.shape(), constant.dtype()});
    uint64_t offset = aligned(end);
    out.value(offset);
    Hash128 checksum = checksum_of(constant);
    out.value(checksum.low);
    out.value(checksum.high);
    end = offset + constant.nbytes();
  }
  out.value(static_cast<uint64_t>(function.traces.size()));
  for (const SavedTrace& trace : function.traces) write_trace(out, trace);
  std::string description = out.take();

  Header header{};
  std::memcpy(header.magic, magic, sizeof(magic));
  header.version = version;
  header.is_shapeless = function.shapeless ? 1 : 0;
  header.description_bytes = description.size();
  header.constants_bytes = end;
  header.checksum = checksum_of(header, description);
  writer.write(reinterpret_cast<const char*>(&header), sizeof(header));
  io::write_bytes(writer, description);
  uint64_t written = sizeof(header) + description.size();
  uint64_t start = aligned(written);
  end = 0;
  auto fill_up_to = [&](uint64_t position) {
    io::write_bytes(writer, std::string(position - written, '\0'));
    written = position;
  };
  for (const array& constant : function.constants) {
    uint64_t offset = aligned(end);
    if (constant.nbytes() > 0) {
      fill_up_to(start + offset);
      io::write_elements(writer, constant);
      written += constant.nbytes();
    }
    end = offset + constant.nbytes();
  }
  if (end > 0) fill_up_to(start + end);
}

SavedFunction read_function(std::shared_ptr<io::Reader> reader) {
  constexpr const char* op = "import_function";
  io::HeaderReader file(op, *reader);
  Header header = read_header(file);
  // Parsed in memory, at the same positions as in the file.
  std::vector<char> bytes(sizeof(Header) + header.description_bytes);
  reader->read(bytes.data(), bytes.size(), 0);
  std::string_view description(bytes.data() + sizeof(Header), header.description_bytes);
  if (checksum_of(header, description) != header.checksum) {
    file.fail("the checksum does not match: the file is damaged");
  }
  io::MemoryReader memory(std::move(bytes), reader->label());
  io::HeaderReader front(op, memory);
  front.skip(sizeof(Header), "the header");
  Parser parser(front);

  SavedFunction function;
  function.shapeless = header.is_shapeless != 0;
  function.metadata = parser.text("the metadata");
  size_t count = parser.count(9 + 24, "the constants");
  std::vector<Place> places;
  uint64_t end = 0;
  for (size_t i = 0; i < count; ++i) {
    SavedValue value = parser.value("a constant");
    auto offset = parser.number<uint64_t>("a constant");
    auto low = parser.number<uint64_t>("a constant"), high = parser.number<uint64_t>("a constant");
    auto size = static_cast<uint64_t>(checked_size(op, value.shape, value.dtype)) *
                static_cast<uint64_t>(value.dtype.size());
    // One behind the other, so that together they take no more memory than the file has bytes.
    if (offset != aligned(end) || offset > header.constants_bytes ||
        size > header.constants_bytes - offset) {
      front.fail(text("constant ", i, " is not where it should be"));
    }
    end = offset + size;
    places.push_back({std::move(value), offset, size, {low, high}});
  }
  if (end != header.constants_bytes) front.fail("there are bytes behind the constants");
  size_t traces = parser.count(40, "the traces");
  for (size_t i = 0; i < traces; ++i) function.traces.push_back(parser.trace(count));
  if (front.left() != 0) front.fail("there are bytes behind the traces");

  uint64_t start = aligned(sizeof(Header) + header.description_bytes);
  for (const Place& place : places) {
    function.constants.push_back(io::load_elements(reader, start + place.offset, place.value.shape,
                                                   place.value.dtype, false, Device::cpu));
  }
  eval(function.constants);
  for (size_t i = 0; i < count; ++i) {
    if (checksum_of(function.constants[i]) != places[i].checksum) {
      throw std::runtime_error(text("[", op, "] the checksum of constant ", i,
                                    " does not match: ", reader->label(), " is damaged"));
    }
  }
  return function;
}

void seal(std::vector<char>& bytes) {
  Header header;
  if (bytes.size() < sizeof(header)) return;
  std::memcpy(&header, bytes.data(), sizeof(header));
  uint64_t size = std::min<uint64_t>(header.description_bytes, bytes.size() - sizeof(header));
  header.checksum = checksum_of(header, {bytes.data() + sizeof(header), size});
  std::memcpy(bytes.data(), &header, sizeof(header));
}

}  // namespace holdfast
