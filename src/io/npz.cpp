// npz: a zip archive of npy files, stored or deflated.
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "io/memory_reader.h"
#include "io/npy.h"
#include "io/support.h"
#include "ops/support.h"

namespace holdfast {
namespace {

constexpr uint32_t local_signature = 0x04034b50, entry_signature = 0x02014b50,
                   end_signature = 0x06054b50;
constexpr uint32_t end64_signature = 0x06064b50, locator64_signature = 0x07064b50;
constexpr size_t end_size = 22, locator64_size = 20;

struct Entry {
  std::string name;
  uint16_t method;
  uint64_t compressed, size;
  uint64_t local_header;
};

template <typename T>
T value_at(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

class Archive {
 public:
  explicit Archive(std::shared_ptr<io::Reader> reader) : reader_(std::move(reader)) {
    io::HeaderReader file("load_npz", *reader_);
    length_ = file.length();
    find_directory(file);
    read_entries();
  }

  std::unordered_map<std::string, array> load(StreamOrDevice s) const {
    std::unordered_map<std::string, array> arrays;
    for (const Entry& entry : entries_) {
      std::string name =
          entry.name.ends_with(".npy") ? entry.name.substr(0, entry.name.size() - 4) : entry.name;
      if (!arrays.insert({name, load_entry(entry, s)}).second)
        at(0).fail(text("\"", name, "\" is there twice"));
    }
    return arrays;
  }

 private:
  // A header reader at a place of the file.
  io::HeaderReader at(uint64_t offset) const {
    if (offset > length_) {
      throw std::runtime_error(text("[load_npz] an offset (", offset, ") beyond the end of ",
                                    reader_->label(), " (", length_, " bytes)"));
    }
    reader_->seek(static_cast<int64_t>(offset));
    return io::HeaderReader("load_npz", *reader_);
  }

  // The end record stands at the end, before a comment of at most 65535 bytes.
  void find_directory(const io::HeaderReader& file) {
    if (length_ < end_size) file.fail("not a zip archive");
    uint64_t tail = std::min<uint64_t>(length_, end_size + 65535);
    io::HeaderReader end = at(length_ - tail);
    std::string bytes = end.read_text(tail, "the end of the archive");
    size_t found = std::string::npos;
    for (size_t i = tail - end_size + 1; i-- > 0;) {
      if (value_at<uint32_t>(bytes, i) == end_signature) {
        found = i;
        break;
      }
    }
    if (found == std::string::npos) file.fail("not a zip archive");
    count_ = value_at<uint16_t>(bytes, found + 10);
    directory_ = value_at<uint32_t>(bytes, found + 16);
    uint64_t end_position = length_ - tail + found;
    if ((count_ == 0xffff || directory_ == 0xffffffff) && end_position >= locator64_size) {
      std::string locator =
          at(end_position - locator64_size).read_text(locator64_size, "the zip64 locator");
      if (value_at<uint32_t>(locator, 0) == locator64_signature) {
        std::string end64 =
            at(value_at<uint64_t>(locator, 8)).read_text(56, "the zip64 end record");
        if (value_at<uint32_t>(end64, 0) != end64_signature) file.fail("a bad zip64 end record");
        count_ = value_at<uint64_t>(end64, 32);
        directory_ = value_at<uint64_t>(end64, 48);
      }
    }
  }

  void read_entries() {
    io::HeaderReader file = at(directory_);
    file.expect(count_, 46, "the directory of the archive");
    for (uint64_t i = 0; i < count_; ++i) {
      std::string head = file.read_text(46, "an entry of the directory");
      if (value_at<uint32_t>(head, 0) != entry_signature) file.fail("a bad entry in the directory");
      if (value_at<uint16_t>(head, 8) & 1) file.fail("an encrypted entry");
      Entry entry{.name = file.read_text(value_at<uint16_t>(head, 28), "the name of an entry"),
                  .method = value_at<uint16_t>(head, 10),
                  .compressed = value_at<uint32_t>(head, 20),
                  .size = value_at<uint32_t>(head, 24),
                  .local_header = value_at<uint32_t>(head, 42)};
      read_zip64_sizes(file.read_text(value_at<uint16_t>(head, 30), "an extra field"), entry);
      file.skip(value_at<uint16_t>(head, 32), "the comment of an entry");
      entries_.push_back(std::move(entry));
    }
  }

  // Sizes that do not fit 32 bits stand in an extra field, in this order, each only if it is
  // needed.
  static void read_zip64_sizes(std::string_view extra, Entry& entry) {
    while (extra.size() >= 4) {
      auto id = value_at<uint16_t>(extra, 0);
      size_t size = std::min<size_t>(value_at<uint16_t>(extra, 2), extra.size() - 4);
      std::string_view field = extra.substr(4, size);
      extra.remove_prefix(4 + size);
      if (id != 1) continue;
      for (uint64_t* value : {&entry.size, &entry.compressed, &entry.local_header}) {
        if (*value != 0xffffffff || field.size() < 8) continue;
        *value = value_at<uint64_t>(field, 0);
        field.remove_prefix(8);
      }
    }
  }

  array load_entry(const Entry& entry, StreamOrDevice s) const {
    io::HeaderReader file = at(entry.local_header);
    std::string head = file.read_text(30, "the header of an entry");
    if (value_at<uint32_t>(head, 0) != local_signature) file.fail("a bad header of an entry");
    file.skip(value_at<uint16_t>(head, 26), "the name of an entry");
    file.skip(value_at<uint16_t>(head, 28), "an extra field");
    file.expect(entry.compressed, 1, "an entry");
    if (entry.method == 0) {
      if (entry.size != entry.compressed) file.fail("a stored entry with two sizes");
      return io::load_npy("load_npz", reader_, file.position(), entry.size, s);
    }
    if (entry.method != 8)
      file.fail(text("compression method ", entry.method, " is not supported"));
    std::vector<char> bytes = inflate_entry(file, entry);
    size_t size = bytes.size();
    auto inflated = std::make_shared<io::MemoryReader>(
        std::move(bytes), "\"" + entry.name + "\" in " + reader_->label());
    return io::load_npy("load_npz", inflated, 0, size, s);
  }

  static std::vector<char> inflate_entry(io::HeaderReader& file, const Entry& entry) {
    // Deflate makes at most 1032 bytes of one: a larger claim is a lie, and no memory is taken for
    // it.
    if (entry.size / 1032 > entry.compressed)
      file.fail("an entry that cannot be as large as it says");
    std::string source = file.read_text(entry.compressed, "an entry");
    std::vector<char> bytes(entry.size);
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
    size_t taken = 0, made = 0;
    int status = Z_OK;
    constexpr size_t most = std::numeric_limits<uInt>::max();
    while (status == Z_OK) {
      stream.next_in = reinterpret_cast<Bytef*>(source.data() + taken);
      stream.avail_in = static_cast<uInt>(std::min(source.size() - taken, most));
      stream.next_out = reinterpret_cast<Bytef*>(bytes.data() + made);
      stream.avail_out = static_cast<uInt>(std::min(bytes.size() - made, most));
      uInt in = stream.avail_in, out = stream.avail_out;
      status = inflate(&stream, Z_NO_FLUSH);
      taken += in - stream.avail_in;
      made += out - stream.avail_out;
      if (status == Z_OK && in == stream.avail_in && out == stream.avail_out) status = Z_DATA_ERROR;
    }
    inflateEnd(&stream);
    if (status != Z_STREAM_END || made != bytes.size()) file.fail("a damaged entry");
    return bytes;
  }

  std::shared_ptr<io::Reader> reader_;
  uint64_t length_ = 0, count_ = 0, directory_ = 0;
  std::vector<Entry> entries_;
};

// --- writing: stored, with 64-bit sizes everywhere, so that no array is too large ---

struct Record {
  std::string name;
  uint64_t size, offset;
  uint32_t checksum;
};

uint32_t checksum_of(std::string_view header, const array& a) {
  uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(header.data()), header.size());
  if (a.size() > 0) crc = crc32_z(crc, a.data<Bytef>(), a.nbytes());
  return static_cast<uint32_t>(crc);
}

// What a local header and a directory entry have in common, from the version to the length of the
// extra field.
void write_common(io::Writer& writer, const Record& record, uint16_t extra_size) {
  io::write_little_endian<uint16_t>(writer, 45);     // zip64
  io::write_little_endian<uint16_t>(writer, 0x800);  // names are UTF-8
  io::write_little_endian<uint16_t>(writer, 0);
  io::write_little_endian<uint16_t>(writer, 0);
  io::write_little_endian<uint16_t>(writer, 0x21);  // 1 January 1980
  io::write_little_endian(writer, record.checksum);
  io::write_little_endian<uint32_t>(writer, 0xffffffff);
  io::write_little_endian<uint32_t>(writer, 0xffffffff);
  io::write_little_endian(writer, static_cast<uint16_t>(record.name.size()));
  io::write_little_endian(writer, extra_size);
}

void write_archive(io::Writer& writer, const std::vector<std::pair<std::string, array>>& arrays) {
  std::vector<Record> records;
  for (const auto& [name, a] : arrays) {
    std::string header = io::npy_header(a);
    Record record{name + ".npy", header.size() + a.nbytes(), writer.tell(), checksum_of(header, a)};
    io::write_little_endian(writer, local_signature);
    write_common(writer, record, 20);
    io::write_bytes(writer, record.name);
    io::write_little_endian<uint16_t>(writer, 1);
    io::write_little_endian<uint16_t>(writer, 16);
    io::write_little_endian(writer, record.size);
    io::write_little_endian(writer, record.size);
    io::write_bytes(writer, header);
    io::write_elements(writer, a);
    records.push_back(record);
  }
  uint64_t directory = writer.tell();
  for (const Record& record : records) {
    io::write_little_endian(writer, entry_signature);
    io::write_little_endian<uint16_t>(writer, 45);
    write_common(writer, record, 28);
    io::write_little_endian<uint16_t>(writer, 0);  // comment
    io::write_little_endian<uint16_t>(writer, 0);  // disk
    io::write_little_endian<uint16_t>(writer, 0);
    io::write_little_endian<uint32_t>(writer, 0);
    io::write_little_endian<uint32_t>(writer, 0xffffffff);
    io::write_bytes(writer, record.name);
    io::write_little_endian<uint16_t>(writer, 1);
    io::write_little_endian<uint16_t>(writer, 24);
    io::write_little_endian(writer, record.size);
    io::write_little_endian(writer, record.size);
    io::write_little_endian(writer, record.offset);
  }
  uint64_t end = writer.tell();
  io::write_little_endian(writer, end64_signature);
  io::write_little_endian<uint64_t>(writer, 44);
  io::write_little_endian<uint16_t>(writer, 45);
  io::write_little_endian<uint16_t>(writer, 45);
  io::write_little_endian<uint32_t>(writer, 0);
  io::write_little_endian<uint32_t>(writer, 0);
  io::write_little_endian<uint64_t>(writer, records.size());
  io::write_little_endian<uint64_t>(writer, records.size());
  io::write_little_endian(writer, end - directory);
  io::write_little_endian(writer, directory);
  io::write_little_endian(writer, locator64_signature);
  io::write_little_endian<uint32_t>(writer, 0);
  io::write_little_endian(writer, end);
  io::write_little_endian<uint32_t>(writer, 1);
  io::write_little_endian(writer, end_signature);
  io::write_little_endian<uint16_t>(writer, 0);
  io::write_little_endian<uint16_t>(writer, 0);
  io::write_little_endian<uint16_t>(writer, 0xffff);
  io::write_little_endian<uint16_t>(writer, 0xffff);
  io::write_little_endian<uint32_t>(writer, 0xffffffff);
  io::write_little_endian<uint32_t>(writer, 0xffffffff);
  io::write_little_endian<uint16_t>(writer, 0);
}

}  // namespace

std::unordered_map<std::string, array> load_npz(std::shared_ptr<io::Reader> in_stream,
                                                StreamOrDevice s) {
  return Archive(std::move(in_stream)).load(s);
}

std::unordered_map<std::string, array> load_npz(std::string file, StreamOrDevice s) {
  return load_npz(std::make_shared<io::ParallelFileReader>(std::move(file)), s);
}

void save_npz(std::string file, const std::unordered_map<std::string, array>& arrays) {
  if (!file.ends_with(".npz")) file += ".npz";
  std::vector<std::pair<std::string, array>> ready;
  for (const auto& [name, a] : arrays) {
    if (name.size() > 65531)
      throw std::invalid_argument("[save_npz] a name of more than 65531 bytes");
    ready.emplace_back(name, io::ready_to_write(a));
  }
  std::sort(ready.begin(), ready.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  io::write_whole_file("save_npz", file, [&](io::Writer& writer) { write_archive(writer, ready); });
}

}  // namespace holdfast
