#include "lm/model/weights.h"

#include <algorithm>
#include <array>
#include <set>

#include <nlohmann/json.hpp>

#include <holdfast/errors.h>
#include <holdfast/eval.h>
#include <holdfast/ops.h>

#include <holdfast/lm/errors.h>

#include "lm/model/gguf_names.h"
#include "lm/support.h"

namespace holdfast::lm {
namespace {

// What is in files and not a part of the text model.
bool is_of_another_part(const std::string& name) {
  constexpr std::array<const char*, 5> parts{"vision_tower.", "visual.", "multi_modal_projector.",
                                             "mtp.", "rotary_emb.inv_freq"};
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return name.find(part) != std::string::npos; });
}

std::string without_prefix(const std::string& name) {
  for (const char* prefix :
       {"model.language_model.", "language_model.model.", "language_model.", "model."}) {
    if (name.starts_with(prefix)) return name.substr(std::string(prefix).size());
  }
  return name;
}

std::string shape_text(const Shape& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

// The files that an index names, without what is not in the folder itself.
std::set<std::string> files_of_index(const std::string& path) {
  nlohmann::json parsed = nlohmann::json::parse(read_text_file(path), nullptr, false);
  if (!parsed.is_object() || !parsed.contains("weight_map") || !parsed["weight_map"].is_object())
    throw ModelError(message(path, ": expected an object with \"weight_map\", also an object"));
  std::set<std::string> files;
  for (const auto& [tensor, file] : parsed["weight_map"].items()) {
    std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || name.find('/') != std::string::npos || name.find('\\') != std::string::npos)
      throw ModelError(
          message(path, ": the file of \"", tensor, "\" must be a name in the folder"));
    files.insert(name);
  }
  return files;
}

}  // namespace

Weights::File Weights::state_of(const std::string& path) {
  std::error_code error;
  File file{path, std::filesystem::file_size(path, error), {}};
  if (!error) file.time = std::filesystem::last_write_time(path, error);
  if (error) throw ModelError(message("cannot open ", path, ": ", error.message()));
  return file;
}

void Weights::watch(const std::string& path) { files_.push_back(state_of(path)); }

void Weights::add(const std::string& name, array value) {
  size_t bytes = value.nbytes();
  if (!tensors_.emplace(name, std::move(value)).second)
    fail(message("the tensor \"", name, "\" is there twice"));
  total_bytes_ += bytes;
}

void Weights::add_file(const std::string& path) {
  watch(path);
  try {
    for (auto& [name, value] : load_safetensors(path, options_.stream).first) {
      if (!is_of_another_part(name)) add(without_prefix(name), std::move(value));
    }
  } catch (const ModelError&) {
    throw;
  } catch (const std::exception& error) {
    throw ModelError(error.what());
  }
}

Weights Weights::of_folder(const std::string& folder, const LoadOptions& options) {
  Weights weights(folder, options);
  std::string index = folder + "/model.safetensors.index.json",
              whole = folder + "/model.safetensors";
  if (std::filesystem::exists(index)) {
    for (const std::string& name : files_of_index(index)) weights.add_file(folder + "/" + name);
  } else if (std::filesystem::exists(whole)) {
    weights.add_file(whole);
  } else {
    throw ModelError(
        message(folder, " has neither model.safetensors nor model.safetensors.index.json"));
  }
  return weights;
}

Weights Weights::of_gguf(std::unordered_map<std::string, array> tensors, const std::string& path,
                         bool sandwich_norms, const LoadOptions& options) {
  Weights weights(path, options);
  weights.watch(path);
  for (auto& [name, value] : tensors) {
    if (name == "rope_freqs.weight") {
      weights.add(name, std::move(value));
      continue;
    }
    std::optional<std::string> known = name_of_gguf(name, sandwich_norms);
    if (!known) weights.fail(message("the tensor \"", name, "\" is not known"));
    weights.add(*known, std::move(value));
  }
  return weights;
}

Weights Weights::of_arrays(std::unordered_map<std::string, array> tensors,
                           const std::string& source, const LoadOptions& options) {
  Weights weights(source, options);
  for (auto& [name, value] : tensors) weights.add(name, std::move(value));
  return weights;
}

const array* Weights::find(const std::string& name) const {
  auto at = tensors_.find(name);
  return at == tensors_.end() ? nullptr : &at->second;
}

bool Weights::has_quantised() const {
  return std::any_of(tensors_.begin(), tensors_.end(),
                     [](const auto& tensor) { return tensor.first.ends_with(".scales"); });
}

array Weights::take(const std::string& name) {
  auto at = tensors_.find(name);
  if (at == tensors_.end()) fail(message("the tensor \"", name, "\" is missing"));
  array value = std::move(at->second);
  tensors_.erase(at);
  taken_bytes_ += value.nbytes();
  return value;
}

array Weights::take(const std::string& name, const Shape& expected) {
  array value = take(name);
  if (value.shape() != expected) {
    fail(message("the tensor \"", name, "\" must have the shape ", shape_text(expected), ", got ",
                 shape_text(value.shape())));
  }
  return value;
}

array Weights::take_floats(const std::string& name, const Shape& expected, Dtype dtype) {
  array value = take(name, expected);
  if (!issubdtype(value.dtype(), floating))
    fail(
        message("the tensor \"", name, "\" must hold floating-point numbers, got ", value.dtype()));
  return astype(std::move(value), dtype, options_.stream);
}

array Weights::keep(array value, const std::string& name) {
  try {
    eval(value);
  } catch (const OutOfMemory&) {
    throw;
  } catch (const std::exception& error) {
    fail(message("the tensor \"", name, "\" cannot be loaded: ", error.what()));
  }
  if (options_.progress) options_.progress({taken_bytes_, total_bytes_, name});
  return value;
}

void Weights::finish() const {
  if (!tensors_.empty()) {
    std::vector<std::string> names;
    for (const auto& [name, value] : tensors_) names.push_back(name);
    std::sort(names.begin(), names.end());
    fail(message("the model has no place for ", names.size(), " of the tensors, such as \"",
                 names[0], "\""));
  }
  for (const File& file : files_) {
    File now = state_of(file.path);
    if (now.size != file.size || now.time != file.time)
      throw ModelError(message(file.path, " changed while it was loaded; load it again"));
  }
}

void Weights::fail(const std::string& what) const {
  throw ModelError(message(source_, ": ", what));
}

}  // namespace holdfast::lm
