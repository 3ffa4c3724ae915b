// The tensors of a model's files by name, taken one after the other while the model is built.
//
// Nothing is read before it is taken and evaluated (`keep`), and what is taken is held by the model
// alone, so that loading needs the size of the model and of one tensor.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/io.h>

#include <holdfast/lm/model.h>

namespace holdfast::lm {

class Weights {
 public:
  // A folder with model.safetensors, or with model.safetensors.index.json and what it names.
  static Weights of_folder(const std::string& folder, const LoadOptions& options);
  // The tensors of a GGUF file under the names that they have in a folder.
  static Weights of_gguf(std::unordered_map<std::string, array> tensors, const std::string& path,
                         bool sandwich_norms, const LoadOptions& options);

  // Tensors that are under those names already.
  static Weights of_arrays(std::unordered_map<std::string, array> tensors,
                           const std::string& source, const LoadOptions& options);

  // Names are those of Hugging Face's files without "model." in front.
  bool has(const std::string& name) const { return tensors_.contains(name); }
  bool has_quantised() const;
  // A look at a tensor that stays; null where there is none.
  const array* find(const std::string& name) const;
  // Takes a tensor; ModelError when it is missing, or, with `expected`, of another shape.
  array take(const std::string& name);
  array take(const std::string& name, const Shape& expected);
  // The same for a tensor of floating-point numbers, converted.
  array take_floats(const std::string& name, const Shape& expected, Dtype dtype);

  // Evaluates what becomes a part of the model, and reports progress.
  array keep(array value, const std::string& name);

  // Every tensor must have been taken, and the files must be what they were.
  void finish() const;

  [[noreturn]] void fail(const std::string& what) const;

 private:
  explicit Weights(std::string source, const LoadOptions& options)
      : source_(std::move(source)), options_(options) {}
  void add_file(const std::string& path);
  void watch(const std::string& path);
  void add(const std::string& name, array value);

  struct File {
    std::string path;
    std::uintmax_t size;
    std::filesystem::file_time_type time;
  };
  static File state_of(const std::string& path);

  std::string source_;
  LoadOptions options_;
  std::unordered_map<std::string, array> tensors_;
  std::vector<File> files_;
  size_t total_bytes_ = 0, taken_bytes_ = 0;
};

}  // namespace holdfast::lm
