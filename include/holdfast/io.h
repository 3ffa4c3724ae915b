// Files of arrays: npy, npz, safetensors, gguf.
//
// Loading reads the header at once and checks it against the length of the file; the elements are
// read when an array is evaluated. A file that is wrong is a std::runtime_error that says what is
// wrong and where. Saving to a file name writes a temporary file beside it and renames it: a save
// that fails leaves the old file as it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ios>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/stream.h>

namespace holdfast {

namespace io {

// Where bytes come from. Evaluation may call the positioned `read` from another thread than the one
// that loaded, one call at a time unless `reads_in_parallel`.
class Reader {
 public:
  virtual ~Reader() = default;
  virtual bool is_open() const = 0;
  virtual bool good() const = 0;
  virtual size_t tell() = 0;
  virtual void seek(int64_t off, std::ios_base::seekdir way = std::ios_base::beg) = 0;
  virtual void read(char* data, size_t n) = 0;
  virtual void read(char* data, size_t n, size_t offset) = 0;
  virtual std::string label() const = 0;
  // May several threads call the positioned `read` at once?
  virtual bool reads_in_parallel() const { return false; }
};

class Writer {
 public:
  virtual ~Writer() = default;
  virtual bool is_open() const = 0;
  virtual bool good() const = 0;
  virtual size_t tell() = 0;
  virtual void seek(int64_t off, std::ios_base::seekdir way = std::ios_base::beg) = 0;
  virtual void write(const char* data, size_t n) = 0;
  virtual std::string label() const = 0;
};

// A file, read at any position from any thread. A read beyond its end throws.
class ParallelFileReader : public Reader {
 public:
  explicit ParallelFileReader(std::string file_path);
  ~ParallelFileReader() override;
  ParallelFileReader(const ParallelFileReader&) = delete;
  ParallelFileReader& operator=(const ParallelFileReader&) = delete;
  bool is_open() const override { return descriptor_ >= 0; }
  bool good() const override { return is_open(); }
  size_t tell() override { return static_cast<size_t>(position_); }
  void seek(int64_t off, std::ios_base::seekdir way = std::ios_base::beg) override;
  void read(char* data, size_t n) override;
  void read(char* data, size_t n, size_t offset) override;
  std::string label() const override { return "file " + path_; }
  bool reads_in_parallel() const override { return true; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int descriptor_;
  int64_t position_ = 0;
};

class FileWriter : public Writer {
 public:
  explicit FileWriter(std::string file_path);
  ~FileWriter() override;
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  bool is_open() const override { return descriptor_ >= 0; }
  bool good() const override { return is_open(); }
  size_t tell() override;
  void seek(int64_t off, std::ios_base::seekdir way = std::ios_base::beg) override;
  void write(const char* data, size_t n) override;
  std::string label() const override { return "file " + path_; }

 private:
  std::string path_;
  int descriptor_;
};

}  // namespace io

using GGUFMetaData = std::variant<std::monostate, array, std::string, std::vector<std::string>>;
using GGUFLoad = std::pair<std::unordered_map<std::string, array>,
                           std::unordered_map<std::string, GGUFMetaData>>;
using SafetensorsLoad =
    std::pair<std::unordered_map<std::string, array>, std::unordered_map<std::string, std::string>>;

// --- npy ---
void save(std::shared_ptr<io::Writer> out_stream, array a);
// Appends ".npy" to a name that does not end in it.
void save(std::string file, array a);
array load(std::shared_ptr<io::Reader> in_stream, StreamOrDevice s = {});
array load(std::string file, StreamOrDevice s = {});

// --- npz: a zip archive of npy files ---
void save_npz(std::string file, const std::unordered_map<std::string, array>& arrays);
std::unordered_map<std::string, array> load_npz(std::string file, StreamOrDevice s = {});
std::unordered_map<std::string, array> load_npz(std::shared_ptr<io::Reader> in_stream,
                                                StreamOrDevice s = {});

// --- safetensors ---
SafetensorsLoad load_safetensors(std::shared_ptr<io::Reader> in_stream, StreamOrDevice s = {});
SafetensorsLoad load_safetensors(const std::string& file, StreamOrDevice s = {});
void save_safetensors(std::shared_ptr<io::Writer> in_stream,
                      std::unordered_map<std::string, array> a,
                      std::unordered_map<std::string, std::string> metadata = {});
void save_safetensors(std::string file, std::unordered_map<std::string, array> a,
                      std::unordered_map<std::string, std::string> metadata = {});

// --- gguf ---
// Tensors of type Q4_0, Q4_1 and Q8_0 come as "x.weight", "x.scales" and "x.biases", as
// quantized_matmul takes them (groups of 32); those of the other quantised types as float16.
GGUFLoad load_gguf(const std::string& file, StreamOrDevice s = {});
GGUFLoad load_gguf(std::shared_ptr<io::Reader> in_stream, StreamOrDevice s = {});
void save_gguf(std::string file, std::unordered_map<std::string, array> array_map,
               std::unordered_map<std::string, GGUFMetaData> meta_data = {});

}  // namespace holdfast
