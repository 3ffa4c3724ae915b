// One row per op: what its tests, the comparison with other frameworks and the benchmark of all ops
// read. A new op is a row in ops.def, products.def or language_models.def; element-wise ops are
// rows of elementwise.def already.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <holdfast/holdfast.h>

namespace holdfast::registry {

// An input of a sample: its kind, its shape and, for indices, their bound. The kinds:
//   a  any values of the row's dtype        p  positive ones          s  sorted ones (1-d)
//   m  matrices that are far from singular  y  symmetric (Hermitian) positive definite matrices
//   f  float32, whatever the row's dtype    b  bool                   k  int32 indices in [-n, n)
//   n  uint32 indices in [0, n)             u  uint32, any bits       w  uint8, any bits
//   e  uint8 in [n - 12, n): exponents of scales                      key  a random key
struct Input {
  std::string kind;
  Shape shape;
  int bound = 0;
  // Is it of the dtype that the row is called with?
  bool has_row_dtype() const;
};

// Inputs and named arguments, as written in a row: "a(3,4) k(2)<4 | axis=1 mode=edge". One that
// begins with "invalid:" must raise std::invalid_argument when the op is called, with "range:"
// std::out_of_range.
struct Sample {
  enum class Outcome { result, invalid_argument, out_of_range };
  std::string text;
  Outcome outcome = Outcome::result;
  std::vector<Input> inputs;
  std::map<std::string, std::string> arguments;
};

// What a row's expression sees as `c`.
class Call {
 public:
  Call(std::vector<array> inputs, std::map<std::string, std::string> arguments)
      : inputs_(std::move(inputs)), arguments_(std::move(arguments)) {}
  const array& x(size_t index) const { return inputs_.at(index); }
  std::optional<array> maybe(size_t index) const;
  const std::vector<array>& all() const { return inputs_; }
  // The inputs from `first` up to `last`.
  std::vector<array> range(size_t first, size_t last) const;

  bool has(const std::string& name) const { return arguments_.count(name) > 0; }
  int i(const std::string& name) const;
  bool flag(const std::string& name, bool otherwise = false) const;
  double number(const std::string& name) const;
  std::string text(const std::string& name) const;
  std::vector<int> list(const std::string& name) const;  // [1,2]
  Shape shape(const std::string& name) const;
  std::optional<int> maybe_i(const std::string& name) const;
  std::pair<int, int> pair(const std::string& name) const;
  std::tuple<int, int, int> triple(const std::string& name) const;
  Dtype dtype(const std::string& name) const;

 private:
  const std::string& given(const std::string& name) const;
  std::vector<array> inputs_;
  std::map<std::string, std::string> arguments_;
};

using Results = std::vector<array>;

// Where a row stands. Those of products.def and language_models.def may give more than the op
// itself (products of factors); tests of derivatives have calls of their own for them.
enum class Family { elementwise, general, products };

struct Row {
  const char* name;  // as in Python: "sort", "random.bits"
  // The dtypes of inputs that have the row's dtype: bit v for the dtype with Val v. Others raise
  // std::invalid_argument when the op is called. 0: not known here, tests ask the op.
  uint16_t accepted;
  const char* samples;
  Results (*run)(const Call& c);
  Family family;
};

const std::vector<Row>& rows();
std::vector<Sample> samples_of(const Row& row);
// The sample with other sizes: each number among its dimensions and bounds becomes another one,
// everywhere (1 and 0 stay), its arguments do not. The op may refuse the result. No size becomes 0
// unless `may_be_empty`.
Sample resized(const Sample& sample, uint64_t seed, bool may_be_empty);
// Whether the row's inputs of its dtype may have this one: the column `accepted`, or the op itself,
// asked with a sample.
bool accepts(const Row& row, const Sample& sample, Dtype dtype);

// The CPU for factorisations, which no GPU takes; else the default device.
Device device_of(const Row& row);

// A contiguous input with values from `seed`: small, so that sums stay exact where they can.
array make_input(const Input& input, Dtype dtype, uint64_t seed);

// Empty when both hold the same: shapes, dtypes, and values up to the rounding of the dtype times
// `factor`; NaN equals NaN. Else, what differs.
std::string difference(array got, array expected, double factor = 1);

}  // namespace holdfast::registry
