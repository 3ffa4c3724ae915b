// npy: magic, version, a Python dictionary with the dtype, the order and the shape, then the
// elements.
#include "io/npy.h"

#include <array>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string_view>

#include <holdfast/ops.h>

#include "ops/support.h"

namespace holdfast {
namespace io {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

struct NpyType {
  char kind;
  int size;
  Dtype dtype;
};
// bfloat16 has no name in NumPy: it is written as two bytes without a meaning, as MLX does.
const std::array<NpyType, 14> npy_types{{{'b', 1, bool_},
                                         {'u', 1, uint8},
                                         {'u', 2, uint16},
                                         {'u', 4, uint32},
                                         {'u', 8, uint64},
                                         {'i', 1, int8},
                                         {'i', 2, int16},
                                         {'i', 4, int32},
                                         {'i', 8, int64},
                                         {'f', 2, float16},
                                         {'f', 4, float32},
                                         {'f', 8, float64},
                                         {'c', 8, complex64},
                                         {'V', 2, bfloat16}}};

struct NpyHeader {
  Dtype dtype = float32;
  bool swap_bytes = false;
  bool fortran_order = false;
  std::vector<uint64_t> shape;
};

// Reads the dictionary: three known keys, each once, in any order.
class DictionaryParser {
 public:
  DictionaryParser(const HeaderReader& file, std::string_view text) : file_(file), text_(text) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_type = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !has_type) {
        parse_type(quoted(), header);
        has_type = true;
      } else if (key == "fortran_order" && !has_order) {
        header.fortran_order = boolean();
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        header.shape = tuple();
        has_shape = true;
      } else {
        fail("unexpected or repeated key '" + std::string(key) + "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("text after the dictionary");
    if (!has_type || !has_order || !has_shape)
      fail("'descr', 'fortran_order' or 'shape' is missing");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    file_.fail("bad npy header: " + what + " (character " + std::to_string(at_) + ")");
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t'))
      ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("expected '") + c + "'");
  }
  std::string_view quoted() {
    char quote = accept('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("a string without an end");
    std::string_view result = text_.substr(at_, end - at_);
    at_ = end + 1;
    return result;
  }
  bool boolean() {
    skip_space();
    for (auto [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    fail("expected True or False");
  }
  uint64_t number() {
    skip_space();
    size_t begin = at_;
    uint64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (__builtin_mul_overflow(value, uint64_t{10}, &value) ||
          __builtin_add_overflow(value, static_cast<uint64_t>(text_[at_] - '0'), &value)) {
        fail("a dimension that overflows");
      }
      ++at_;
    }
    if (at_ == begin) fail("expected a dimension that is not negative");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers so
    return value;
  }
  std::vector<uint64_t> tuple() {
    std::vector<uint64_t> values;
    expect('(');
    while (!accept(')')) {
      values.push_back(number());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }
  void parse_type(std::string_view name, NpyHeader& header) {
    if (name.size() == 3) {
      for (const NpyType& type : npy_types) {
        if (name[1] != type.kind || name[2] != '0' + type.size) continue;
        if (name[0] != '<' && name[0] != '>' && name[0] != '|' && name[0] != '=') break;
        header.dtype = type.dtype;
        header.swap_bytes = name[0] == '>';
        return;
      }
    }
    fail("dtype '" + std::string(name) + "' is not supported");
  }

  const HeaderReader& file_;
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

array load_npy(const char* op, std::shared_ptr<Reader> reader, size_t offset, size_t length,
               StreamOrDevice s) {
  reader->seek(static_cast<int64_t>(offset));
  HeaderReader file(op, *reader);
  if (length > file.left()) file.fail("the npy file ends beyond its archive");
  if (file.read_text(magic.size(), "the magic string of npy") != magic)
    file.fail("not an npy file");
  auto major = file.read_little_endian<uint8_t>("the version");
  file.read_little_endian<uint8_t>("the version");
  if (major < 1 || major > 3) file.fail(text("npy version ", int{major}, " is not supported"));
  size_t header_length = major == 1 ? file.read_little_endian<uint16_t>("the header's length")
                                    : file.read_little_endian<uint32_t>("the header's length");
  std::string dictionary = file.read_text(header_length, "the header");
  NpyHeader header = DictionaryParser(file, dictionary).parse();
  if (header.fortran_order) std::reverse(header.shape.begin(), header.shape.end());
  uint64_t bytes;
  Shape shape = checked_shape(file, "array", header.shape.data(), header.shape.size(),
                              header.dtype.size(), bytes);
  size_t end = offset + length;
  if (file.position() > end || bytes > end - file.position()) {
    file.fail(text("the elements, ", bytes, " bytes, end beyond the file"));
  }
  array result =
      load_elements(reader, file.position(), std::move(shape), header.dtype, header.swap_bytes, s);
  return header.fortran_order && result.ndim() > 1 ? transpose(result, s) : result;
}

std::string npy_header(const array& a) {
  std::string type;
  for (const NpyType& known : npy_types) {
    if (known.dtype == a.dtype()) {
      type = std::string(1, known.size == 1 ? '|' : '<') + known.kind + std::to_string(known.size);
    }
  }
  std::string dictionary = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (";
  for (ShapeElem dimension : a.shape()) dictionary += std::to_string(dimension) + ", ";
  dictionary += ")}";
  // The elements begin at a multiple of 64.
  size_t length_bytes = dictionary.size() + 1 + 10 + 63 > 65535 ? 4 : 2;
  size_t before = magic.size() + 2 + length_bytes;
  dictionary += std::string((64 - (before + dictionary.size() + 1) % 64) % 64, ' ') + '\n';
  std::string header(magic);
  header += length_bytes == 2 ? '\1' : '\2';
  header += '\0';
  auto length = static_cast<uint32_t>(dictionary.size());
  header.append(reinterpret_cast<const char*>(&length), length_bytes);
  return header + dictionary;
}

}  // namespace io

array load(std::shared_ptr<io::Reader> in_stream, StreamOrDevice s) {
  io::HeaderReader file("load", *in_stream);
  return io::load_npy("load", in_stream, file.position(), file.left(), s);
}

array load(std::string file, StreamOrDevice s) {
  return load(std::make_shared<io::ParallelFileReader>(std::move(file)), s);
}

void save(std::shared_ptr<io::Writer> out_stream, array a) {
  if (!out_stream->is_open() || !out_stream->good()) {
    throw std::runtime_error("[save] cannot open " + out_stream->label());
  }
  a = io::ready_to_write(a);
  io::write_bytes(*out_stream, io::npy_header(a));
  io::write_elements(*out_stream, a);
}

void save(std::string file, array a) {
  if (!file.ends_with(".npy")) file += ".npy";
  a = io::ready_to_write(a);
  io::write_whole_file("save", file, [&](io::Writer& writer) {
    io::write_bytes(writer, io::npy_header(a));
    io::write_elements(writer, a);
  });
}

}  // namespace holdfast
