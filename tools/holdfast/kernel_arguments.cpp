#include "tools/holdfast/kernel_arguments.h"

#include <holdfast/holdfast.h>

#include <bit>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

#include "tools/holdfast/commands.h"

namespace holdfast::tool {
namespace {

struct DtypeName {
  const char* name;
  Dtype dtype;
};
constexpr DtypeName short_names[] = {
    {"f32", float32}, {"f16", float16}, {"bf16", bfloat16}, {"i8", int8},
    {"i16", int16},   {"i32", int32},   {"i64", int64},     {"u8", uint8},
    {"u16", uint16},  {"u32", uint32},  {"u64", uint64},    {"bool", bool_},
};

std::optional<Dtype> find_dtype(const std::string& name) {
  for (const DtypeName& row : short_names) {
    if (name == row.name || name == dtype_name(row.dtype.val())) return row.dtype;
  }
  return {};
}

template <class T>
std::optional<T> number(const std::string& text) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

[[noreturn]] void reject_array(const std::string& text, const std::string& why) {
  throw UsageError(
      "\"" + text + "\": " + why +
      "; an array is NAME=DTYPE[SHAPE]:CONTENTS, as in x=f32[64,128]:random or n=u32:7, or "
      "NAME=FILE.npy");
}

}  // namespace

ArrayArgument parse_array(const std::string& text) {
  ArrayArgument result;
  result.text = text;
  size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) reject_array(text, "there is no name");
  result.name = text.substr(0, equals);
  std::string rest = text.substr(equals + 1);
  if (rest.ends_with(".npy")) {
    result.file = rest;
    return result;
  }
  if (size_t colon = rest.find(':'); colon != std::string::npos) {
    result.contents = rest.substr(colon + 1);
    rest.resize(colon);
    if (result.contents.empty()) reject_array(text, "nothing follows the colon");
  }
  std::string dtype = rest.substr(0, rest.find('['));
  auto found = find_dtype(dtype);
  if (!found) {
    std::string known;
    for (const DtypeName& row : short_names)
      known += (known.empty() ? "" : ", ") + std::string(row.name);
    reject_array(text, "there is no dtype \"" + dtype + "\" (there are " + known + ")");
  }
  result.dtype = *found;
  if (rest.size() == dtype.size()) return result;
  if (rest.back() != ']') reject_array(text, "the shape is not closed");
  for (const std::string& side :
       split(rest.substr(dtype.size() + 1, rest.size() - dtype.size() - 2), ',')) {
    auto value = number<int32_t>(side);
    if (!value || *value < 1) reject_array(text, "\"" + side + "\" is not a dimension");
    result.shape.push_back(*value);
  }
  return result;
}

array make_array(const ArrayArgument& argument, uint64_t seed) {
  if (!argument.file.empty()) {
    array a = contiguous(load(argument.file));
    eval(a);
    return a;
  }
  const std::string& what = argument.contents;
  auto finish = [&](array a) {
    a = contiguous(astype(reshape(std::move(a), argument.shape), argument.dtype));
    eval(a);
    return a;
  };
  if (what.empty() || what == "zeros") return finish(zeros(argument.shape, argument.dtype));
  if (what == "ones") return finish(ones(argument.shape, argument.dtype));
  int64_t size = 1;
  for (ShapeElem side : argument.shape) size *= side;
  if (what == "range") return finish(arange(static_cast<double>(size)));
  if (what == "random") {
    bool is_float = issubdtype(argument.dtype, floating);
    array key = random::key(seed);
    if (is_float) return finish(random::normal(argument.shape, float32, key));
    double top = argument.dtype == bool_ ? 2 : 100;
    return finish(
        random::uniform(array(0.0f), array(static_cast<float>(top)), argument.shape, float32, key));
  }
  std::vector<double> numbers;
  for (const std::string& part : split(what, ',')) {
    auto value = number<double>(part);
    if (!value) {
      reject_array(argument.text,
                   "\"" + part + "\" is neither a number nor random, zeros, ones or range");
    }
    numbers.push_back(*value);
  }
  if (numbers.size() == 1) numbers.resize(static_cast<size_t>(size), numbers[0]);
  if (static_cast<int64_t>(numbers.size()) != size) {
    reject_array(argument.text, std::to_string(numbers.size()) + " numbers for " +
                                    std::to_string(size) + " elements");
  }
  return finish(array(numbers.begin(), {static_cast<int>(size)}, argument.dtype));
}

Encoder::Grid parse_grid(const std::string& option, const std::string& text) {
  std::vector<std::string> parts = split(text, ',');
  uint32_t sides[3] = {1, 1, 1};
  bool good = parts.size() <= 3;
  for (size_t i = 0; good && i < parts.size(); ++i) {
    auto value = number<int32_t>(parts[i]);
    good = value && *value > 0;
    if (good) sides[i] = static_cast<uint32_t>(*value);
  }
  if (!good) {
    throw UsageError(option + " must be one to three positive numbers, as in 64 or 32,8,1, not \"" +
                     text + "\"");
  }
  return {sides[0], sides[1], sides[2]};
}

msl::FunctionConstant parse_constant(const std::string& text) {
  size_t equals = text.find('='), colon = text.find(':', equals == std::string::npos ? 0 : equals);
  auto reject = [&]() {
    throw UsageError(
        "\"" + text +
        "\": a function constant is NAME=TYPE:VALUE or INDEX=TYPE:VALUE with TYPE bool, "
        "int, uint or float, as in use_mask=bool:true");
  };
  if (equals == std::string::npos || equals == 0 || colon == std::string::npos) reject();
  std::string name = text.substr(0, equals), type = text.substr(equals + 1, colon - equals - 1),
              value = text.substr(colon + 1);
  msl::FunctionConstant constant{};
  constant.type = type;
  if (auto index = number<uint32_t>(name)) {
    constant.index = *index;
  } else {
    constant.name = name;
  }
  if (type == "bool" && (value == "true" || value == "1")) {
    constant.bits[0] = 1;
  } else if (type == "bool" && (value == "false" || value == "0")) {
    constant.bits[0] = 0;
  } else if (auto signed_value = number<int32_t>(value); type == "int" && signed_value) {
    constant.bits[0] = static_cast<uint32_t>(*signed_value);
  } else if (auto unsigned_value = number<uint32_t>(value); type == "uint" && unsigned_value) {
    constant.bits[0] = *unsigned_value;
  } else if (auto real = number<float>(value); type == "float" && real) {
    constant.bits[0] = std::bit_cast<uint32_t>(*real);
  } else {
    reject();
  }
  return constant;
}

std::string read_source(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw std::runtime_error("[kernel] \"" + path + "\" is a folder");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("[kernel] cannot read \"" + path + "\"");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

msl::KernelSource source_of_file(const std::string& path) {
  msl::KernelSource source;
  source.text = read_source(path);
  std::filesystem::path file(path);
  source.kernel = file.filename().string();
  source.parts = {{file.filename().string(), 0, source.text.size()}};
  source.directory = std::filesystem::absolute(file).parent_path().string();
  return source;
}

}  // namespace holdfast::tool
