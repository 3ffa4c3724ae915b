// gguf: metadata of typed values, a list of tensors, then their elements, each aligned.
#include <algorithm>
#include <array>
#include <stdexcept>

#include <holdfast/ops.h>

#include "io/gguf_blocks.h"
#include "io/support.h"
#include "ops/support.h"

namespace holdfast {
namespace {

constexpr uint32_t text_type = 8, list_type = 9;

struct ValueType {
  uint32_t number;
  Dtype dtype;
};
// In the order in which a dtype is looked up for writing.
const std::array<ValueType, 11> value_types{{{0, uint8},
                                             {1, int8},
                                             {2, uint16},
                                             {3, int16},
                                             {4, uint32},
                                             {5, int32},
                                             {6, float32},
                                             {7, bool_},
                                             {10, uint64},
                                             {11, int64},
                                             {12, float64}}};
const std::array<ValueType, 8> tensor_types{{{0, float32},
                                             {1, float16},
                                             {24, int8},
                                             {25, int16},
                                             {26, int32},
                                             {27, int64},
                                             {28, float64},
                                             {30, bfloat16}}};

template <size_t count>
const ValueType* find(const std::array<ValueType, count>& types, uint32_t number) {
  for (const ValueType& type : types) {
    if (type.number == number) return &type;
  }
  return nullptr;
}

std::string read_string(io::HeaderReader& file, const char* what) {
  auto length = file.read_little_endian<uint64_t>(what);
  return file.read_text(length, what);
}

// `count` values of a dtype as an array.
array read_values(io::HeaderReader& file, Dtype dtype, uint64_t count, Shape shape) {
  file.expect(count, dtype.size(), "a metadata value");
  array values = zeros(std::move(shape), dtype);
  values.eval();
  file.read(values.data<char>(), values.nbytes(), "a metadata value");
  if (dtype == bool_) {  // any byte but 0 is true
    for (size_t i = 0; i < count; ++i) values.data<bool>()[i] = values.data<uint8_t>()[i] != 0;
  }
  return values;
}

GGUFMetaData read_metadata(io::HeaderReader& file, const std::string& key) {
  auto type = file.read_little_endian<uint32_t>("the type of a metadata value");
  if (type == text_type) return read_string(file, "a metadata string");
  if (const ValueType* value = find(value_types, type))
    return read_values(file, value->dtype, 1, {});
  if (type != list_type) file.fail(text("metadata \"", key, "\" has the unknown type ", type));
  auto element = file.read_little_endian<uint32_t>("the type of a metadata list");
  auto count = file.read_little_endian<uint64_t>("the length of a metadata list");
  if (element == text_type) {
    file.expect(count, sizeof(uint64_t), "a list of strings");
    std::vector<std::string> strings(count);
    for (std::string& string : strings) string = read_string(file, "a metadata string");
    return strings;
  }
  const ValueType* value = find(value_types, element);
  if (!value) file.fail(text("metadata \"", key, "\" is a list of the unsupported type ", element));
  file.expect(count, value->dtype.size(), "a metadata list");
  uint64_t bytes;
  return read_values(file, value->dtype, count,
                     io::checked_shape(file, key, &count, 1, value->dtype.size(), bytes));
}

struct TensorInfo {
  std::string name;
  std::vector<uint64_t> dimensions;  // outermost first
  uint32_t type;
  uint64_t offset;
};

TensorInfo read_tensor_info(io::HeaderReader& file) {
  TensorInfo info;
  info.name = read_string(file, "a tensor's name");
  auto count = file.read_little_endian<uint32_t>("a tensor's number of dimensions");
  file.expect(count, sizeof(uint64_t), "a tensor's dimensions");
  for (uint32_t i = 0; i < count; ++i) {
    info.dimensions.push_back(file.read_little_endian<uint64_t>("a tensor's dimensions"));
  }
  std::reverse(info.dimensions.begin(), info.dimensions.end());
  info.type = file.read_little_endian<uint32_t>("a tensor's type");
  info.offset = file.read_little_endian<uint64_t>("a tensor's offset");
  return info;
}

// Where the tensor stands in the file; throws when its bytes are not all there.
size_t checked_place(const io::HeaderReader& file, size_t data, const TensorInfo& info,
                     uint64_t bytes) {
  if (data > file.length() || info.offset > file.length() - data ||
      bytes > file.length() - data - info.offset) {
    file.fail(text("tensor \"", info.name, "\" (", bytes, " bytes at offset ", info.offset,
                   ") ends beyond the file"));
  }
  return data + info.offset;
}

void add_quantised(const io::HeaderReader& file, const std::shared_ptr<io::Reader>& reader,
                   size_t data, const TensorInfo& info, const io::GgufBlocks& type,
                   StreamOrDevice s, std::unordered_map<std::string, array>& arrays) {
  auto values = static_cast<uint64_t>(type.values);
  if (info.dimensions.empty() || info.dimensions.back() % values != 0) {
    file.fail(text("the last dimension of \"", info.name, "\" is not a multiple of ", values,
                   ", the block of ", type.name));
  }
  uint64_t elements, bytes;
  Shape shape = io::checked_shape(file, info.name, info.dimensions.data(), info.dimensions.size(),
                                  1, elements);
  uint64_t blocks = elements / values;
  if (__builtin_mul_overflow(blocks, type.bytes, &bytes))
    file.fail(text("the size of \"", info.name, "\" overflows"));
  size_t place = checked_place(file, data, info, bytes);
  auto add = [&](const std::string& name, io::Convert convert, int last, Dtype dtype) {
    Shape converted = shape;
    converted.back() = last;
    arrays.insert({name, io::load_converted(reader, place, static_cast<int64_t>(blocks), type.bytes,
                                            convert, converted, dtype, s)});
  };
  if (type.to_half) {
    add(info.name, type.to_half, shape.back(), float16);
    return;
  }
  std::string stem =
      info.name.ends_with(".weight") ? info.name.substr(0, info.name.size() - 7) : info.name;
  add(info.name, type.weights, shape.back() / 32 * type.bits, uint32);
  add(stem + ".scales", type.scales, shape.back() / 32, float16);
  add(stem + ".biases", type.biases, shape.back() / 32, float16);
}

void add_tensor(const io::HeaderReader& file, const std::shared_ptr<io::Reader>& reader,
                size_t data, const TensorInfo& info, StreamOrDevice s,
                std::unordered_map<std::string, array>& arrays) {
  if (const io::GgufBlocks* blocks = io::find_gguf_blocks(info.type)) {
    add_quantised(file, reader, data, info, *blocks, s, arrays);
    return;
  }
  const ValueType* type = find(tensor_types, info.type);
  if (!type) file.fail(text("tensor \"", info.name, "\" has the unsupported type ", info.type));
  uint64_t bytes;
  Shape shape = io::checked_shape(file, info.name, info.dimensions.data(), info.dimensions.size(),
                                  type->dtype.size(), bytes);
  size_t place = checked_place(file, data, info, bytes);
  arrays.insert(
      {info.name, io::load_elements(reader, place, std::move(shape), type->dtype, false, s)});
}

// --- writing ---

constexpr uint64_t alignment = 32;

void write_string(io::Writer& writer, const std::string& string) {
  io::write_little_endian<uint64_t>(writer, string.size());
  io::write_bytes(writer, string);
}

uint32_t value_type_of(const std::string& key, const array& a) {
  for (const ValueType& type : value_types) {
    if (type.dtype == a.dtype()) return type.number;
  }
  throw std::invalid_argument(text("[save_gguf] metadata \"", key, "\" has the dtype ", a.dtype(),
                                   ", which gguf does not know"));
}

void write_metadata(io::Writer& writer, const std::string& key, const GGUFMetaData& value) {
  if (std::holds_alternative<std::monostate>(value)) return;
  write_string(writer, key);
  if (const auto* string = std::get_if<std::string>(&value)) {
    io::write_little_endian(writer, text_type);
    write_string(writer, *string);
  } else if (const auto* strings = std::get_if<std::vector<std::string>>(&value)) {
    io::write_little_endian(writer, list_type);
    io::write_little_endian(writer, text_type);
    io::write_little_endian<uint64_t>(writer, strings->size());
    for (const std::string& each : *strings) write_string(writer, each);
  } else {
    array a = io::ready_to_write(std::get<array>(value));
    uint32_t type = value_type_of(key, a);
    if (a.ndim() == 1) {
      io::write_little_endian(writer, list_type);
      io::write_little_endian(writer, type);
      io::write_little_endian<uint64_t>(writer, a.size());
    } else {
      io::write_little_endian(writer, type);
    }
    io::write_elements(writer, a);
  }
}

void check_metadata(const std::string& key, const GGUFMetaData& value) {
  const auto* a = std::get_if<array>(&value);
  if (!a) return;
  if (a->ndim() > 1 || a->size() == 0) {
    throw std::invalid_argument(
        text("[save_gguf] metadata \"", key,
             "\" must have 0 or 1 dimensions and not be empty, its shape is ", a->shape()));
  }
  value_type_of(key, *a);
}

uint32_t tensor_type_of(const std::string& name, const array& a) {
  for (Dtype dtype : {int8, int16, int32, float16, float32}) {
    if (a.dtype() != dtype) continue;
    for (const ValueType& type : tensor_types) {
      if (type.dtype == dtype) return type.number;
    }
  }
  throw std::invalid_argument(text("[save_gguf] \"", name, "\" has the dtype ", a.dtype(),
                                   "; int8, int16, int32, float16 and float32 can be saved"));
}

uint64_t padding(uint64_t size) { return (alignment - size % alignment) % alignment; }

template <class Value>
std::vector<std::pair<std::string, Value>> sorted(
    const std::unordered_map<std::string, Value>& map) {
  std::vector<std::pair<std::string, Value>> items(map.begin(), map.end());
  std::sort(items.begin(), items.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return items;
}

void write_file(io::Writer& writer, const std::vector<std::pair<std::string, array>>& arrays,
                const std::vector<std::pair<std::string, GGUFMetaData>>& metadata) {
  io::write_bytes(writer, "GGUF");
  io::write_little_endian<uint32_t>(writer, 3);
  io::write_little_endian<uint64_t>(writer, arrays.size());
  auto is_value = [](const auto& item) {
    return !std::holds_alternative<std::monostate>(item.second);
  };
  io::write_little_endian(
      writer, static_cast<uint64_t>(std::count_if(metadata.begin(), metadata.end(), is_value)));
  for (const auto& [key, value] : metadata) write_metadata(writer, key, value);
  uint64_t offset = 0;
  for (const auto& [name, a] : arrays) {
    write_string(writer, name);
    io::write_little_endian(writer, static_cast<uint32_t>(a.ndim()));
    for (size_t i = a.ndim(); i-- > 0;) {
      io::write_little_endian(writer, static_cast<uint64_t>(a.shape(static_cast<int>(i))));
    }
    io::write_little_endian(writer, tensor_type_of(name, a));
    io::write_little_endian(writer, offset);
    offset += a.nbytes() + padding(a.nbytes());
  }
  io::write_bytes(writer, std::string(padding(writer.tell()), '\0'));
  for (const auto& [name, a] : arrays) {
    io::write_elements(writer, a);
    io::write_bytes(writer, std::string(padding(a.nbytes()), '\0'));
  }
}

}  // namespace

GGUFLoad load_gguf(std::shared_ptr<io::Reader> in_stream, StreamOrDevice s) {
  io::HeaderReader file("load_gguf", *in_stream);
  size_t start = file.position();
  if (file.read_text(4, "the magic string of gguf") != "GGUF") file.fail("not a gguf file");
  auto version = file.read_little_endian<uint32_t>("the version");
  if (version != 2 && version != 3) file.fail(text("gguf version ", version, " is not supported"));
  auto tensor_count = file.read_little_endian<uint64_t>("the number of tensors");
  auto value_count = file.read_little_endian<uint64_t>("the number of metadata values");

  GGUFLoad result;
  uint64_t align = alignment;
  file.expect(value_count, 12, "the metadata");
  for (uint64_t i = 0; i < value_count; ++i) {
    std::string key = read_string(file, "a metadata key");
    GGUFMetaData value = read_metadata(file, key);
    if (key == "general.alignment") {
      const auto* size = std::get_if<array>(&value);
      if (!size || size->dtype() != uint32 || size->size() != 1 || *size->data<uint32_t>() == 0) {
        file.fail("\"general.alignment\" is not a number above 0");
      }
      align = *size->data<uint32_t>();
    }
    if (!result.second.insert({key, std::move(value)}).second)
      file.fail(text("metadata \"", key, "\" is there twice"));
  }

  file.expect(tensor_count, 24, "the list of tensors");
  std::vector<TensorInfo> tensors;
  for (uint64_t i = 0; i < tensor_count; ++i) tensors.push_back(read_tensor_info(file));
  size_t data = start + (file.position() - start + align - 1) / align * align;
  for (const TensorInfo& info : tensors) {
    if (result.first.contains(info.name))
      file.fail(text("tensor \"", info.name, "\" is there twice"));
    add_tensor(file, in_stream, data, info, s, result.first);
  }
  return result;
}

GGUFLoad load_gguf(const std::string& file, StreamOrDevice s) {
  return load_gguf(std::make_shared<io::ParallelFileReader>(file), s);
}

void save_gguf(std::string file, std::unordered_map<std::string, array> array_map,
               std::unordered_map<std::string, GGUFMetaData> meta_data) {
  if (!file.ends_with(".gguf")) file += ".gguf";
  for (const auto& [key, value] : meta_data) check_metadata(key, value);
  std::vector<std::pair<std::string, array>> arrays = sorted(array_map);
  for (auto& [name, a] : arrays) {
    tensor_type_of(name, a);
    a = io::ready_to_write(a);
  }
  auto metadata = sorted(meta_data);
  io::write_whole_file("save_gguf", file,
                       [&](io::Writer& writer) { write_file(writer, arrays, metadata); });
}

}  // namespace holdfast
