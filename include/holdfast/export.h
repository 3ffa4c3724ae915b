// export_function, import_function: functions in files.
//
// A file holds traces: lists of calls of ops, for one set of shapes and dtypes each (`shapeless`:
// for one set of dtypes and numbers of dimensions). docs/export.md describes it.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

#include <holdfast/array.h>

namespace holdfast {

using Args = std::vector<array>;
using Kwargs = std::unordered_map<std::string, array>;

// What an op was made with.
using StateT =
    std::variant<bool, int, size_t, float, double, Dtype, Shape, Strides, std::vector<int>,
                 std::vector<size_t>, std::vector<std::tuple<bool, bool, bool>>,
                 std::vector<std::variant<bool, int, float>>, std::optional<float>, std::string>;

// A trace handed to a callback, part by part. "type" says which part it is:
//   inputs          "inputs": name, shape and dtype of each; those given by keyword come last
//   keyword_inputs  "keywords": keyword and name of each input that has one
//   outputs         "outputs": name, shape and dtype of each
//   constants       "constants": name and value of each
//   primitive       one for each call, in order: "name" of the op, "inputs", "outputs", "arguments"
using ExportCallbackInput =
    std::unordered_map<std::string, std::variant<std::vector<std::tuple<std::string, Shape, Dtype>>,
                                                 std::vector<std::pair<std::string, array>>,
                                                 std::vector<std::pair<std::string, std::string>>,
                                                 std::vector<StateT>, std::string>>;
using ExportCallback = std::function<void(const ExportCallbackInput&)>;

// Adds a trace with each call. The file appears, whole, when the exporter is closed or goes out of
// scope; an error of the latter is lost, so that programs that care call close().
// std::invalid_argument: the function uses an op that cannot be saved, or one whose shape does not
// follow from its inputs in a shapeless file; or a trace for such inputs is there.
class FunctionExporter {
 public:
  ~FunctionExporter();
  FunctionExporter(FunctionExporter&&) noexcept;
  FunctionExporter(const FunctionExporter&) = delete;
  FunctionExporter& operator=(const FunctionExporter&) = delete;
  FunctionExporter& operator=(FunctionExporter&&) = delete;

  void operator()(const std::initializer_list<array>& args) { (*this)(Args(args)); }
  void operator()(const Args& args);
  void operator()(const Kwargs& kwargs);
  void operator()(const Args& args, const Kwargs& kwargs);
  // Writes the file; later calls are std::runtime_error. std::runtime_error when it cannot be
  // written.
  void close();

  struct State;
  explicit FunctionExporter(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

FunctionExporter exporter(const std::string& file, const std::function<Args(const Args&)>& fun,
                          bool shapeless = false, const std::string& metadata = "");
FunctionExporter exporter(const std::string& file, const std::function<Args(const Kwargs&)>& fun,
                          bool shapeless = false, const std::string& metadata = "");
FunctionExporter exporter(const std::string& path,
                          const std::function<Args(const Args&, const Kwargs&)>& fun,
                          bool shapeless = false, const std::string& metadata = "");
FunctionExporter exporter(const ExportCallback& callback,
                          const std::function<Args(const Args&)>& fun, bool shapeless = false);
FunctionExporter exporter(const ExportCallback& callback,
                          const std::function<Args(const Kwargs&)>& fun, bool shapeless = false);
FunctionExporter exporter(const ExportCallback& callback,
                          const std::function<Args(const Args&, const Kwargs&)>& fun,
                          bool shapeless = false);

// A file of one trace.
void export_function(const std::string& file, const std::function<Args(const Args&)>& fun,
                     const Args& args, bool shapeless = false, const std::string& metadata = "");
void export_function(const std::string& file, const std::function<Args(const Kwargs&)>& fun,
                     const Kwargs& kwargs, bool shapeless = false,
                     const std::string& metadata = "");
void export_function(const std::string& file,
                     const std::function<Args(const Args&, const Kwargs&)>& fun, const Args& args,
                     const Kwargs& kwargs, bool shapeless = false,
                     const std::string& metadata = "");
void export_function(const ExportCallback& callback, const std::function<Args(const Args&)>& fun,
                     const Args& args, bool shapeless = false);
void export_function(const ExportCallback& callback, const std::function<Args(const Kwargs&)>& fun,
                     const Kwargs& kwargs, bool shapeless = false);
void export_function(const ExportCallback& callback,
                     const std::function<Args(const Args&, const Kwargs&)>& fun, const Args& args,
                     const Kwargs& kwargs, bool shapeless = false);

// Any thread may call it; copies share the traces.
class ImportedFunction {
 public:
  // std::invalid_argument, with a list of what there is, unless a trace was saved for such inputs.
  std::vector<array> operator()(const std::initializer_list<array>& args) const {
    return (*this)(Args(args));
  }
  std::vector<array> operator()(const Args& args) const;
  std::vector<array> operator()(const Kwargs& kwargs) const;
  std::vector<array> operator()(const Args& args, const Kwargs& kwargs) const;
  const std::string& metadata() const;

  struct State;
  explicit ImportedFunction(std::shared_ptr<const State> state);

 private:
  std::shared_ptr<const State> state_;
};

// Reads the whole file, constants too, and checks each call as if it were made now.
// std::runtime_error: the file cannot be read, is damaged, is of a newer version, or calls an op in
// a way that cannot be. Nothing runs before the function is called and evaluated; then its custom
// kernels run like any others: import kernels only from where you would take a program.
ImportedFunction import_function(const std::string& file);

}  // namespace holdfast
