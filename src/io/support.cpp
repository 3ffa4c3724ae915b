#include "io/support.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include <holdfast/eval.h>
#include <holdfast/ops.h>

#include "exec/file_origins.h"
#include "ops/support.h"

namespace holdfast::io {

size_t length_of(Reader& reader) {
  size_t before = reader.tell();
  reader.seek(0, std::ios_base::end);
  size_t length = reader.tell();
  reader.seek(static_cast<int64_t>(before), std::ios_base::beg);
  return length;
}

HeaderReader::HeaderReader(const char* op, Reader& reader)
    : op_(op), reader_(reader), position_(0), length_(0) {
  if (!reader.is_open() || !reader.good()) {
    throw std::runtime_error(text("[", op, "] cannot open ", reader.label()));
  }
  position_ = reader.tell();
  length_ = length_of(reader);
  if (position_ > length_) fail("the position is beyond the end");
}

void HeaderReader::fail(const std::string& what) const {
  throw std::runtime_error(text("[", op_, "] ", what, ", at byte ", position_, " of ",
                                reader_.label(), " (", length_, " bytes)"));
}

void HeaderReader::expect(uint64_t count, uint64_t bytes, const char* what) const {
  if (bytes != 0 && count > left() / bytes) {
    fail(text("the file ends inside ", what, " (", count, " × ", bytes, " bytes)"));
  }
}

void HeaderReader::read(void* to, size_t bytes, const char* what) {
  expect(bytes, 1, what);
  reader_.read(static_cast<char*>(to), bytes, position_);
  position_ += bytes;
}

std::string HeaderReader::read_text(uint64_t bytes, const char* what) {
  expect(bytes, 1, what);
  std::string result(bytes, '\0');
  read(result.data(), bytes, what);
  return result;
}

void HeaderReader::skip(uint64_t bytes, const char* what) {
  expect(bytes, 1, what);
  position_ += bytes;
}

Shape checked_shape(const HeaderReader& header, const std::string& name, const uint64_t* dimensions,
                    size_t count, size_t item_size, uint64_t& bytes) {
  Shape shape;
  bytes = item_size;
  for (size_t i = 0; i < count; ++i) {
    if (dimensions[i] > static_cast<uint64_t>(std::numeric_limits<ShapeElem>::max())) {
      header.fail(text("dimension ", i, " of \"", name, "\" is ", dimensions[i],
                       ", more than an int holds"));
    }
    shape.push_back(static_cast<ShapeElem>(dimensions[i]));
  }
  bool empty = std::find(dimensions, dimensions + count, uint64_t{0}) != dimensions + count;
  if (empty) bytes = 0;
  for (size_t i = 0; i < count && !empty; ++i) {
    if (__builtin_mul_overflow(bytes, dimensions[i], &bytes)) {
      header.fail(text("the size of \"", name, "\" overflows"));
    }
  }
  return shape;
}

namespace {

constexpr size_t read_chunk = size_t{4} << 20;

void swap_element_bytes(char* data, size_t bytes, size_t item) {
  for (size_t i = 0; i + item <= bytes; i += item) std::reverse(data + i, data + i + item);
}

// A reader that a program made may wait for whatever it likes, as a host callback may; it reads all
// at once.
template <typename Read>
void encode_read(Encoder& encoder, const Reader& reader, int64_t tasks, size_t bytes, Read read) {
  if (reader.reads_in_parallel()) {
    encoder.native(encoder.op(), tasks, static_cast<int64_t>(bytes), std::move(read));
  } else {
    encoder.host_callback(encoder.op(),
                          [read = std::move(read), tasks](const NativeContext& context) mutable {
                            read(context, 0, tasks);
                          });
  }
}

// Reads its elements from the file when it is evaluated.
class Load final : public Op {
 public:
  Load(Stream stream, std::shared_ptr<Reader> reader, size_t offset, bool swap_bytes)
      : Op(stream), reader_(std::move(reader)), offset_(offset), swap_bytes_(swap_bytes) {}
  const char* name() const override { return "Load"; }
  void encode(Encoder& encoder, const std::vector<array>&, std::vector<array>& outputs) override {
    array& out = outputs[0];
    encoder.allocate(out);
    if (out.size() == 0) return;
    const Bound target = encoder.output(out);
    // A complex number is two that are swapped one by one.
    size_t item = swap_bytes_ ? out.itemsize() / (out.dtype() == complex64 ? 2 : 1) : 1;
    bool is_bool = out.dtype() == bool_;
    if (item == 1 && !is_bool) note_origin(out);
    size_t bytes = out.nbytes();
    bool parallel = reader_->reads_in_parallel();
    size_t chunk = parallel ? read_chunk : bytes;
    encode_read(encoder, *reader_, static_cast<int64_t>((bytes + chunk - 1) / chunk), bytes,
                [=, reader = reader_, offset = offset_](const NativeContext& context, int64_t begin,
                                                        int64_t end) {
                  char* to = context.data(target);
                  size_t first = static_cast<size_t>(begin) * chunk;
                  size_t last = std::min(bytes, static_cast<size_t>(end) * chunk);
                  reader->read(to + first, last - first, offset + first);
                  if (item > 1) swap_element_bytes(to + first, last - first, item);
                  // Any byte but 0 is true; ops take bools to be 0 or 1.
                  for (size_t i = first; is_bool && i < last; ++i) to[i] = to[i] != 0;
                });
  }

 private:
  // For captures, which name the file instead of copying the bytes where that is wanted.
  void note_origin(const array& out) const {
    auto* file = dynamic_cast<const ParallelFileReader*>(reader_.get());
    if (!file) return;
    std::error_code error;
    std::filesystem::path path = std::filesystem::absolute(file->path(), error);
    if (error) return;
    exec::FileOrigins::get().note(*exec::buffer_of(out.buffer()),
                                  static_cast<int64_t>(out.nbytes()),
                                  {path.string(), static_cast<int64_t>(offset_)});
  }

  std::shared_ptr<Reader> reader_;
  size_t offset_;
  bool swap_bytes_;
};

class LoadConverted final : public Op {
 public:
  LoadConverted(Stream stream, std::shared_ptr<Reader> reader, size_t offset, int64_t blocks,
                size_t block_bytes, Convert convert)
      : Op(stream),
        reader_(std::move(reader)),
        offset_(offset),
        blocks_(blocks),
        block_bytes_(block_bytes),
        convert_(convert) {}
  const char* name() const override { return "Load"; }
  void encode(Encoder& encoder, const std::vector<array>&, std::vector<array>& outputs) override {
    array& out = outputs[0];
    encoder.allocate(out);
    if (out.size() == 0) return;
    const Bound target = encoder.output(out);
    int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(read_chunk / 16 / block_bytes_));
    int64_t tasks = (blocks_ + grain - 1) / grain;
    if (!reader_->reads_in_parallel()) {
      grain = blocks_;
      tasks = 1;
    }
    encode_read(
        encoder, *reader_, tasks, out.nbytes(),
        [=, reader = reader_, offset = offset_, blocks = blocks_, block_bytes = block_bytes_,
         convert = convert_](const NativeContext& context, int64_t begin, int64_t end) {
          std::vector<char> source;
          for (int64_t task = begin; task < end; ++task) {
            int64_t first = task * grain, last = std::min(blocks, first + grain);
            source.resize(static_cast<size_t>(last - first) * block_bytes);
            reader->read(source.data(), source.size(),
                         offset + static_cast<size_t>(first) * block_bytes);
            convert(source.data(), context.data(target), first, last);
          }
        });
  }

 private:
  std::shared_ptr<Reader> reader_;
  size_t offset_;
  int64_t blocks_;
  size_t block_bytes_;
  Convert convert_;
};

}  // namespace

array load_elements(std::shared_ptr<Reader> reader, size_t offset, Shape shape, Dtype dtype,
                    bool swap_bytes, StreamOrDevice s) {
  return make_node<Load>(std::move(shape), dtype, {}, s, std::move(reader), offset, swap_bytes);
}

array load_converted(std::shared_ptr<Reader> reader, size_t offset, int64_t blocks,
                     size_t block_bytes, Convert convert, Shape shape, Dtype dtype,
                     StreamOrDevice s) {
  return make_node<LoadConverted>(std::move(shape), dtype, {}, s, std::move(reader), offset, blocks,
                                  block_bytes, convert);
}

array ready_to_write(const array& a) {
  array result = contiguous(a);
  result.eval();
  result.wait();
  return result;
}

void write_elements(Writer& writer, const array& a) {
  if (a.size() > 0) writer.write(a.data<char>(), a.nbytes());
}

}  // namespace holdfast::io
