#include "registry/registry.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

namespace holdfast::registry {

namespace {

Results results(array a) {
  Results list;
  list.push_back(std::move(a));
  return list;
}
Results results(std::vector<array> list) { return list; }
Results results(std::pair<array, array> both) { return {both.first, both.second}; }

// U S V^T from the first columns of U and rows of V^T.
array recompose(const std::vector<array>& parts) {
  int count = parts[1].shape(-1);
  array left = take(parts[0], arange(count), -1), right = take(parts[2], arange(count), -2);
  return matmul(multiply(left, expand_dims(parts[1], -2)), right);
}

constexpr uint16_t bit(Dtype::Val val) {
  return static_cast<uint16_t>(1u << static_cast<int>(val));
}
// The column `accepted`.
namespace types {
constexpr uint16_t asked = 0;
constexpr uint16_t any = (1u << dtype_count) - 1;
constexpr uint16_t real = any & ~bit(complex64);
constexpr uint16_t floats = bit(float16) | bit(bfloat16) | bit(float32) | bit(float64);
constexpr uint16_t inexact_types = floats | bit(complex64);
constexpr uint16_t small_floats = floats & ~bit(float64);
constexpr uint16_t real_not_double = real & ~bit(float64);
constexpr uint16_t lapack = bit(float32) | bit(float64);
constexpr uint16_t complex_lapack = lapack | bit(complex64);
}  // namespace types

}  // namespace

const std::vector<Row>& rows() {
#define HOLDFAST_UNARY_SAMPLES "a(3,5); a(0,2); a()"
#define HOLDFAST_BINARY_SAMPLES "a(3,5) a(3,5); a(3,1) a(5); a() a(4); a(0,2) a(2)"
#define UNARY(function, Primitive, rule, in_types, description) \
  {#function, types::asked, HOLDFAST_UNARY_SAMPLES,             \
   [](const Call& c) { return results(function(c.x(0))); }, HOLDFAST_FAMILY},
#define BINARY(function, Primitive, rule, in_types, description) \
  {#function, types::asked, HOLDFAST_BINARY_SAMPLES,             \
   [](const Call& c) { return results(function(c.x(0), c.x(1))); }, HOLDFAST_FAMILY},
#define TERNARY(function, Primitive, rule, in_types, description)                   \
  {#function, types::asked, "b(3,5) a(3,5) a(3,5); b(3,1) a(5) a(); b(0) a(1) a()", \
   [](const Call& c) { return results(function(c.x(0), c.x(1), c.x(2))); }, HOLDFAST_FAMILY},
#define OP(name, accepted, samples, ...) \
  {name, types::accepted, samples,       \
   []([[maybe_unused]] const Call& c) { return results(__VA_ARGS__); }, HOLDFAST_FAMILY},
  static const std::vector<Row> table = {
#define HOLDFAST_FAMILY Family::elementwise
#include <holdfast/elementwise.def>
#undef HOLDFAST_FAMILY
#define HOLDFAST_FAMILY Family::general
#include "registry/ops.def"
#undef HOLDFAST_FAMILY
#define HOLDFAST_FAMILY Family::products
#include "registry/language_models.def"
#include "registry/products.def"
#undef HOLDFAST_FAMILY
  };
#undef OP
  return table;
}

// --- samples ---

namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& text) {
  throw std::invalid_argument("[registry] " + what + ": " + text);
}

std::vector<std::string> split_text(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    size_t first = part.find_first_not_of(' '), last = part.find_last_not_of(' ');
    if (first != std::string::npos) parts.push_back(part.substr(first, last - first + 1));
  }
  return parts;
}

// "[1,2]" or "(1,2)" or "1,2"
std::vector<int> integers_of(std::string text) {
  std::erase_if(text, [](char c) { return c == '[' || c == ']' || c == '(' || c == ')'; });
  std::vector<int> values;
  for (const std::string& part : split_text(text, ',')) values.push_back(std::stoi(part));
  return values;
}

Input input_of(const std::string& text) {
  size_t open = text.find('('), close = text.find(')');
  if (open == std::string::npos || close == std::string::npos) refuse("no shape", text);
  Input input;
  input.kind = text.substr(0, open);
  std::vector<int> shape = integers_of(text.substr(open, close - open));
  input.shape = Shape(shape.begin(), shape.end());
  if (size_t less = text.find('<'); less != std::string::npos) {
    input.bound = std::stoi(text.substr(less + 1));
  }
  return input;
}

}  // namespace

std::vector<Sample> samples_of(const Row& row) {
  std::vector<Sample> samples;
  for (const std::string& text : split_text(row.samples, ';')) {
    Sample sample;
    sample.text = text;
    size_t bar = text.find('|'), start = 0;
    if (text.starts_with("invalid:")) {
      sample.outcome = Sample::Outcome::invalid_argument;
      start = text.find(':') + 1;
    } else if (text.starts_with("range:")) {
      sample.outcome = Sample::Outcome::out_of_range;
      start = text.find(':') + 1;
    }
    for (const std::string& part :
         split_text(text.substr(start, bar == std::string::npos ? bar : bar - start), ' ')) {
      sample.inputs.push_back(input_of(part));
    }
    if (bar != std::string::npos) {
      for (const std::string& part : split_text(text.substr(bar + 1), ' ')) {
        size_t equals = part.find('=');
        if (equals == std::string::npos) refuse("no value", text);
        sample.arguments[part.substr(0, equals)] = part.substr(equals + 1);
      }
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

Sample resized(const Sample& sample, uint64_t seed, bool may_be_empty) {
  std::mt19937_64 random(seed);
  Sample result = sample;
  result.outcome = Sample::Outcome::result;
  // The references are slow: large sizes only where there are few of them.
  for (bool may_be_large : {true, false}) {
    std::map<int, int> sizes{{0, 0}, {1, 1}};
    auto other = [&](int size) {
      constexpr int choices[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 17, 33, 40, 70};
      auto [place, is_new] = sizes.try_emplace(size);
      if (is_new) place->second = choices[random() % (may_be_large ? std::size(choices) : 5)];
      bool is_indexed = std::any_of(sample.inputs.begin(), sample.inputs.end(),
                                    [&](const Input& input) { return input.bound == size; });
      if (is_new && may_be_empty && !is_indexed && random() % 12 == 0) place->second = 0;
      return place->second;
    };
    size_t largest = 0;
    std::ostringstream text;
    for (size_t i = 0; i < sample.inputs.size(); ++i) {
      Input& input = result.inputs[i];
      size_t elements = 1;
      text << input.kind << '(';
      for (size_t k = 0; k < input.shape.size(); ++k) {
        input.shape[k] = other(sample.inputs[i].shape[k]);
        elements *= static_cast<size_t>(input.shape[k]);
        text << (k > 0 ? "," : "") << input.shape[k];
      }
      text << ')';
      int bound = sample.inputs[i].bound;
      if (bound > 0 && input.kind != "e") input.bound = other(bound);
      if (bound > 0) text << '<' << input.bound;
      text << ' ';
      largest = std::max(largest, elements);
    }
    size_t bar = sample.text.find('|');
    result.text = text.str() + (bar == std::string::npos ? "" : sample.text.substr(bar));
    if (largest <= 3000) break;
  }
  return result;
}

// --- calls ---

const std::string& Call::given(const std::string& name) const {
  auto found = arguments_.find(name);
  if (found == arguments_.end()) refuse("the sample lacks the argument", name);
  return found->second;
}
std::optional<array> Call::maybe(size_t index) const {
  return index < inputs_.size() ? std::optional<array>(inputs_[index]) : std::nullopt;
}
std::vector<array> Call::range(size_t first, size_t last) const {
  return {inputs_.begin() + static_cast<std::ptrdiff_t>(first),
          inputs_.begin() + static_cast<std::ptrdiff_t>(last)};
}
std::optional<int> Call::maybe_i(const std::string& name) const {
  return has(name) ? std::optional<int>(i(name)) : std::nullopt;
}
std::pair<int, int> Call::pair(const std::string& name) const {
  std::vector<int> values = list(name);
  return {values.at(0), values.at(1)};
}
std::tuple<int, int, int> Call::triple(const std::string& name) const {
  std::vector<int> values = list(name);
  return {values.at(0), values.at(1), values.at(2)};
}
int Call::i(const std::string& name) const { return std::stoi(given(name)); }
bool Call::flag(const std::string& name, bool otherwise) const {
  return has(name) ? given(name) == "true" : otherwise;
}
double Call::number(const std::string& name) const { return std::stod(given(name)); }
std::string Call::text(const std::string& name) const { return given(name); }
std::vector<int> Call::list(const std::string& name) const { return integers_of(given(name)); }
Shape Call::shape(const std::string& name) const {
  std::vector<int> values = list(name);
  return Shape(values.begin(), values.end());
}
Dtype Call::dtype(const std::string& name) const {
  for (int v = 0; v < dtype_count; ++v) {
    if (given(name) == dtype_name(static_cast<Dtype::Val>(v))) {
      return dtype_of(static_cast<Dtype::Val>(v));
    }
  }
  refuse("no such dtype", given(name));
}

// --- values ---

bool Input::has_row_dtype() const {
  return kind.size() == 1 && std::string("apsmy").find(kind) != std::string::npos;
}

bool accepts(const Row& row, const Sample& sample, Dtype dtype) {
  if (row.accepted != types::asked) {
    bool names_dtype = std::any_of(sample.inputs.begin(), sample.inputs.end(),
                                   [](const Input& input) { return input.has_row_dtype(); });
    return !names_dtype || (row.accepted >> static_cast<int>(dtype.val()) & 1) != 0;
  }
  std::vector<array> inputs;
  for (const Input& input : sample.inputs) inputs.push_back(make_input(input, dtype, 1));
  try {
    row.run(Call(inputs, sample.arguments));
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

Device device_of(const Row& row) {
  const std::string_view name = row.name;
  const bool is_factorisation =
      name.starts_with("linalg.") && name != "linalg.norm" && name != "linalg.cross";
  return is_factorisation || name == "random.multivariate_normal" ? Device(Device::cpu)
                                                                  : default_device();
}

array make_input(const Input& input, Dtype dtype, uint64_t seed) {
  StreamContext on_cpu(Device::cpu);  // which has all dtypes
  std::mt19937_64 random(seed);
  auto draw = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  if (input.kind == "key") return random::key(seed);
  if (input.kind == "b") dtype = bool_;
  if (input.kind == "k") dtype = int32;
  if (input.kind == "n" || input.kind == "u") dtype = uint32;
  if (input.kind == "e" || input.kind == "w") dtype = uint8;
  if (input.kind == "f") dtype = float32;
  size_t size = 1;
  for (ShapeElem dim : input.shape) size *= static_cast<size_t>(dim);
  bool is_unsigned = issubdtype(dtype, unsignedinteger) || dtype == bool_;
  bool is_inexact = issubdtype(dtype, inexact);
  std::vector<complex64_t> values;
  std::vector<uint32_t> bits;
  for (size_t i = 0; i < size; ++i) {
    if (input.kind == "k") {
      values.push_back(complex64_t(static_cast<float>(draw(-input.bound, input.bound - 1))));
    } else if (input.kind == "n" || input.kind == "e") {
      int low = input.kind == "n" ? 0 : input.bound - 12;
      values.push_back(complex64_t(static_cast<float>(draw(low, input.bound - 1))));
    } else if (input.kind == "u" || input.kind == "w") {
      bits.push_back(static_cast<uint32_t>(random()));
    } else if (dtype == bool_) {
      values.push_back(complex64_t(static_cast<float>(draw(0, 1))));
    } else {
      // Multiples of 1/16: exact in every floating type.
      bool is_positive = input.kind == "p" || is_unsigned;
      float scale = is_inexact ? 16.0f : 1.0f;
      int reach = is_inexact ? 48 : 9;
      float value = static_cast<float>(draw(is_positive ? 1 : -reach, reach)) / scale;
      float part = dtype == complex64 ? static_cast<float>(draw(-reach, reach)) / scale : 0.0f;
      values.push_back(complex64_t(value, part));
    }
  }
  if (!bits.empty()) return array(bits.begin(), input.shape, dtype);
  if (input.kind == "s") std::sort(values.begin(), values.end());
  array result(values.begin(), input.shape, dtype);
  if (input.kind == "m" || input.kind == "y") {
    // A heavy diagonal, all of it different.
    int n = input.shape.back();
    if (input.kind == "y") result = add(result, conjugate(swapaxes(result, -1, -2)));
    array heavy = multiply(eye(n, dtype), astype(add(arange(n), array(7 * n)), dtype));
    result = contiguous(add(result, heavy));
  }
  return result;
}

namespace {

struct Tolerance {
  double relative, absolute;
};
Tolerance tolerance_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::Val::float16:
      return {2e-3, 2e-3};
    case Dtype::Val::bfloat16:
      return {1.6e-2, 1.6e-2};
    case Dtype::Val::float32:
    case Dtype::Val::complex64:
      return {2e-6, 2e-6};
    case Dtype::Val::float64:
      return {1e-12, 1e-12};
    default:
      return {0, 0};
  }
}

bool is_close(double got, double expected, Tolerance tolerance) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) == std::isnan(got);
  if (got == expected) return true;
  return std::abs(got - expected) <=
         tolerance.absolute + tolerance.relative * std::max(std::abs(expected), std::abs(got));
}

}  // namespace

std::string difference(array got, array expected, double factor) {
  std::ostringstream text;
  if (got.dtype() != expected.dtype()) {
    text << "dtype " << got.dtype() << " instead of " << expected.dtype();
    return text.str();
  }
  if (got.shape() != expected.shape()) {
    text << "shape " << got.shape() << " instead of " << expected.shape();
    return text.str();
  }
  got = contiguous(got);
  expected = contiguous(expected);
  eval(got, expected);
  Tolerance tolerance = tolerance_of(got.dtype());
  tolerance.relative *= factor;
  tolerance.absolute *= factor;
  dispatch_dtype(got.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* ours = got.data<T>();
    const T* theirs = expected.data<T>();
    for (size_t i = 0; i < got.size() && text.str().empty(); ++i) {
      bool same;
      if constexpr (std::is_same_v<T, complex64_t>) {
        same = is_close(ours[i].real(), theirs[i].real(), tolerance) &&
               is_close(ours[i].imag(), theirs[i].imag(), tolerance);
      } else if constexpr (std::is_integral_v<T>) {
        same = ours[i] == theirs[i];
      } else {
        same = is_close(static_cast<double>(ours[i]), static_cast<double>(theirs[i]), tolerance);
      }
      if (!same) {
        text << "element " << i << " is ";
        if constexpr (std::is_same_v<T, complex64_t>)
          text << ours[i] << " instead of " << theirs[i];
        else
          text << +ours[i] << " instead of " << +theirs[i];
      }
    }
  });
  return text.str();
}

}  // namespace holdfast::registry
