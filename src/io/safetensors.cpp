// safetensors: the length of a JSON header, the header (name → dtype, shape, offsets), the
// elements.
#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <string_view>

#include <nlohmann/json.hpp>

#include "io/support.h"
#include "ops/support.h"

namespace holdfast {
namespace {

using nlohmann::json;

struct Name {
  std::string_view name;
  Dtype dtype;
};
// The first that fits is written. Types of eight bits that we do not have come as their bytes.
const std::array<Name, 17> names{{{"F32", float32},
                                  {"F16", float16},
                                  {"BF16", bfloat16},
                                  {"F64", float64},
                                  {"I64", int64},
                                  {"I32", int32},
                                  {"I16", int16},
                                  {"I8", int8},
                                  {"U64", uint64},
                                  {"U32", uint32},
                                  {"U16", uint16},
                                  {"U8", uint8},
                                  {"BOOL", bool_},
                                  {"C64", complex64},
                                  {"F8_E4M3", uint8},
                                  {"F8_E5M2", uint8},
                                  {"F8_E8M0", uint8}}};

std::string_view name_of(Dtype dtype) {
  for (const Name& name : names) {
    if (name.dtype == dtype) return name.name;
  }
  throw std::invalid_argument(text("[save_safetensors] dtype ", dtype, " cannot be written"));
}

// Arrays within arrays could be as deep as the header is long: no header needs more than four
// levels.
json parse_header(const io::HeaderReader& file, const std::string& header) {
  constexpr int deepest = 8;
  bool too_deep = false;
  json result = json::parse(
      header,
      [&](int depth, json::parse_event_t, json&) {
        too_deep = too_deep || depth > deepest;
        return !too_deep;
      },
      false);
  if (too_deep) file.fail("the header is nested too deeply");
  if (result.is_discarded() || !result.is_object()) file.fail("the header is not a JSON object");
  return result;
}

// The unsigned numbers of a JSON array.
std::vector<uint64_t> numbers(const io::HeaderReader& file, const std::string& name,
                              const json& entry, const char* key) {
  auto found = entry.find(key);
  if (found == entry.end() || !found->is_array())
    file.fail(text("\"", name, "\" has no list \"", key, "\""));
  std::vector<uint64_t> values;
  for (const json& value : *found) {
    if (!value.is_number_unsigned()) {
      file.fail(text("\"", key, "\" of \"", name, "\" has something that is not a number ≥ 0"));
    }
    values.push_back(value.get<uint64_t>());
  }
  return values;
}

array load_tensor(const io::HeaderReader& file, const std::shared_ptr<io::Reader>& reader,
                  size_t data, const std::string& name, const json& entry, StreamOrDevice s) {
  if (!entry.is_object()) file.fail(text("the entry of \"", name, "\" is not an object"));
  auto type = entry.find("dtype");
  if (type == entry.end() || !type->is_string()) file.fail(text("\"", name, "\" has no dtype"));
  auto& type_name = type->get_ref<const std::string&>();
  auto known =
      std::find_if(names.begin(), names.end(), [&](const Name& n) { return n.name == type_name; });
  if (known == names.end())
    file.fail(text("dtype \"", type_name, "\" of \"", name, "\" is not supported"));

  std::vector<uint64_t> dimensions = numbers(file, name, entry, "shape");
  std::vector<uint64_t> offsets = numbers(file, name, entry, "data_offsets");
  uint64_t bytes;
  Shape shape = io::checked_shape(file, name, dimensions.data(), dimensions.size(),
                                  known->dtype.size(), bytes);
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > file.length() - data) {
    file.fail(text("\"data_offsets\" of \"", name, "\" do not lie inside the file"));
  }
  if (offsets[1] - offsets[0] != bytes) {
    file.fail(text("\"", name, "\" has ", offsets[1] - offsets[0],
                   " bytes, its shape and dtype need ", bytes));
  }
  return io::load_elements(reader, data + offsets[0], std::move(shape), known->dtype, false, s);
}

void write(io::Writer& writer, const std::vector<std::pair<std::string, array>>& arrays,
           const std::unordered_map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t offset = 0;
  for (const auto& [name, a] : arrays) {
    std::vector<int64_t> shape(a.shape().begin(), a.shape().end());
    header[name] = {{"dtype", name_of(a.dtype())},
                    {"shape", shape},
                    {"data_offsets", {offset, offset + a.nbytes()}}};
    offset += a.nbytes();
  }
  std::string body;
  try {
    body = header.dump();
  } catch (const json::exception& error) {  // a name that is not UTF-8
    throw std::invalid_argument(text("[save_safetensors] ", error.what()));
  }
  body.resize((body.size() + 7) / 8 * 8, ' ');
  io::write_little_endian<uint64_t>(writer, body.size());
  io::write_bytes(writer, body);
  for (const auto& [name, a] : arrays) io::write_elements(writer, a);
}

// Largest items first, then by name: every array is aligned to its items, and equal content gives
// equal files.
std::vector<std::pair<std::string, array>> in_order(
    const std::unordered_map<std::string, array>& map) {
  std::vector<std::pair<std::string, array>> arrays;
  for (const auto& [name, a] : map) {
    if (name == "__metadata__") {
      throw std::invalid_argument("[save_safetensors] an array must not be named \"__metadata__\"");
    }
    name_of(a.dtype());
    arrays.emplace_back(name, io::ready_to_write(a));
  }
  std::sort(arrays.begin(), arrays.end(), [](const auto& a, const auto& b) {
    if (a.second.itemsize() != b.second.itemsize())
      return a.second.itemsize() > b.second.itemsize();
    return a.first < b.first;
  });
  return arrays;
}

}  // namespace

SafetensorsLoad load_safetensors(std::shared_ptr<io::Reader> in_stream, StreamOrDevice s) {
  io::HeaderReader file("load_safetensors", *in_stream);
  auto header_length = file.read_little_endian<uint64_t>("the header's length");
  json header = parse_header(file, file.read_text(header_length, "the header"));
  SafetensorsLoad result;
  size_t data = file.position();
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") {
      result.first.insert({name, load_tensor(file, in_stream, data, name, entry, s)});
      continue;
    }
    if (entry.is_null()) continue;  // MLX writes it where there is none
    if (!entry.is_object()) file.fail("\"__metadata__\" is not an object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string())
        file.fail(text("\"__metadata__\" has a value that is not a string: \"", key, "\""));
      result.second.insert({key, value.get<std::string>()});
    }
  }
  return result;
}

SafetensorsLoad load_safetensors(const std::string& file, StreamOrDevice s) {
  return load_safetensors(std::make_shared<io::ParallelFileReader>(file), s);
}

void save_safetensors(std::shared_ptr<io::Writer> in_stream,
                      std::unordered_map<std::string, array> a,
                      std::unordered_map<std::string, std::string> metadata) {
  if (!in_stream->is_open() || !in_stream->good()) {
    throw std::runtime_error("[save_safetensors] cannot open " + in_stream->label());
  }
  write(*in_stream, in_order(a), metadata);
}

void save_safetensors(std::string file, std::unordered_map<std::string, array> a,
                      std::unordered_map<std::string, std::string> metadata) {
  if (!file.ends_with(".safetensors")) file += ".safetensors";
  auto arrays = in_order(a);
  io::write_whole_file("save_safetensors", file,
                       [&](io::Writer& writer) { write(writer, arrays, metadata); });
}

}  // namespace holdfast
