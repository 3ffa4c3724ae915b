// What the file formats share: reading a header with checks, arrays whose elements are read when
// they are evaluated, and writing files that appear whole or not at all.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <holdfast/io.h>

namespace holdfast::io {

// The length of what a reader reads.
size_t length_of(Reader& reader);

// Reads a header front to back. What is not there is a std::runtime_error "[op] …, at byte N of
// <label>".
class HeaderReader {
 public:
  HeaderReader(const char* op, Reader& reader);
  size_t position() const { return position_; }
  size_t length() const { return length_; }
  size_t left() const { return length_ - position_; }
  void read(void* to, size_t bytes, const char* what);
  template <typename T>
  T read_little_endian(const char* what) {
    T value;
    read(&value, sizeof(T), what);
    return value;
  }
  // A string of `bytes` bytes; checked against the file before memory is taken.
  std::string read_text(uint64_t bytes, const char* what);
  // Are `count` things of at least `bytes` bytes each still possible?
  void expect(uint64_t count, uint64_t bytes, const char* what) const;
  void skip(uint64_t bytes, const char* what);
  [[noreturn]] void fail(const std::string& what) const;

 private:
  const char* op_;
  Reader& reader_;
  size_t position_, length_;
};

// Elements as they stand in the file.
array load_elements(std::shared_ptr<Reader> reader, size_t offset, Shape shape, Dtype dtype,
                    bool swap_bytes, StreamOrDevice s);

// An array whose elements are made from `bytes` bytes of the file: `convert(source, target, begin,
// end)` makes blocks [begin, end) of `block_bytes` in the file each.
using Convert = void (*)(const char* source, char* target, int64_t begin, int64_t end);
array load_converted(std::shared_ptr<Reader> reader, size_t offset, int64_t blocks,
                     size_t block_bytes, Convert convert, Shape shape, Dtype dtype,
                     StreamOrDevice s);

// The number of elements of a shape from a file; throws std::runtime_error when a dimension does
// not fit an int or the number overflows.
Shape checked_shape(const HeaderReader& header, const std::string& name, const uint64_t* dimensions,
                    size_t count, size_t item_size, uint64_t& bytes);

// Calls `write` with a writer of a temporary file beside `path`, then puts that in its place.
void write_whole_file(const char* op, const std::string& path,
                      const std::function<void(Writer&)>& write);

// The array, evaluated and row-contiguous, as its bytes are to be written.
array ready_to_write(const array& a);
inline void write_bytes(Writer& writer, std::string_view bytes) {
  writer.write(bytes.data(), bytes.size());
}
template <typename T>
void write_little_endian(Writer& writer, T value) {
  writer.write(reinterpret_cast<const char*>(&value), sizeof(value));
}
void write_elements(Writer& writer, const array& a);

}  // namespace holdfast::io
