// What every_function.cpp and every_member.cpp call MLX's interface with.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <variant>
#include <vector>

#include "mlx/allocator.h"
#include "mlx/compile_impl.h"
#include "mlx/dtype_utils.h"
#include "mlx/event.h"
#include "mlx/graph_utils.h"
#include "mlx/io/load.h"
#include "mlx/mlx.h"
#include "mlx/primitives.h"
#include "mlx/scheduler.h"
#include "mlx/small_vector.h"
#include "mlx/transforms_impl.h"

using namespace mlx::core;

using A = array;
using Arrays = std::vector<array>;
using Function = std::function<Arrays(const Arrays&)>;
using Info = std::unordered_map<std::string, std::variant<std::string, size_t>>;

// All calls give a Result, or a reference to one.
template <class Result, class... Given>
void is(Given&&...) {
  static_assert((std::is_same_v<Result, std::remove_cvref_t<Given>> && ...));
}

// A variable of each type that functions take.
struct Variables {
  const array a;
  const StreamOrDevice s;
  const Device device;
  const Device::DeviceType type;
  const Stream stream;
  const ThreadLocalStream local;
  const Dtype dtype;
  const Dtype::Category category;
  const Shape shape;
  const Strides strides;
  const bool yes;
  const int n;
  const double d;
  const float f;
  const size_t size;
  const uint64_t seed;
  const short value;
  const std::string text;
  const std::string_view view_;
  const std::vector<int> axes;
  const std::initializer_list<int> list;
  const Arrays arrays;
  const std::optional<array> maybe;
  const std::optional<int> maybe_n;
  const std::optional<float> maybe_f;
  const std::optional<Dtype> maybe_dtype;
  const std::optional<std::vector<int>> maybe_axes;
  const std::pair<int, int> two;
  const std::tuple<int, int, int> three;
  const std::vector<std::pair<int, int>> pairs;
  const fft::FFTNorm norm;
  const std::vector<std::string> texts;
  const fast::CompileOptions options;
  const std::vector<Shape> shapes;
  const std::vector<Dtype> dtypes;
  const std::vector<fast::ScalarArg> scalars;
  const std::shared_ptr<io::Writer> writer;
  const std::shared_ptr<io::Reader> reader;
  const std::unordered_map<std::string, std::string> metadata;
  const std::unordered_map<std::string, array> map;
  const std::unordered_map<std::string, GGUFMetaData> gguf;
  const PrintOptions print;
  std::ostream& os;
  const NodeNamer namer;
  allocator::Buffer buffer;
  void* pointer;
  const std::function<void()> work;
  Event event;
  const Function fun;
  const std::uintptr_t id;
  const std::vector<uint64_t> constants;
  const detail::ArrayFnWithExtra extra;
  const detail::CompileCacheWeakPtr cache;
  Arrays tape;
  detail::ParentsMap parents;

  // Compiled and linked, never called: what these compute is tested elsewhere.
  void functions();
  void operators();
  void overloads_that_could_be_ambiguous();
  void members_of_arrays();
  void members_of_others();
};
